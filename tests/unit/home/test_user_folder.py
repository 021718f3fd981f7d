"""What of the user's HOME a run is shown."""

import os
import pwd
from pathlib import Path
from typing import Any

from loopwright.adapters import registry
from loopwright.adapters.agents.claude.claude import ClaudeAgent
from loopwright.adapters.home.user_folder import HIDDEN, Views, user_folder
from loopwright.core.values.accounts import Account
from loopwright.core.values.containment import HomePath, HomeView
from loopwright.engine.money.quotas import drawing
from loopwright.ports import AgentRequest, Invocation

USER = Path("/nowhere/user")
PLACE = Path("/nowhere/home/users/a")
CLAUDE = ClaudeAgent().invocation(
    AgentRequest(prompt="p", workspace=Path("/w"), run_directory=Path("/r"), options={})
)


def seen(
    env: dict[str, str] | None = None, invocation: Invocation | None = None, **more: Any
) -> tuple[dict[str, str], HomeView]:
    given, view = Views(**{"real": USER, "own": (), **more})(env or {}, invocation, PLACE)
    assert view is not None
    return given, view


def copies(view: HomeView) -> dict[str, str]:
    return {one.path: one.source for one in view.private}


def invoked(name: str) -> Invocation:
    request = AgentRequest(prompt="p", workspace=Path("/w"), run_directory=Path("/r"), options={})
    return registry.agent(name).invocation(request)


def test_well_known_secrets_are_hidden_and_what_tools_need_is_not() -> None:
    _, view = seen()
    assert {".ssh", ".aws", ".config/gh", ".docker/config.json", ".bash_history"} <= set(view.hidden)
    assert not {".gitconfig", ".npmrc", ".config", ".cache", ".local", ".cargo", ".m2"} & set(view.hidden)
    assert (view.real, view.place, view.shown, view.private) == (str(USER), str(PLACE), (), ())


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
    assert (view.shown, copies(view)) == ((), {".claude.json": f"{USER}/.claude.json"})


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
    needs = (HomePath(path=".aws/config"), HomePath(path=".config/gh/"), HomePath(path=".netrc", shared=True))
    _, view = seen(invocation=Invocation(argv=("x",), home=needs))
    assert copies(view) == {".aws/config": f"{USER}/.aws/config", ".config/gh/": f"{USER}/.config/gh"}
    assert view.shown == (".netrc",)
    assert ".config/gh" not in view.hidden
    assert ".aws" in view.hidden


def test_claude_has_a_copy_wherever_the_user_has_it() -> None:
    _, usual = seen({}, CLAUDE)
    assert copies(usual) == {".claude/": f"{USER}/.claude", ".claude.json": f"{USER}/.claude.json"}
    assert usual.sessions == f"{PLACE}.sessions"
    for folder, place in ((f"{USER}/.claude-work", ".claude-work"), ("/srv/x", ".claude_config_dir")):
        given, moved = seen({"CLAUDE_CONFIG_DIR": folder}, CLAUDE)
        assert copies(moved) == {f"{place}/": folder, f"{place}/.claude.json": f"{folder}/.claude.json"}
        assert given["CLAUDE_CONFIG_DIR"] == f"{PLACE}/{place}", "the user's own is out of its way"
        assert set(moved.hidden) == {*HIDDEN, ".claude", ".claude.json"}


def test_goose_and_gemini_have_theirs_below_the_folder_that_a_variable_names() -> None:
    for name, variable, folder, expected in (
        ("gemini", "GEMINI_CLI_HOME", f"{USER}/g", {"g/.gemini/": f"{USER}/g/.gemini"}),
        ("gemini", "GEMINI_CLI_HOME", str(USER), {".gemini/": f"{USER}/.gemini"}),
        ("goose", "GOOSE_PATH_ROOT", "/srv/x", {".goose_path_root/data/": "/srv/x/data"}),
    ):
        given, view = seen({variable: folder}, invoked(name))
        assert expected.items() <= copies(view).items(), name
        (path,) = expected
        assert f"{PLACE}/{path}".startswith(given[variable])


def test_a_cache_of_the_agents_own_is_looked_for_in_the_view() -> None:
    given, view = seen({"XDG_CONFIG_HOME": f"{USER}/cfg"}, invoked("opencode"))
    assert given["XDG_CACHE_HOME"] == f"{PLACE}/.cache"
    assert copies(view)["cfg/opencode/"] == f"{USER}/cfg/opencode"


def test_without_a_private_home_only_what_belongs_to_the_agent_is_a_copy() -> None:
    env, none = Views(real=USER, own=(), whole=True)({"HOME": str(USER)}, None, PLACE)
    assert (env, none) == ({"HOME": str(USER)}, None)
    env, view = seen({"HOME": str(USER)}, CLAUDE, whole=True)
    assert (env["HOME"], view.hidden, view.whole) == (str(PLACE), (), True)
    assert set(copies(view)) == {".claude/", ".claude.json"}


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


def test_a_run_has_a_copy_of_its_own_accounts_home_and_sees_no_other() -> None:
    for home, place in (
        (USER / ".claude-work", ".claude-work"),
        (USER / ".claude", ".claude"),
        (Path("/srv/claude"), ".claude_config_dir"),
    ):
        _, view = on_account(str(home))
        assert copies(view) == {f"{place}/": str(home), f"{place}/.claude.json": f"{home}/.claude.json"}
        others = {".claude", ".claude-work", "more/claude", ".claude.json"} - {home.name}
        assert others == set(view.hidden) - set(HIDDEN)


def test_gates_see_the_home_of_no_account() -> None:
    _, view = seen(accounts=(USER / ".claude-work",))
    assert ".claude-work" in view.hidden
