"""What of the user's HOME a run is shown."""

import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from loopwright.adapters.agents.claude import ClaudeAgent
from loopwright.adapters.user_folder import HIDDEN, Views, user_folder
from loopwright.core.accounts import Account
from loopwright.core.homes import HomePath, HomeView
from loopwright.engine.accounts import drawing
from loopwright.ports import AgentRequest, Invocation

USER = Path("/nowhere/user")
PLACE = Path("/nowhere/home/users/a")
CLAUDE = ClaudeAgent().invocation(
    AgentRequest(prompt="p", workspace=Path("/w"), run_directory=Path("/r"), options={})
)


def seen(
    env: dict[str, str] | None = None, invocation: Invocation | None = None, **more: Any
) -> tuple[dict[str, str], HomeView]:
    return Views(**{"real": USER, "own": (), **more})(env or {}, invocation, PLACE)


def test_well_known_secrets_are_hidden_and_what_tools_need_is_not() -> None:
    _, view = seen()
    assert {".ssh", ".aws", ".config/gh", ".docker/config.json", ".bash_history"} <= set(view.hidden)
    assert not {".gitconfig", ".npmrc", ".config", ".cache", ".local", ".cargo", ".m2"} & set(view.hidden)
    assert (view.real, view.place, view.shown, view.kept) == (str(USER), str(PLACE), (), ())


def test_every_hidden_path_is_plain() -> None:
    for path in HIDDEN:
        assert path == Path(path).as_posix()
        assert not Path(path).is_absolute()
    assert len(set(HIDDEN)) == len(HIDDEN)


def test_the_user_lets_one_through_and_hides_another() -> None:
    _, view = seen(show=(".netrc", ".ssh/known_hosts", ".config/"), hide=("diary", ".config/notes"))
    assert ".netrc" not in view.hidden
    assert ".config/gh" not in view.hidden, "what is shown is shown whole"
    assert {"diary", ".ssh", ".config/notes"} <= set(view.hidden)
    assert view.shown == (".netrc", ".ssh/known_hosts", ".config")


def test_what_is_hidden_by_hand_is_hidden_from_those_who_need_it_too() -> None:
    _, view = seen(invocation=CLAUDE, show=(".netrc",), hide=(".netrc", ".claude"))
    assert {".netrc", ".claude"} <= set(view.hidden)
    assert (view.shown, view.kept) == ((), (".claude.json",))


def test_loopwrights_own_folders_are_hidden_where_they_are_in_home() -> None:
    own = (USER / ".local/share/loopwright", USER / ".config/loopwright", Path("/srv/loopwright"), USER)
    _, view = seen(own=own)
    assert set(view.hidden) - set(HIDDEN) == {".local/share/loopwright", ".config/loopwright"}


def test_loopwrights_own_folder_is_hidden_by_its_real_path_too(tmp_path: Path) -> None:
    (tmp_path / "disk/user/lw").mkdir(parents=True)
    (tmp_path / "home").symlink_to(tmp_path / "disk")
    _, view = seen(real=tmp_path / "home/user", own=(tmp_path / "disk/user/lw",))
    assert "lw" in view.hidden


def test_an_agent_gets_what_it_declares_even_where_it_would_be_hidden() -> None:
    needs = (HomePath(path=".aws/config"), HomePath(path=".config/gh/", writable=True))
    _, view = seen(invocation=Invocation(argv=("x",), home=needs))
    assert view.shown == (".aws/config",)
    assert view.kept == (".config/gh/",)
    assert ".config/gh" not in view.hidden
    assert ".aws" in view.hidden


@pytest.mark.parametrize(
    ("env", "kept"),
    [
        ({}, (".claude/", ".claude.json")),
        ({"CLAUDE_CONFIG_DIR": "/nowhere/user/.claude-work"}, ()),
    ],
)
def test_claude_keeps_its_login_unless_a_variable_says_where_else(
    env: dict[str, str], kept: tuple[str, ...]
) -> None:
    given, view = seen(env, CLAUDE)
    assert view.kept == kept
    assert {name: given[name] for name in env} == env, "the place that it names is the real one"


def test_variables_that_name_folders_in_home_name_them_in_the_view() -> None:
    env = {
        "HOME": str(USER),
        "XDG_CONFIG_HOME": f"{USER}/cfg",
        "XDG_DATA_HOME": "/data",
        "XDG_STATE_HOME": f"{USER}/../other",
    }
    given, view = seen(env)
    assert given == {
        "HOME": str(PLACE),
        "XDG_CONFIG_HOME": f"{PLACE}/cfg",
        "XDG_DATA_HOME": "/data",
        "XDG_STATE_HOME": f"{USER}/../other",
        "XDG_CACHE_HOME": f"{USER}/.cache",
    }
    assert "cfg/gh" in view.hidden


def test_a_cache_folder_of_the_users_choice_stays() -> None:
    given, _ = seen({"XDG_CACHE_HOME": f"{USER}/warm"})
    assert given["XDG_CACHE_HOME"] == f"{USER}/warm"


def test_without_home_the_systems_entry_of_the_user_counts() -> None:
    assert user_folder({"HOME": "/h"}) == Path("/h")
    entry = Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert user_folder({"HOME": "relative"}) == user_folder({}) == entry


def on_account(home: str) -> tuple[dict[str, str], HomeView]:
    """Return what a run on an account with this home sees."""
    drawn = drawing(CLAUDE, "claude", Account(name="work", home=home))
    accounts = (USER / ".claude-work", USER / "more/claude", Path("/srv/claude"), USER / ".claude")
    return seen(dict(drawn.env), drawn, accounts=accounts)


def test_a_run_sees_the_home_of_its_own_account_and_of_no_other() -> None:
    _, view = on_account(str(USER / ".claude-work"))
    assert view.kept == (".claude-work/",)
    assert {".claude", ".claude.json", "more/claude"} <= set(view.hidden)
    assert ".claude-work" not in view.hidden


def test_an_account_elsewhere_needs_no_showing_and_the_usual_one_is_hidden_from_it() -> None:
    _, view = on_account("/srv/claude")
    assert view.kept == ()
    assert {".claude", ".claude.json", ".claude-work", "more/claude"} <= set(view.hidden)


def test_the_usual_home_named_as_an_account_is_shown_to_it() -> None:
    _, view = on_account(str(USER / ".claude"))
    assert view.kept == (".claude/",)
    assert ".claude" not in view.hidden
    assert {".claude-work", ".claude.json"} <= set(view.hidden)


def test_gates_see_the_home_of_no_account() -> None:
    _, view = seen(accounts=(USER / ".claude-work",))
    assert ".claude-work" in view.hidden


def test_a_home_that_the_user_moved_hides_nothing_more() -> None:
    _, view = seen({"CLAUDE_CONFIG_DIR": str(USER / ".other")}, CLAUDE)
    assert set(view.hidden) == set(HIDDEN)
