"""How each agent is started."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each_case
from tests.refusals import raises_code
from tests.unit.agents.acp.recordings import TOOLS, request

from loopwright.adapters.agents.acp.agent import AcpAgent
from loopwright.adapters.agents.acp.profiles import PROFILES
from loopwright.core.values.errors import BadConfig
from loopwright.core.values.permissions import Access, Permissions
from loopwright.ports import CAPABILITIES, Invocation

NAMED = [name for name in PROFILES if name != "acp"]


def started(name: str, **given: Any) -> Invocation:
    agent = AcpAgent(profile=PROFILES[name])
    options = {"command": "agent --acp"} if name == "acp" else {}
    return agent.invocation(request(**{"options": options, **given}))


ARGV = {
    "acp": ("agent", "--acp"),
    "gemini": ("gemini", "--acp"),
    "opencode": ("opencode", "acp", "--print-logs", "--log-level", "ERROR"),
    "goose": ("goose", "acp"),
    "qwen": ("qwen", "--acp"),
    "copilot": ("copilot", "--acp"),
    "claude-acp": ("claude-agent-acp",),
}


@each_case("name", PROFILES)
def test_it_is_started_with_an_open_stdin_and_told_its_work_there(name: str) -> None:
    found = started(name, prompt="a secret plan")
    assert found.argv == ARGV[name]
    assert found.stdin == "pipe"
    hello = json.loads(found.stdin_data)
    assert hello["method"] == "initialize"
    assert hello["params"]["clientCapabilities"] == {
        "fs": {"readTextFile": False, "writeTextFile": False},
        "terminal": False,
    }
    assert "a secret plan" not in repr(found), "it is said in the conversation"


@each_case("name", PROFILES)
def test_its_name_and_its_capabilities_are_those_of_its_profile(name: str) -> None:
    agent = AcpAgent(profile=PROFILES[name])
    assert agent.name == name
    assert agent.capabilities <= CAPABILITIES
    assert ("resume" in agent.capabilities) is bool(PROFILES[name].goes_on_by)


@each_case(
    ("name", "argv", "env"),
    [
        ("gemini", ("--model", "m"), {}),
        ("qwen", ("--model", "m"), {}),
        ("copilot", ("--model", "m"), {}),
        ("goose", (), {"GOOSE_MODEL": "m"}),
        ("claude-acp", (), {"ANTHROPIC_MODEL": "m"}),
        ("opencode", (), {}),
        ("acp", (), {}),
    ],
)
def test_a_model_is_told_before_the_start_where_it_cannot_be_told_later(
    name: str, argv: tuple[str, ...], env: dict[str, str]
) -> None:
    plain, chosen = started(name), started(name, model="m")
    assert chosen.argv == (*plain.argv, *argv)
    assert dict(chosen.env) == {**plain.env, **env}


def test_a_number_of_turns_is_told_to_who_can_count_them() -> None:
    assert started("goose", options={"max_turns": 5}).env["GOOSE_MAX_TURNS"] == "5"
    with raises_code("agent_option_unknown"):
        started("gemini", options={"max_turns": 5})
    assert "turns" in PROFILES["goose"].capabilities
    assert "GOOSE_MAX_TURNS" not in started("goose").env


@each_case(("name", "variable"), [("goose", "GOOSE_MODE"), ("opencode", "OPENCODE_PERMISSION")])
def test_it_asks_from_the_start_unless_it_may_do_everything(name: str, variable: str) -> None:
    values = {
        access: started(name, permissions=Permissions(access=access)).env[variable] for access in Access
    }
    assert values[Access.READ_ONLY] == values[Access.EDIT] != values[Access.SANDBOXED_ALL]


def test_opencode_asks_for_everything_that_is_not_only_looking() -> None:
    told = json.loads(started("opencode").env["OPENCODE_PERMISSION"])
    assert told["*"] == "ask"
    assert {name for name, what in told.items() if what == "allow"}.isdisjoint({"edit", "bash", "webfetch"})


def test_gemini_finds_defaults_in_the_runs_own_folder() -> None:
    found = started("gemini")
    path = Path(found.env["GEMINI_CLI_SYSTEM_DEFAULTS_PATH"])
    assert path.parent == Path("/run")
    settings = json.loads(found.files[path.name])
    assert settings["security"]["auth"]["selectedType"] == "gemini-api-key"
    assert settings["general"]["maxAttempts"] == 3
    assert found.env["GEMINI_CLI_NO_RELAUNCH"] == "true"
    assert found.env["GEMINI_CLI_TRUST_WORKSPACE"] == "true"


@each_case(
    ("name", "env"),
    [
        ("opencode", {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_PROJECT_CONFIG": "1"}),
        ("goose", {"GOOSE_TELEMETRY_ENABLED": "false"}),
        ("copilot", {"COPILOT_AUTO_UPDATE": "false"}),
        (
            "claude-acp",
            {
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
                "DISABLE_TELEMETRY": "1",
                "DISABLE_ERROR_REPORTING": "1",
            },
        ),
    ],
)
def test_it_neither_updates_itself_nor_calls_home(name: str, env: dict[str, str]) -> None:
    assert env.items() <= started(name).env.items()


def test_gemini_neither_updates_itself_nor_calls_home() -> None:
    settings = json.loads(started("gemini").files["gemini-defaults.json"])
    assert settings["general"].items() >= {"enableAutoUpdate": False, "disableAutoUpdate": True}.items()
    assert settings["privacy"] == {"usageStatisticsEnabled": False}
    assert settings["telemetry"] == {"enabled": False}


def test_opencode_shares_nothing_and_goes_on_after_a_refusal() -> None:
    settings = json.loads(started("opencode").env["OPENCODE_CONFIG_CONTENT"])
    assert (settings["autoupdate"], settings["share"]) == (False, "disabled")
    assert settings["experimental"]["continue_loop_on_deny"] is True


def test_claude_does_not_retry_for_minutes_behind_the_protocol() -> None:
    assert int(started("claude-acp").env["CLAUDE_CODE_MAX_RETRIES"]) <= 5


def test_what_is_tried_again_is_told_on_stderr_by_who_keeps_it_to_itself() -> None:
    assert started("gemini").env["GEMINI_DEBUG_LOG_FILE"] == "/dev/stderr"
    assert "--print-logs" in started("opencode").argv


def test_gemini_is_not_waited_for_where_it_never_leaves() -> None:
    assert (started("gemini", tools=TOOLS).done_grace_s or 60.0) < 10.0
    assert started("gemini").done_grace_s is None
    assert started("goose", tools=TOOLS).done_grace_s is None


def test_claude_is_told_that_it_sits_in_a_sandbox_only_where_it_may_do_everything() -> None:
    free = Permissions(access=Access.SANDBOXED_ALL)
    assert started("claude-acp", permissions=free).env["IS_SANDBOX"] == "1"
    assert "IS_SANDBOX" not in started("claude-acp").env


def test_copilot_is_told_what_is_refused_because_a_refusal_would_end_its_turn() -> None:
    argv = {access: started("copilot", permissions=Permissions(access=access)).argv for access in Access}
    assert argv[Access.EDIT] == ("copilot", "--acp")
    assert argv[Access.READ_ONLY][2:] == ("--deny-tool=write", "--deny-tool=shell")
    assert argv[Access.SANDBOXED_ALL][2:] == ("--allow-all-tools", "--allow-all-paths")


def test_qwen_has_no_tools_to_change_anything_where_it_may_only_read() -> None:
    argv = started("qwen", permissions=Permissions(access=Access.READ_ONLY)).argv
    assert argv[2:] == (
        "--exclude-tools=edit",
        "--exclude-tools=write_file",
        "--exclude-tools=run_shell_command",
    )
    assert started("qwen").argv == ("qwen", "--acp")


def test_copilot_is_told_of_tool_servers_in_a_file_because_their_variables_may_be_secret() -> None:
    found = started("copilot", tools=TOOLS)
    assert found.argv[-2:] == ("--additional-mcp-config", "@/run/tools.json")
    server = json.loads(found.files["tools.json"])["mcpServers"]["loopwright"]
    assert server["command"] == "/usr/bin/python3"
    assert server["args"] == ["toy_mcp.py"]
    assert started("copilot").files == {}


def test_qwen_lets_our_own_tools_pass_because_it_does_not_name_tools() -> None:
    assert started("qwen", tools=TOOLS).argv[-2:] == (
        "--allowed-tools=mcp__loopwright__ask",
        "--allowed-tools=mcp__loopwright__discovered",
    )
    assert (
        "--allowed-tools=mcp__loopwright__ask" not in started("qwen", tools={"toy": TOOLS["loopwright"]}).argv
    )


@each_case("name", NAMED)
def test_it_names_all_that_it_has_in_home(name: str) -> None:
    own = {
        "goose": {".config/goose/", ".local/share/goose/", ".local/state/goose/"},
        "opencode": {
            ".config/opencode/",
            ".local/share/opencode/",
            ".local/state/opencode/",
            ".cache/opencode/",
        },
        "claude-acp": {".claude/", ".claude.json"},
    }
    own["goose"] |= {".goose/", ".config/agents/"}
    home = {one.path for one in started(name).home if not one.shared}
    assert home - {".agents/"} == own.get(name, {f".{name}/"})
    assert name == "claude-acp" or ".agents/" in home


@each_case("name", PROFILES)
def test_a_conversation_is_on_the_record_only_where_it_can_be_gone_on_with(name: str) -> None:
    goes_on = bool(PROFILES[name].goes_on_by)
    assert started(name, session_ref="s").session_ref == ("s" if goes_on else None)
    assert started(name, session_ref="s", fork=True).session_ref is None


@each_case("name", NAMED)
def test_its_program_and_more_arguments_can_be_set(name: str) -> None:
    found = started(name, options={"binary": "/opt/agent", "extra_args": ["--verbose"], "auth": "key"})
    assert found.argv[0] == "/opt/agent"
    assert "--verbose" in found.argv


@each_case("name", NAMED)
def test_its_version_is_asked_of_its_program(name: str) -> None:
    assert AcpAgent(profile=PROFILES[name]).probe() == (ARGV[name][0], "--version")


@each_case(
    ("command", "argv"),
    [("my 'own agent' --acp", ("my", "own agent", "--acp")), (["my agent", "$x"], ("my agent", "$x"))],
)
def test_any_program_can_be_given_as_a_line_or_as_words(command: Any, argv: tuple[str, ...]) -> None:
    assert started("acp", options={"command": command}).argv == argv


@each_case(
    ("name", "options", "words"),
    [
        ("acp", {}, "option command is missing"),
        ("acp", {"command": ""}, "option command is missing"),
        ("acp", {"command": "a 'b"}, "not a command"),
        ("acp", {"command": 7}, "must be a list of texts"),
        ("acp", {"command": "a", "binary": "b"}, "unknown option binary"),
        ("acp", {"command": "a", "mode": ""}, "option mode must be a text"),
        ("goose", {"command": "a"}, "unknown option command"),
        ("goose", {"binary": 7}, "option binary must be a text"),
        ("goose", {"extra_args": "x"}, "must be a list of texts"),
        ("goose", {"auth": " "}, "option auth must be a text"),
    ],
)
def test_a_wrong_option_is_said_before_anything_starts(name: str, options: Any, words: str) -> None:
    with pytest.raises(BadConfig, match=words):
        started(name, options=options)
