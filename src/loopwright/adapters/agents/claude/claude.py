"""Claude Code, run headless and spoken to over its control protocol: how it is started and judged."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from loopwright.adapters.agents import endings, options
from loopwright.adapters.agents.claude import claude_control, claude_dialogue
from loopwright.adapters.agents.claude.claude_dialogue import ClaudeState, spent
from loopwright.adapters.agents.claude.claude_stream import Ending, Seen
from loopwright.adapters.agents.endings import by_status
from loopwright.core.values.containment import HomePath, Login
from loopwright.core.values.errors import BadConfig
from loopwright.core.values.failures import Failure
from loopwright.core.values.permissions import LOOP_TOOLS, OWN_TOOLS, Access
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

# What a run of Claude Code came to: the rules by which its last words and its end are judged.

_BY_REASON: Final[Mapping[str, Failure]] = MappingProxyType(
    {
        "prompt_too_long": Failure.CONTEXT,
        "max_turns": Failure.TURNS,
        "error_max_turns": Failure.TURNS,
        "budget_exhausted": Failure.BUDGET,
        "error_max_budget_usd": Failure.BUDGET,
        # Loopwright did not interrupt it (that is known before), so something else on this machine did.
        "aborted_streaming": Failure.CRASH,
        "aborted_tools": Failure.CRASH,
    }
)
_BY_ERROR: Final[Mapping[str, Failure]] = MappingProxyType(
    {
        "usage_limit_reached": Failure.USAGE_LIMIT,
        "connection_failed": Failure.ENVIRONMENT,
        "max_output_tokens": Failure.CONTEXT,
        "authentication_failed": Failure.AUTH,
        "billing_error": Failure.BILLING,
        "rate_limit": Failure.RATE_LIMIT,
        "overloaded": Failure.OVERLOADED,
        "server_error": Failure.OVERLOADED,
        "model_not_found": Failure.MODEL,
    }
)
_BY_WORDS: Final = (
    # The conversation to continue is gone, or taken: the engine lets it begin another.
    (re.compile(r"No conversation found|Session ID \S+ is already in use"), Failure.CRASH),
    (
        re.compile(r"hit your .*limit|usage limit reached|reached your .*usage limits", re.IGNORECASE),
        Failure.USAGE_LIMIT,
    ),
    (re.compile(r"not logged in|invalid api key|please run /login", re.IGNORECASE), Failure.AUTH),
    (re.compile(r"credit balance is too low", re.IGNORECASE), Failure.BILLING),
    (re.compile(r"prompt is too long", re.IGNORECASE), Failure.CONTEXT),
    (re.compile(r"API Error:.*\b429\b"), Failure.RATE_LIMIT),
    (re.compile(r"API Error:.*(?:\b5\d\d\b|overloaded)", re.IGNORECASE), Failure.OVERLOADED),
)
"""Last resort, for output without the fields above."""
_REGAINED: Final = re.compile(r"regain access on (\d{4}-\d\d-\d\d) at (\d\d:\d\d) UTC")
"""How the service says to the owner of a key when the limit ends that was set for it."""


def judge(state: ClaudeState, exit: Exit) -> AgentResult:
    """Judge the run: only a clean result line and a clean exit together are a claim of success."""
    seen = state.seen
    # A run that was stopped for another reason was not stopped to ask.
    asked = () if exit.ended_by == "asked" else state.asked
    failure, detail, retry_at = (None, "", None) if asked else _judge(state, exit)
    ending, claimed = seen.ending, failure is None and not asked
    cost_micros, usage = spent(state)
    return AgentResult(
        claimed=claimed,
        summary=ending.text if ending and not ending.is_error else "",
        failure=failure,
        detail="; ".join(part for part in (detail, "" if asked else _denials(ending)) if part),
        retry_at=retry_at,
        usage=usage,
        cost_micros=cost_micros,
        session_ref=seen.session_ref,
        model=seen.model,
        version=seen.version,
        asked=asked,
        structured=ending.structured if ending and claimed else None,
        windows=seen.windows,
    )


def _judge(state: ClaudeState, exit: Exit) -> tuple[Failure | None, str, datetime | None]:
    ended = endings.ended_by_us(exit)
    if ended is not None:
        waited = _while_waiting(state.seen) if ended[0] in (Failure.TIMEOUT, Failure.HANG) else None
        if waited is not None:
            return waited[0], f"{ended[1]}: {waited[1]}", _again_at(waited[0], state.seen, "", exit)
        return (*ended, None)
    seen, ending = state.seen, state.seen.ending
    fine = ending is not None and not ending.is_error and ending.terminal_reason in (None, "completed")
    if state.broken_tools:
        return Failure.TOOL, f"these tool servers do not work: {', '.join(state.broken_tools)}", None
    if state.interrupted and not fine:
        return Failure.CANCELLED, "it was interrupted", None
    if ending is None:
        return _without_result(seen, exit)
    if not fine:
        failure = _classify(state, ending)
        detail = ending.text or ending.terminal_reason or ending.subtype or "it reported an error"
        return failure, detail, _again_at(failure, seen, ending.text, exit)
    if exit.ended_by == "itself" and exit.code != 0:
        return Failure.CRASH, f"it reported success but {endings.in_words(exit.code)}", None
    if state.request is not None and state.request.schema is not None and ending.structured is None:
        return Failure.AGENT_ERROR, "it gave no result that fits the schema", None
    return None, "", None


def _while_waiting(seen: Seen) -> tuple[Failure, str] | None:
    """Return what it waited for when it was ended."""
    if seen.retried is None:
        return None
    status, error = seen.retried
    failure = by_status(status) or _BY_ERROR.get(error, Failure.ENVIRONMENT)
    answered = f"its service answered with {status or error}"
    return failure, "it could not reach its service" if failure is Failure.ENVIRONMENT else answered


def _again_at(failure: Failure, seen: Seen, text: str, exit: Exit) -> datetime | None:
    """Return when the service said that it may be asked again."""
    if failure is Failure.USAGE_LIMIT:
        return seen.resets_at or _regained(text)
    if failure in (Failure.RATE_LIMIT, Failure.OVERLOADED) and seen.wait_s is not None:
        return exit.ended_at + timedelta(seconds=seen.wait_s)
    return None


def _without_result(seen: Seen, exit: Exit) -> tuple[Failure, str, None]:
    said = " / ".join(seen.tail[-5:])
    by_words = _by_words(said)
    if by_words is not None:
        return by_words, said, None
    detail = f"it {endings.in_words(exit.code)} without a result" + (f": {said}" if said else "")
    if not seen.started and exit.code != 0 and not endings.is_signal(exit.code):
        return Failure.CANNOT_START, detail, None
    return Failure.CRASH, detail, None


def _classify(state: ClaudeState, ending: Ending) -> Failure:
    seen = state.seen
    if ending.api_status == 429 and (seen.limit_rejected or _gave_up_at_once(state)):
        return Failure.USAGE_LIMIT
    if ending.stop_reason == "refusal":
        return Failure.REFUSAL
    named = (
        _BY_REASON.get(ending.terminal_reason or ""),
        _BY_REASON.get(ending.subtype),
        _BY_ERROR.get(ending.api_error or ""),
        _BY_ERROR.get(seen.error or ""),
    )
    for failure in named:
        if failure is not None:
            return failure
    told = by_status(ending.api_status) or _by_words(ending.text)
    if told is not None:
        return told
    return Failure.AGENT_ERROR if seen.started or ending.turns else Failure.CANNOT_START


def _gave_up_at_once(state: ClaudeState) -> bool:
    """Return whether it was told to come back later than it cares to wait.

    It tries again by itself, and says so, unless the service names a wait of more than a minute, or forbids it. With a
    key instead of a subscription, this is all that it tells of a limit: not even when it ends.
    """
    may_try = state.request is None or state.request.options.get("max_retries") != 0
    return may_try and state.seen.retried is None


def _regained(text: str) -> datetime | None:
    found = _REGAINED.search(text)
    try:
        return datetime.fromisoformat(f"{found[1]}T{found[2]}+00:00") if found else None
    except ValueError:
        return None


def _by_words(text: str) -> Failure | None:
    return next((failure for pattern, failure in _BY_WORDS if pattern.search(text)), None)


def _denials(ending: Ending | None) -> str:
    if ending is None or not ending.denied:
        return ""
    counted = ", ".join(f"{name} ({count})" for name, count in sorted(Counter(ending.denied).items()))
    return f"permission was denied for {counted}"


_MISPLACED: Final = ("EnterPlanMode", "EnterWorktree", "CronCreate", "ScheduleWakeup", "Monitor")
"""Tools that have no place in a run: they wait for a person's yes to a plan, leave the workspace, or promise to wake
a conversation that has ended by then."""
_EDITING: Final = ("Edit", "Write", "NotebookEdit")

_MODES: Final[Mapping[Access, tuple[str, ...]]] = MappingProxyType(
    {
        Access.READ_ONLY: (
            *("--permission-mode", "dontAsk", "--allowedTools", ",".join((*OWN_TOOLS, LOOP_TOOLS))),
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
        return judge(state, exit)

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
