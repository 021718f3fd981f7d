"""Claude Code, run headless and spoken to over its control protocol: how it is started."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from loopwright.adapters.agents import options
from loopwright.adapters.agents.claude import claude_control, claude_dialogue, claude_verdict
from loopwright.adapters.agents.claude.claude_dialogue import ClaudeState
from loopwright.core.values.containment import HomePath, Login
from loopwright.core.values.errors import BadConfig
from loopwright.core.values.permissions import OWN_TOOLS, Access
from loopwright.ports import (
    CAPABILITIES,
    AgentRequest,
    AgentResult,
    Exit,
    Folded,
    Invocation,
    OutputLine,
    Spent,
)

_MISPLACED: Final = ("EnterPlanMode", "EnterWorktree", "CronCreate", "ScheduleWakeup", "Monitor")
"""Tools that have no place in a run: they wait for a person's yes to a plan, leave the workspace, or promise to wake
a conversation that has ended by then."""
_EDITING: Final = ("Edit", "Write", "NotebookEdit")

_MODES: Final[Mapping[Access, tuple[str, ...]]] = MappingProxyType(
    {
        Access.READ_ONLY: (
            *("--permission-mode", "dontAsk", "--allowedTools", ",".join(OWN_TOOLS)),
            *("--disallowedTools", ",".join((*_MISPLACED, *_EDITING))),
        ),
        # The mode that asks us before every edit and command but those that only look. `acceptEdits` would let
        # commands such as `rm` and `mv` pass by itself.
        Access.EDIT: ("--permission-mode", "default", "--disallowedTools", ",".join(_MISPLACED)),
        Access.SANDBOXED_ALL: (
            *("--permission-mode", "bypassPermissions"),
            *("--disallowedTools", ",".join(_MISPLACED)),
        ),
    }
)

_INHERITED: Final = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_MODEL",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CONFIG_DIR",
)

_CREDENTIALS: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")

HOME: Final = (
    HomePath(
        path=".claude/",
        moved_by="CLAUDE_CONFIG_DIR",
        left=(
            "history.jsonl", "todos", "tasks", "sessions", "session-env", "shell-snapshots", "file-history", "statsig",
            "telemetry", "debug", "logs", "ide", "backups", "cache", "paste-cache", "plans", "uploads", "usage-data",
            "jobs", "daemon", "teams", "traces", "dump-prompts", ".claude.json", ".oauth_refresh.lock",
        ),
        sessions=("projects",),
        transcript=r"projects/{cwd}/{id}\.jsonl",
        logins=tuple(
            Login(file=".credentials.json", at=at, expires="expiresAt", tokens=("accessToken", "refreshToken"))
            for at in ("claudeAiOauth", "mcpOAuth.*")
        ),
    ),
    HomePath(path=".claude.json", moved_by="CLAUDE_CONFIG_DIR", below=".claude.json"),
)  # fmt: skip
"""What Claude Code has in HOME, however it is spoken to."""

_OURS: Final = frozenset(
    {
        "-p", "--print", "--output-format", "--input-format", "--verbose", "--permission-mode", "--model",
        "--dangerously-skip-permissions", "--allow-dangerously-skip-permissions", "--session-id", "--resume",
        "-r", "--continue", "-c", "--fork-session", "--no-session-persistence", "--max-turns", "--bg",
        "--background", "--worktree", "-w", "--include-partial-messages", "--permission-prompt-tool",
        "--permission-prompts", "--max-budget-usd", "--json-schema", "--append-system-prompt",
    }
)  # fmt: skip
"""Arguments that are set elsewhere, or would break the reading of the output."""

_MOST_RETRIES: Final = 5
"""The program's own default of 10 keeps a run with a wrong key waiting for minutes."""

_TOOLS_FILE: Final = "tools.json"

_DONE: Final = (
    r'^\{(?!"type":"(?:assistant|user|system|stream_event|control_[a-z_]+)")'
    r'(?=.*"type":"result")(?=.*"is_error":(?:true|false))(?=.*"num_turns":\d)'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeAgent:
    """Codec for `claude -p` with stream-json both ways."""

    binary: str = "claude"
    name: str = field(default="claude", init=False)
    capabilities: frozenset[str] = field(default=CAPABILITIES, init=False)
    tested: tuple[str, str] = field(default=("2.1.248", "2.1.325"), init=False)
    """The oldest and the newest version that it was tried with."""

    def invocation(self, request: AgentRequest) -> Invocation:
        """Return how to start it; the prompt is said to it once it listens."""
        given = request.options
        options.only(self.name, given, ("binary", "max_turns", "instructions", "extra_args", "max_retries"))
        told = options.instructions(self.name, given)
        session_ref, conversation = _conversation(request)
        argv = (
            options.text(self.name, given, "binary") or self.binary,
            *("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
            *("--permission-prompt-tool", "stdio"),
            # What lies in the workspace may be the agent's own work: hooks, servers and rules that it put into
            # settings there would act without permission. Its CLAUDE.md is read all the same, as that of a folder.
            *("--setting-sources", "user", "--add-dir", str(request.workspace)),
            *_MODES[request.permissions.access],
            *(("--model", request.model) if request.model else ()),
            *conversation,
            *_limits(request),
            *(("--append-system-prompt", told) if told else ()),
            *(("--json-schema", json.dumps(request.schema)) if request.schema is not None else ()),
            *_tools(request),
            *_extra_arguments(given),
        )
        return Invocation(
            argv=argv,
            env=_environment(request),
            inherit=_INHERITED,
            credentials=_CREDENTIALS,
            home=HOME,
            stdin="pipe",
            stdin_data=claude_control.opening(),
            files={_TOOLS_FILE: _servers(request)} if request.tools else {},
            done_pattern=_DONE,
            # Not SIGINT: in this mode it then leaves at once, without a result and its cost.
            interrupt=claude_control.interrupt(),
            session_ref=session_ref,
        )

    def initial(self, request: AgentRequest | None = None, *, before: Spent | None = None) -> ClaudeState:
        """Return the state before the first line."""
        return ClaudeState(request=request, before=before or Spent())

    def fold(self, state: ClaudeState, line: OutputLine) -> Folded:
        """Take in one line of output."""
        folded = claude_dialogue.fold(state, line)
        windows = folded.state.seen.windows
        return replace(
            folded,
            stops=folded.state.is_stopping and not state.is_stopping,
            windows=windows if windows != state.seen.windows else (),
        )

    def interrupt(self, state: ClaudeState) -> tuple[str, ...]:
        """Return the request to stop the turn, while there is one."""
        return (claude_control.interrupt(),) if state.stage == "working" else ()

    def result(self, state: ClaudeState, exit: Exit) -> AgentResult:
        """Judge the run."""
        return claude_verdict.judge(state, exit)

    def probe(self) -> tuple[str, ...]:
        """Return the command that prints the program's version."""
        return (self.binary, "--version")


def _conversation(request: AgentRequest) -> tuple[str, tuple[str, ...]]:
    """Return the id of the conversation, and the arguments that begin it, continue it or copy it."""
    if request.session_ref and not request.fork:
        return request.session_ref, ("--resume", request.session_ref)
    fresh = str(uuid5(NAMESPACE_URL, str(request.run_directory)))
    copied = ("--resume", request.session_ref, "--fork-session") if request.session_ref else ()
    return fresh, (*copied, "--session-id", fresh)


def _limits(request: AgentRequest) -> tuple[str, ...]:
    turns = options.most_turns("claude", request.options)
    budget = request.max_cost_micros
    return (
        *(("--max-turns", str(turns)) if turns is not None else ()),
        # A budget of nothing is not a budget to the program.
        *(("--max-budget-usd", f"{max(budget, 1) / 1_000_000:.6f}") if budget is not None else ()),
    )


def _tools(request: AgentRequest) -> tuple[str, ...]:
    """Give it these servers and no others; they are in a file, since their variables may be secret."""
    if not request.tools:
        return ()
    return ("--mcp-config", str(request.run_directory / _TOOLS_FILE), "--strict-mcp-config")


def _servers(request: AgentRequest) -> str:
    servers = {
        name: {"type": "stdio", "command": one.command, "args": list(one.args), "env": dict(one.env)}
        for name, one in request.tools.items()
    }
    return json.dumps({"mcpServers": servers})


def _extra_arguments(given: Mapping[str, Any]) -> tuple[str, ...]:
    extra = options.texts("claude", given, "extra_args")
    for argument in extra:
        if argument.split("=", 1)[0] in _OURS:
            raise BadConfig(
                f"agent claude: extra_args must not contain {argument}",
                code="agent_option_reserved",
                hint="permission mode, model, turns and instructions have settings of their own",
            )
    return extra


def _environment(request: AgentRequest) -> dict[str, str]:
    retries = options.number("claude", request.options, "max_retries", least=0, most=_MOST_RETRIES)
    env = {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "CLAUDE_CODE_MAX_RETRIES": str(2 if retries is None else retries),
        # A result must be the end: work after it could neither ask nor be counted.
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
        "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1",
    }
    if request.permissions.access is Access.SANDBOXED_ALL:
        # As root the program refuses to skip permissions unless it is told that it sits in a sandbox.
        env["IS_SANDBOX"] = "1"
    return env
