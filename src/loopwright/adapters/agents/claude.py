"""Claude Code, run headless: how it is started, and what its run came to."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from loopwright.adapters.agents import claude_stream, endings, options, prompt_file
from loopwright.adapters.agents.claude_stream import ClaudeState, Ending
from loopwright.core.errors import BadConfig
from loopwright.core.failures import Failure
from loopwright.core.homes import HomePath
from loopwright.core.permissions import Access
from loopwright.ports import AgentRequest, AgentResult, Exit, Folded, Invocation, OutputLine, Spent

_MODES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "read-only": ("--permission-mode", "dontAsk", "--disallowedTools", "Edit,Write,NotebookEdit"),
        "edit": ("--permission-mode", "acceptEdits"),
        "sandboxed-all": ("--permission-mode", "bypassPermissions"),
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

_HOME: Final = (
    # Login, settings, and the conversations that a later leg goes on with.
    HomePath(path=".claude/", writable=True, moved_by="CLAUDE_CONFIG_DIR"),
    HomePath(path=".claude.json", writable=True, moved_by="CLAUDE_CONFIG_DIR"),
)

_OURS: Final = frozenset(
    {
        "-p", "--print", "--output-format", "--input-format", "--verbose", "--permission-mode", "--model",
        "--dangerously-skip-permissions", "--allow-dangerously-skip-permissions", "--session-id", "--resume",
        "-r", "--continue", "-c", "--fork-session", "--no-session-persistence", "--max-turns", "--bg",
        "--background", "--worktree", "-w", "--include-partial-messages",
    }
)  # fmt: skip
"""Arguments that are set elsewhere, or would break the reading of the output."""

_MOST_RETRIES: Final = 5
"""The program's own default of 10 keeps a run with a wrong key waiting for minutes."""

_DONE: Final = (
    r'^\{(?!"type":"(?:assistant|user|system|stream_event)")'
    r'(?=.*"type":"result")(?=.*"is_error":(?:true|false))(?=.*"num_turns":\d)'
)

_BY_REASON: Final[Mapping[str, Failure]] = MappingProxyType(
    {
        "prompt_too_long": Failure.CONTEXT,
        "max_turns": Failure.TURNS,
        "error_max_turns": Failure.TURNS,
        "budget_exhausted": Failure.BUDGET,
        "error_max_budget_usd": Failure.BUDGET,
        # Nobody of ours interrupted it (that is known before), so something else on this machine did.
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
_BY_STATUS: Final[Mapping[int, Failure]] = MappingProxyType(
    {
        401: Failure.AUTH,
        402: Failure.BILLING,
        403: Failure.AUTH,
        404: Failure.MODEL,
        413: Failure.CONTEXT,
        429: Failure.RATE_LIMIT,
    }
)
_BY_WORDS: Final = (
    # The conversation to go on with is gone, or taken: a fresh attempt has one of its own.
    (re.compile(r"No conversation found|Session ID \S+ is already in use"), Failure.CRASH),
    (re.compile(r"hit your .*limit|usage limit reached", re.IGNORECASE), Failure.USAGE_LIMIT),
    (re.compile(r"not logged in|invalid api key|please run /login", re.IGNORECASE), Failure.AUTH),
    (re.compile(r"credit balance is too low", re.IGNORECASE), Failure.BILLING),
    (re.compile(r"prompt is too long", re.IGNORECASE), Failure.CONTEXT),
    (re.compile(r"API Error:.*\b429\b"), Failure.RATE_LIMIT),
    (re.compile(r"API Error:.*(?:\b5\d\d\b|overloaded)", re.IGNORECASE), Failure.OVERLOADED),
)
"""Last resort, for output without the fields above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeAgent:
    """Codec for `claude -p --output-format stream-json`."""

    binary: str = "claude"
    name: str = field(default="claude", init=False)
    capabilities: frozenset[str] = field(
        default=frozenset({"resume", "interrupt", "cost", "reset_time", "permissions"}), init=False
    )

    def invocation(self, request: AgentRequest) -> Invocation:
        """Say how to start it; the prompt arrives on stdin, from a file in the run's directory."""
        given = request.options
        options.only(self.name, given, ("binary", "max_turns", "extra_args", "max_retries"))
        session_ref = request.session_ref or str(uuid5(NAMESPACE_URL, str(request.run_directory)))
        max_turns = options.number(self.name, given, "max_turns", least=1, most=10_000)
        argv = (
            options.text(self.name, given, "binary") or self.binary,
            "-p",
            *("--output-format", "stream-json", "--verbose"),
            *_MODES[request.permissions.access],
            *(("--model", request.model) if request.model else ()),
            *(("--resume" if request.session_ref else "--session-id"), session_ref),
            *(("--max-turns", str(max_turns)) if max_turns is not None else ()),
            *_extra_arguments(given),
        )
        return Invocation(
            argv=prompt_file.on_stdin(request.run_directory, argv),
            env=_environment(request),
            inherit=_INHERITED,
            home=_HOME,
            files={prompt_file.NAME: request.prompt},
            done_pattern=_DONE,
            interrupt="SIGINT",
            session_ref=session_ref,
        )

    def initial(
        self,
        request: AgentRequest | None = None,  # noqa: ARG002 - nothing is said to it after its start
        *,
        before: Spent | None = None,
    ) -> ClaudeState:
        """Return the state before the first line."""
        return ClaudeState(session_cost_micros=before.cost_micros if before else 0)

    def fold(self, state: ClaudeState, line: OutputLine) -> Folded:
        """Take in one line of output."""
        return claude_stream.fold(state, line)

    def interrupt(self, state: ClaudeState) -> tuple[str, ...]:  # noqa: ARG002 - a signal does it
        """Return nothing: it is interrupted by a signal."""
        return ()

    def result(self, state: ClaudeState, exit: Exit) -> AgentResult:
        """Judge the run: only a clean result line and a clean exit together are a claim of success."""
        failure, detail, retry_at = _judge(state, exit)
        ending = state.ending
        return AgentResult(
            claimed=failure is None,
            summary=ending.text if ending and not ending.is_error else "",
            failure=failure,
            detail="; ".join(part for part in (detail, _denials(ending)) if part),
            retry_at=retry_at,
            usage=ending.usage if ending else None,
            cost_micros=_cost(state),
            session_ref=state.session_ref,
            model=state.model,
            version=state.version,
        )

    def probe(self) -> tuple[str, ...]:
        """Return the command that prints the program's version."""
        return (self.binary, "--version")


def _extra_arguments(given: Mapping[str, Any]) -> tuple[str, ...]:
    extra = options.texts("claude", given, "extra_args")
    for argument in extra:
        if argument.split("=", 1)[0] in _OURS:
            raise BadConfig(
                f"agent claude: extra_args must not contain {argument}",
                hint="permission mode, model and turns have settings of their own",
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
    }
    if request.permissions.access is Access.SANDBOXED_ALL:
        # As root the program refuses to skip permissions unless it is told that it sits in a sandbox.
        env["IS_SANDBOX"] = "1"
    return env


def _judge(state: ClaudeState, exit: Exit) -> tuple[Failure | None, str, datetime | None]:
    ended = endings.ended_by_us(exit)
    if ended is not None:
        return (*ended, None)
    ending = state.ending
    if ending is None:
        return _without_result(state, exit)
    if ending.is_error or ending.terminal_reason not in (None, "completed"):
        failure = _classify(state, ending)
        retry_at = state.resets_at if failure is Failure.USAGE_LIMIT else None
        detail = ending.text or ending.terminal_reason or ending.subtype or "it reported an error"
        return failure, detail, retry_at
    if exit.ended_by == "itself" and exit.code != 0:
        return Failure.CRASH, f"it reported success but {endings.in_words(exit.code)}", None
    return None, "", None


def _without_result(state: ClaudeState, exit: Exit) -> tuple[Failure, str, None]:
    said = " / ".join(state.tail[-5:])
    by_words = _by_words(said)
    if by_words is not None:
        return by_words, said, None
    detail = f"it {endings.in_words(exit.code)} without a result" + (f": {said}" if said else "")
    if not state.started and exit.code != 0 and not endings.is_signal(exit.code):
        return Failure.CANNOT_START, detail, None
    return Failure.CRASH, detail, None


def _classify(state: ClaudeState, ending: Ending) -> Failure:
    if state.limit_rejected and ending.api_status == 429:
        return Failure.USAGE_LIMIT
    if ending.stop_reason == "refusal":
        return Failure.REFUSAL
    named = (
        _BY_REASON.get(ending.terminal_reason or ""),
        _BY_REASON.get(ending.subtype),
        _BY_ERROR.get(ending.api_error or ""),
        _BY_ERROR.get(state.error or ""),
    )
    for failure in named:
        if failure is not None:
            return failure
    if ending.api_status is not None:
        if ending.api_status in _BY_STATUS:
            return _BY_STATUS[ending.api_status]
        if ending.api_status >= 500:
            return Failure.OVERLOADED
    by_words = _by_words(ending.text)
    if by_words is not None:
        return by_words
    return Failure.AGENT_ERROR if state.started or ending.turns else Failure.CANNOT_START


def _by_words(text: str) -> Failure | None:
    return next((failure for pattern, failure in _BY_WORDS if pattern.search(text)), None)


def _cost(state: ClaudeState) -> int | None:
    total = state.ending.total_cost_micros if state.ending else None
    if total is None:
        return None
    # A total below what was known before was counted anew, so it belongs to this run alone.
    return total - state.session_cost_micros if total >= state.session_cost_micros else total


def _denials(ending: Ending | None) -> str:
    if ending is None or not ending.denied:
        return ""
    counted = ", ".join(f"{name} ({count})" for name, count in sorted(Counter(ending.denied).items()))
    return f"permission was denied for {counted}"
