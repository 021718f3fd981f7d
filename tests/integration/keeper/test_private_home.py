"""A run's own HOME: what it shows, what it keeps, and that nothing of the user's is lost with it."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.keeper.conftest import MakeSpec, first_line, keeper_of, text_of
from tests.waiting import eventually

from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.core.values.containment import HomeView, Login, PrivatePath
from loopwright.keeper import places
from loopwright.keeper.home import MOST_BYTES
from loopwright.ports import Exit, RunSpec

MakeView = Callable[..., HomeView]
LOGIN = Login(file=".credentials.json", at="oauth", expires="expiresAt", tokens=("access", "refresh"))


def own(real: Path, path: str = ".claude/", **more: Any) -> PrivatePath:
    """Return something of an agent's, as its adapter declares it."""
    return PrivatePath(path=path, source=str(real / path), **more)


def login(name: str, expires: int, **more: Any) -> dict[str, Any]:
    return {"oauth": {"access": f"a-{name}", "refresh": f"r-{name}", "expiresAt": expires}, **more}


def write_login(real: Path, content: dict[str, Any]) -> Path:
    file = real / ".claude" / ".credentials.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content))
    return file


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """A user's folder with the usual things in it."""
    folder = tmp_path / "user"
    for path, text in {
        ".gitconfig": "[user]\nname = Someone\n",
        ".ssh/id": "private",
        ".ssh/config": "Host x",
        ".config/gh/hosts.yml": "token",
        ".config/tool/settings": "plain",
        ".cache/made": "warm",
        ".local/bin/tool": "#!/bin/sh\necho tool\n",
        ".claude.json": '{"login": 1}',
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / ".gone").symlink_to("/nowhere/at/all")
    return folder


@pytest.fixture
def make_view(tmp_path: Path, real: Path) -> MakeView:
    def make(**more: Any) -> HomeView:
        values: dict[str, Any] = {
            "place": tmp_path / "users" / "a",
            "real": real,
            "hidden": (".ssh", ".config/gh"),
        }
        values |= more
        return HomeView(**{**values, "place": str(values["place"]), "real": str(values["real"])})

    return make


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): str(path.readlink()) if path.is_symlink() else path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


async def run(keepers: ProcessKeepers, spec: RunSpec) -> Exit:
    await keepers.start(spec)
    return await keepers.wait(spec.directory)


async def test_a_run_sees_the_users_files_without_the_hidden_ones(
    keepers: ProcessKeepers, make_spec: MakeSpec, make_view: MakeView, tmp_path: Path
) -> None:
    spec = make_spec(
        sh="cd; pwd -L; stat -L -c %a .; cat .gitconfig .config/tool/settings; .local/bin/tool; ls -A . .config"
        "; test -e .ssh -o -e .config/gh || echo hidden",
        home=make_view(),
        env={"PATH": "/usr/bin:/bin", "HOME": "/elsewhere"},
    )
    (tmp_path / "user" / ".local/bin/tool").chmod(0o755)
    assert (await run(keepers, spec)).code == 0
    assert await text_of(keepers, spec) == [
        *(str(tmp_path / "users" / "a"), "700", "[user]", "name = Someone", "plaintool"),
        *(".:", ".cache", ".claude.json", ".config", ".gitconfig", ".gone", ".local", ""),
        *(".config:", "tool", "hidden"),
    ]


async def test_what_a_run_drops_into_its_home_vanishes_and_what_it_writes_through_stays(
    keepers: ProcessKeepers, make_spec: MakeSpec, make_view: MakeView, real: Path
) -> None:
    before = contents(real)
    spec = make_spec(
        sh="cd; echo x > dropped; mkdir -p .config/fresh new/er; echo x > .config/fresh/y; echo x > new/er/z;"
        "echo warmer > .cache/made",
        home=make_view(),
    )
    ended = await run(keepers, spec)
    assert (ended.code, ended.error) == (0, "")
    assert contents(real) == {**before, ".cache/made": "warmer\n"}
    assert not (spec.directory / places.HOME).exists()
    assert not os.path.lexists(spec.home.place if spec.home else "")


@pytest.mark.parametrize(
    "deed",
    [
        'rm -rf "$HOME/.cache"; ln -s "$REAL" "$HOME/.cache"',
        'rm -rf "$VIEW"; ln -s "$REAL" "$VIEW"',
        'rm -rf "$VIEW"; echo odd > "$VIEW"',
        'rm -f "$HOME"; mkdir "$HOME"; ln -s "$REAL" "$HOME/all"',
        'rm -f "$HOME"; ln -s "$REAL" "$HOME"',
        'ln -s .. "$HOME/up"; ln -s "$HOME" "$HOME/self"; mkfifo "$HOME/pipe"',
        'rm "$HOME/.claude.json"; mkfifo "$HOME/.claude.json"',
        'rm "$HOME/.claude.json"; mkdir "$HOME/.claude.json"; touch "$HOME/.claude.json/x"',
        'mkdir "$HOME/locked"; touch "$HOME/locked/x"; chmod 0 "$HOME/locked"; chmod 0 "$VIEW"',
    ],
)
async def test_nothing_of_the_users_is_removed_whatever_the_run_made_of_its_home(
    keepers: ProcessKeepers, make_spec: MakeSpec, make_view: MakeView, real: Path, deed: str
) -> None:
    before, mode = contents(real), real.stat().st_mode
    spec = make_spec(sh=deed, home=make_view(private=(own(real, ".claude.json"),)))
    view = spec.directory / places.HOME
    spec.env.update(REAL=str(real), VIEW=str(view))  # type: ignore[attr-defined]
    ended = await run(keepers, spec)
    assert (ended.code, ended.error) == (0, "")
    assert contents(real) == before
    assert real.stat().st_mode == mode
    assert not os.path.lexists(view)


async def test_something_shown_below_something_hidden_is_there_alone(
    keepers: ProcessKeepers, make_spec: MakeSpec, make_view: MakeView
) -> None:
    spec = make_spec(
        sh="cd; ls -A .ssh; cat .ssh/config", home=make_view(shown=(".ssh/config", ".not/there"))
    )
    await run(keepers, spec)
    assert await text_of(keepers, spec) == ["config", "Host x"]


async def test_a_later_run_in_the_same_workspace_finds_its_home_at_the_same_place(
    keepers: ProcessKeepers, make_spec: MakeSpec, make_view: MakeView, tmp_path: Path
) -> None:
    """A virtual environment made by a setup command remembers the path of the Python in HOME."""
    setup = make_spec(sh='ln -s "$HOME/.local/bin/tool" venv', home=make_view())
    await run(keepers, setup)
    agent = make_spec(sh="cat venv", home=make_view())
    await run(keepers, agent)
    assert (await text_of(keepers, agent))[-1] == "echo tool"
    assert (tmp_path / "venv").readlink().is_relative_to(tmp_path / "users" / "a")


async def test_a_run_that_is_started_again_after_its_keeper_was_killed_has_a_fresh_home(
    keepers: ProcessKeepers, make_spec: MakeSpec, make_view: MakeView, tmp_path: Path
) -> None:
    again = tmp_path / "again"
    spec = make_spec(
        sh=f"cd; test -e junk || echo fresh; echo x > junk; test -e {again} && exit; touch {again}; sleep 300",
        home=make_view(),
    )
    await keepers.start(spec)
    assert await first_line(keepers, spec) == "fresh"
    eventually(again.exists)
    keeper_of(spec).kill()
    eventually(lambda: keepers.look(spec.directory).state == "lost")
    await keepers.start(spec)
    assert (await keepers.wait(spec.directory)).ended_by == "itself"
    assert await text_of(keepers, spec) == ["fresh"]


@pytest.mark.parametrize("odd", ["missing", "a file", "unreadable", "the root"])
async def test_a_home_that_is_no_usual_one_stops_no_run(
    keepers: ProcessKeepers, make_spec: MakeSpec, make_view: MakeView, tmp_path: Path, odd: str
) -> None:
    folder = tmp_path / odd
    if odd == "a file":
        folder.write_text("x")
    if odd == "unreadable":
        folder.mkdir()
        (folder / ".claude").mkdir()
        folder.chmod(0o300)
    folder = Path("/") if odd == "the root" else folder
    needs = (own(folder, logins=(LOGIN,)), own(folder, ".claude.json"))
    spec = make_spec(
        sh="cd && echo x > y && cat y; ls -d etc .claude", home=make_view(real=folder, private=needs)
    )
    ended = await run(keepers, spec)
    said = await text_of(keepers, spec)
    assert ended.error == ""
    assert said[0] == "x"
    assert ("etc" in said) is (odd == "the root")
    assert ".claude" in said, "it is the run's own"
    assert Path("/etc/passwd").exists()
    if odd == "unreadable":
        folder.chmod(0o700)


async def test_a_home_with_thousands_of_entries_is_shown_whole(
    keepers: ProcessKeepers, make_spec: MakeSpec, make_view: MakeView, real: Path
) -> None:
    for n in range(3000):
        (real / f"file{n}").touch()
    spec = make_spec(sh="cd; ls | wc -l", home=make_view())
    assert (await run(keepers, spec)).error == ""
    assert await text_of(keepers, spec) == ["3000"]
    assert len(list(real.glob("file*"))) == 3000


async def test_what_belongs_to_the_agent_is_a_copy_and_nothing_flows_back(
    keepers: ProcessKeepers, make_spec: MakeSpec, make_view: MakeView, real: Path
) -> None:
    for path, text in {
        ".claude/settings.json": '{"model": "opus"}',
        ".claude/projects/p/other.jsonl": "someone else's",
        ".claude/skills/s/SKILL.md": "a skill",
        "dotfiles/commands/c.md": "a command",
    }.items():
        (real / path).parent.mkdir(parents=True, exist_ok=True)
        (real / path).write_text(text)
    (real / ".claude/commands").symlink_to(real / "dotfiles/commands")
    before = contents(real)
    (real / ".claude/plugins").mkdir()
    with (real / ".claude/plugins/big").open("wb") as big:
        big.truncate(MOST_BYTES + 1)
    spec = make_spec(
        sh="cd; cat .claude/settings.json .claude/skills/s/SKILL.md .claude/commands/c.md; echo;"
        "test -e .claude/projects && echo seen;"
        "stat -c %F .claude/plugins; cd .claude; echo '{\"hooks\": {}}' > settings.json; echo x > CLAUDE.md;"
        "echo x > commands/c.md; echo x > commands/new.md; echo x > skills/s/SKILL.md; mkdir hooks; echo x > hooks/h;"
        "cd; echo '{}' > t; mv t .claude.json; mkdir -p .config/goose; echo x > .config/goose/config.yaml",
        home=make_view(
            private=(
                own(real, left=("history*",), sessions=("projects",)),
                own(real, ".claude.json"),
                own(real, ".config/goose/"),
            )
        ),
    )
    ended = await run(keepers, spec)
    assert (ended.code, ended.error) == (0, "")
    assert await text_of(keepers, spec) == ['{"model": "opus"}a skilla command', "symbolic link"]
    (real / ".claude/plugins/big").unlink()
    assert contents(real) == before


async def test_a_conversation_waits_for_the_next_run_and_nothing_else_does(
    keepers: ProcessKeepers, make_spec: MakeSpec, make_view: MakeView, real: Path, tmp_path: Path
) -> None:
    view = make_view(
        private=(own(real, sessions=("projects", "*.db")),), sessions=str(tmp_path / "users" / "a.sessions")
    )
    first = make_spec(
        sh="cd ~/.claude; mkdir -p projects/p; echo talk > projects/p/id; echo x > s.db; echo x > settings.json;"
        'ln -s "$REAL" linked.db',
        home=view,
        env={"PATH": "/usr/bin:/bin", "REAL": str(real)},
    )
    await run(keepers, first)
    second = make_spec(sh="cd ~/.claude; find . -type f -o -type l; echo more >> projects/p/id", home=view)
    assert (await run(keepers, second)).error == ""
    assert sorted(await text_of(keepers, second)) == ["./projects/p/id", "./s.db"]
    elsewhere = make_spec(
        sh='cat ~/.claude/projects/p/id; mkdir -p "$REAL/projects"; rm -r ~/.claude; ln -s "$REAL" ~/.claude',
        home=view,
        env={"PATH": "/usr/bin:/bin", "REAL": str(real)},
    )
    assert (await run(keepers, elsewhere)).error == ""
    assert await text_of(keepers, elsewhere) == ["talk", "more"]
    assert (real / "projects").is_dir(), "nothing is moved through a link that the run made"


def follower(sh: str, make_spec: MakeSpec, view: HomeView) -> RunSpec:
    """Return a run that does something when it is told to, and says what its login is."""
    return make_spec(
        sh=f"cd ~/.claude; while read x; do {sh}; cat .credentials.json; echo; done", stdin="pipe", home=view
    )


async def test_a_login_that_is_renewed_in_one_run_reaches_the_user_and_all_other_runs_at_once(
    keepers: ProcessKeepers, make_spec: MakeSpec, make_view: MakeView, real: Path, tmp_path: Path
) -> None:
    file = write_login(real, login("old", 1, mine="kept"))
    file.chmod(0o640)
    needs = (own(real, logins=(LOGIN,)),)
    one, other = (
        follower(":", make_spec, make_view(private=needs, place=tmp_path / "users" / name)) for name in "ab"
    )
    for spec in (one, other):
        await keepers.start(spec)
        await keepers.write(spec.directory, 1, "\n")
        assert json.loads(await first_line(keepers, spec)) == login("old", 1, mine="kept")

    def theirs(spec: RunSpec) -> Any:
        return json.loads((spec.directory / places.HOME / ".claude/.credentials.json").read_text())

    def renew(spec: RunSpec, content: object) -> None:
        """Write as most programs do: a new file, put in the place of the old one."""
        folder = spec.directory / places.HOME / ".claude"
        (folder / "new").write_text(content if isinstance(content, str) else json.dumps(content))
        (folder / "new").rename(folder / ".credentials.json")

    renew(one, login("new", 2, hooks="planted"))
    eventually(lambda: json.loads(file.read_text()) == login("new", 2, mine="kept"))
    eventually(lambda: theirs(other) == login("new", 2, mine="kept"))
    assert file.stat().st_mode & 0o777 == 0o640
    for stub in (
        login("", 0),
        {"oauth": {"access": "", "refresh": "", "expiresAt": 9}},
        {},
        login("older", 1),
    ):
        renew(other, stub)
        eventually(lambda: theirs(other).get("oauth") == login("new", 2)["oauth"])
        assert json.loads(file.read_text()) == login("new", 2, mine="kept"), "logged out, or older"
    renew(other, '{"oauth": ')
    (file.parent / ".credentials.json").write_text(json.dumps(login("by hand", 1)))
    eventually(lambda: theirs(one)["oauth"] == login("by hand", 1)["oauth"])
    # What could be read, and would make the user's file unreadable.
    renew(one, '{"oauth": {"access": "x", "refresh": "x", "expiresAt": 1e999}}')
    renew(other, '{"oauth": {"access": "\\ud800", "refresh": "x", "expiresAt": 9}}')
    for spec in (one, other):
        await keepers.write(spec.directory, 2, "", close=True)
        ended = await keepers.wait(spec.directory)
        assert (ended.error, ended.login_renewed) == ("", True)
    assert json.loads(file.read_text()) == login("by hand", 1), "half a file is never carried back"
    assert [path.name for path in file.parent.iterdir()] == [".credentials.json"], "no draft is left"


async def test_a_killed_keepers_home_is_put_away_and_its_login_kept(
    keepers: ProcessKeepers, make_spec: MakeSpec, make_view: MakeView, real: Path
) -> None:
    file = write_login(real, login("old", 1))
    (real / "dotfile").write_text(file.read_text())
    file.unlink()
    file.symlink_to(real / "dotfile")
    before = contents(real)
    spec = make_spec(
        sh="cd; echo x > junk; echo up; read x; echo up; sleep 300",
        stdin="pipe",
        home=make_view(private=(own(real, logins=(LOGIN,)),)),
    )
    await keepers.start(spec)
    await first_line(keepers, spec)
    keeper_of(spec).kill()
    eventually(lambda: keepers.look(spec.directory).state == "lost")
    (spec.directory / places.HOME / ".claude/.credentials.json").write_text(json.dumps(login("new", 2)))
    assert (spec.directory / places.HOME / "junk").exists()
    ended = await keepers.end(spec.directory)
    assert ended.ended_by == "lost"
    assert not (spec.directory / places.HOME).exists()
    assert not os.path.lexists(make_view().place)
    assert contents(real) == {**before, "dotfile": json.dumps(login("new", 2))}
    assert file.is_symlink(), "a link of the user's own stays one"
