"""The HOME that agents and gates of the real program find."""

import json
from pathlib import Path

import pytest
from tests.acceptance.control.workshop import HALF_DONE, Workshop
from tests.acceptance.sandbox import task

from loopwright.core.rows.model import Plan, Role, Run

LOOK = 'cd; pwd; ls -A; cat .gitconfig; test -e .netrc && cat .netrc; echo dropped > left; echo "$TMPDIR"'


@pytest.fixture
def user(shop: Workshop) -> Path:
    """The user's folder, with a secret in it."""
    user = shop.program.user
    (user / ".gitconfig").write_text("[user]\n\tname = Someone\n")
    (user / ".netrc").write_text("machine x login y password swordfish-9\n")
    (user / ".cache").mkdir()
    return user


def listing(user: Path) -> list[str]:
    return sorted(path.name for path in user.iterdir())


def test_agent_setup_and_gate_have_a_home_of_their_own_without_the_users_secrets(
    shop: Workshop, user: Path
) -> None:
    before = listing(user)
    shop.play({"one": [[{"run": f"({LOOK}) > one"}]]})
    check = (
        f"({LOOK}) > gate; grep -q Someone gate && ! grep swordfish gate && ! grep swordfish one && cat gate"
    )
    settings = {"setup": 'test -e setup || echo "$HOME" > setup'}
    said = shop.run(shop.plan("look", [task("one", check)], settings=settings))
    assert said.code == 0, said.out + said.err
    branch = shop.row(Plan).branch
    home, *seen = shop.git("show", f"{branch}:one").splitlines()
    assert Path(home).parent == shop.home / "users"
    assert seen[:-1] == [".cache", ".gitconfig", "[user]", "\tname = Someone"]
    (run,) = shop.rows(Run, role=Role.IMPLEMENTER)
    assert seen[-1] == str(shop.home / "runs" / run.id / "tmp")
    assert shop.git("show", f"{branch}:setup").strip() == home, "what setup made may remember where HOME was"
    assert listing(user) == before, "nothing was dropped into the user's own"
    assert (user / ".netrc").read_text().startswith("machine x")
    assert list((shop.home / "users").iterdir()) == []
    assert not list((shop.home / "runs").glob("*/home"))


def test_a_secret_is_let_through_by_name(shop: Workshop, user: Path) -> None:
    (user / "diary").write_text("dear diary")
    shop.program.env["LOOPWRIGHT_USER_FOLDER__SHOW"] = ".netrc"
    shop.program.env["LOOPWRIGHT_USER_FOLDER__HIDE"] = "diary"
    shop.play({"one": [[{"run": "cat ~/.netrc; test ! -e ~/diary && echo ok > one"}]]})
    said = shop.run(
        shop.plan("let through", [task("one", "test -s one && test -s ~/.netrc && test ! -e ~/diary")])
    )
    assert said.code == 0, said.out + said.err


def test_the_view_can_be_turned_off_and_config_show_says_by_whom(shop: Workshop, user: Path) -> None:
    shop.program.env["LOOPWRIGHT_USER_FOLDER__PRIVATE"] = "false"
    shop.play({"one": [[{"run": "cp ~/.netrc one; echo mine > ~/left"}]]})
    said = shop.run(shop.plan("open", [task("one", f'test "$HOME" = {user}')]))
    assert said.code == 0, said.out + said.err
    assert (user / "left").read_text() == "mine\n"
    shown = shop("config", "show", "--json").document
    assert "LOOPWRIGHT_USER_FOLDER__PRIVATE" in json.dumps(shown)


def test_an_interrupted_run_leaves_no_home_behind_and_the_next_leg_has_one(
    shop: Workshop, user: Path
) -> None:
    steps = [*HALF_DONE[:1], {"run": "test -e ~/.gitconfig && test ! -e ~/.netrc && cp half whole"}]
    shop.play({"half": [steps]})
    going = shop.start("run", str(shop.plan("half", [task("half", "test -s whole")])))
    shop.until_half()
    assert len(list((shop.home / "users").iterdir())) == 1
    going.interrupt()
    going.end()
    shop.until_quiet()
    assert list((shop.home / "users").iterdir()) == []
    said = shop("resume", timeout=100)
    assert said.code == 0, said.out + said.err
    assert listing(user) == [".cache", ".gitconfig", ".netrc"]
