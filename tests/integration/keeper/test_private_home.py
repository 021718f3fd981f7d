"""A run's own HOME: what it shows, what it keeps, and that nothing of the user's is lost with it."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.keeper.conftest import MakeSpec, first_line, keeper_of, text_of
from tests.waiting import eventually

from loopwright.adapters.keepers import ProcessKeepers
from loopwright.core.homes import HomeView
from loopwright.keeper import places
from loopwright.ports import Exit, RunSpec

MakeView = Callable[..., HomeView]


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
    spec = make_spec(sh=deed, home=make_view(kept=(".claude.json",)))
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


async def test_a_kept_file_that_was_replaced_is_carried_back(
    keepers: ProcessKeepers, make_spec: MakeSpec, make_view: MakeView, real: Path
) -> None:
    (real / ".claude.json").rename(real / "dotfile")
    (real / ".claude.json").symlink_to("dotfile")
    (real / "dotfile").chmod(0o640)
    os.utime(real / "dotfile", (1, 1))
    spec = make_spec(
        sh="""cd; echo '{"login": 2}' > t; mv t .claude.json; echo '{}' > .fresh.json; echo x > .other.json""",
        home=make_view(kept=(".claude.json", ".fresh.json", ".new/login.json", ".config/tool/settings")),
    )
    ended = await run(keepers, spec)
    assert ended.error == ""
    assert (real / ".claude.json").is_symlink(), "a link of the user's own stays one"
    assert json.loads((real / "dotfile").read_text()) == {"login": 2}
    assert (real / "dotfile").stat().st_mode & 0o777 == 0o640
    assert (real / ".fresh.json").read_text() == "{}\n"
    assert not (real / ".other.json").exists()
    assert not [path for path in real.iterdir() if path.name.endswith(spec.directory.name)]


async def test_of_two_runs_the_one_that_wrote_last_wins_not_the_one_that_ended_last(
    keepers: ProcessKeepers, make_spec: MakeSpec, make_view: MakeView, tmp_path: Path, real: Path
) -> None:
    os.utime(real / ".claude.json", (1, 1))
    replace = 'cd; echo \'{"login": "%s"}\' > t; touch -d @%d t; mv t .claude.json; echo done; read x'
    specs = [
        make_spec(
            sh=replace % (who, at),
            stdin="pipe",
            home=make_view(kept=(".claude.json",), place=tmp_path / "users" / who),
        )
        for who, at in (("early", 1000), ("late", 2000))
    ]
    for spec in specs:
        await keepers.start(spec)
        assert await first_line(keepers, spec) == "done"
    for spec in reversed(specs):
        await keepers.write(spec.directory, 1, "\n")
        assert (await keepers.wait(spec.directory)).error == ""
    assert json.loads((real / ".claude.json").read_text()) == {"login": "late"}
    assert (real / ".claude.json").stat().st_mtime == 2000


@pytest.mark.parametrize("half", ['{"login": ', ""])
async def test_half_a_file_is_never_carried_back(
    keepers: ProcessKeepers, make_spec: MakeSpec, make_view: MakeView, real: Path, half: str
) -> None:
    os.utime(real / ".claude.json", (1, 1))
    spec = make_spec(
        sh=f"cd; rm .claude.json; printf '%s' '{half}' > .claude.json; kill -9 $$",
        home=make_view(kept=(".claude.json",)),
    )
    await run(keepers, spec)
    assert (real / ".claude.json").read_text() == '{"login": 1}'


async def test_a_folder_that_is_kept_is_made_and_outlives_the_run(
    keepers: ProcessKeepers, make_spec: MakeSpec, make_view: MakeView, real: Path
) -> None:
    write = make_spec(sh="cd; echo talk > .claude/session", home=make_view(kept=(".claude/",)))
    await run(keepers, write)
    read = make_spec(sh="cd; cat .claude/session", home=make_view(kept=(".claude/",)))
    await run(keepers, read)
    assert await text_of(keepers, read) == ["talk"]
    assert (real / ".claude").stat().st_mode & 0o777 == 0o700


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


async def test_a_killed_keepers_home_is_put_away_and_its_login_kept(
    keepers: ProcessKeepers, make_spec: MakeSpec, make_view: MakeView, real: Path
) -> None:
    before = contents(real)
    os.utime(real / ".claude.json", (1, 1))
    spec = make_spec(
        sh="""cd; echo '{"login": 3}' > t; mv t .claude.json; echo x > junk; echo up; sleep 300""",
        home=make_view(kept=(".claude.json",)),
    )
    await keepers.start(spec)
    await first_line(keepers, spec)
    keeper_of(spec).kill()
    eventually(lambda: keepers.look(spec.directory).state == "lost")
    assert (spec.directory / places.HOME / "junk").exists()
    ended = await keepers.end(spec.directory)
    assert ended.ended_by == "lost"
    assert not (spec.directory / places.HOME).exists()
    assert not os.path.lexists(make_view().place)
    assert contents(real) == {**before, ".claude.json": '{"login": 3}\n'}


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
    kept = () if odd == "the root" else (".claude/", ".claude.json")
    spec = make_spec(
        sh="cd && echo x > y && cat y; ls -d etc .claude", home=make_view(real=folder, kept=kept)
    )
    ended = await run(keepers, spec)
    said = await text_of(keepers, spec)
    assert ended.error == ""
    assert said[0] == "x"
    assert ("etc" in said) is (odd == "the root")
    assert (".claude" in said) is (odd == "unreadable")
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
