"""Codex as an agent: its codec, and what its run came to."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from loopwright.adapters.agents import endings
from loopwright.adapters.agents.codex import failures, items, quota, server, starting
from loopwright.adapters.agents.codex.failures import Problem
from loopwright.adapters.agents.codex.state import CodexState, Ending, read_usage
from loopwright.adapters.agents.endings import resets_in
from loopwright.adapters.agents.output import json_object, readable, remembered
from loopwright.core.rows.model import Usage
from loopwright.core.values.failures import Failure
from loopwright.ports import (
    AgentEvent,
    AgentRequest,
    AgentResult,
    Exit,
    Folded,
    Invocation,
    OutputLine,
    Spent,
)

# `codex exec --json`: the same items with less around them. Nothing can be said to it, and its errors are
# prose.

TURN: Final = "exec"
"""The id of the turn, which has none here."""

_AGAIN: Final = re.compile(r"^Reconnecting\.\.\.")
"""How an error begins that Codex does something about itself."""


def fold(state: CodexState, event: Mapping[str, Any]) -> Folded:
    """Take in one event."""
    match event.get("type"):
        case "thread.started":
            thread = readable(event.get("thread_id"), 200) or None
            model = state.request.model if state.request else None
            data = {"session_ref": thread, "model": model, "version": None}
            started = AgentEvent(kind="Started", text=model or "", data=data)
            return Folded(state=replace(state, thread=thread, model=model), events=(started,))
        case "turn.started":
            return Folded(state=replace(state, turn=TURN))
        case "item.started":
            return Folded(
                state=replace(state, waiting=None),
                events=items.started(items.camel(_object(event.get("item")))),
            )
        case "item.completed":
            return _done(state, items.camel(_object(event.get("item"))))
        case "item.updated":
            return Folded(state=state)
        case "error":
            return _error(state, readable(event.get("message")))
        case "turn.completed":
            return _completed(state, event)
        case "turn.failed":
            problem = Problem(message=readable(_object(event.get("error")).get("message")))
            return _ended(replace(state, ending=Ending(status="failed", problem=problem)))
        case kind:
            raw = AgentEvent(kind="Raw", data={"type": readable(kind, 100)})
            return Folded(state=state, events=(raw,))


def _done(state: CodexState, item: Mapping[str, Any]) -> Folded:
    new = replace(state, waiting=None, acted=state.acted or items.is_of_agent(item))
    events = list(items.completed(item))
    if item.get("type") == "agentMessage":
        new = replace(new, said=items.whole(item.get("text")))
    if item.get("type") == "fileChange" and item.get("status") == "failed":
        new = replace(new, failed_changes=state.failed_changes + 1)
    elif item.get("type") == "fileChange":
        for path, change in items.changed_paths(item):
            where, _ = items.place(path, state.roots)
            where = readable(where, 1_000)
            events.append(AgentEvent(kind="FileChange", text=where, data={"path": where, "change": change}))
    return Folded(state=new, events=tuple(events))


def _error(state: CodexState, message: str) -> Folded:
    if _AGAIN.match(message):
        new = replace(state, waiting=Problem(message=message))
        return Folded(state=new, events=(AgentEvent(kind="Retry", text=message),))
    return Folded(state=state, events=(AgentEvent(kind="Error", text=message, data={"class": ""}),))


def _completed(state: CodexState, event: Mapping[str, Any]) -> Folded:
    usage = read_usage(items.camel(_object(event.get("usage"))))
    if usage is not None and state.thread is not None:
        state = state.counted(state.thread, usage)
    return _ended(replace(state, ending=Ending(status="completed")))


def _ended(state: CodexState) -> Folded:
    assert state.ending is not None
    ok = state.ending.status == "completed"
    text = state.said if state.ending.problem is None else state.ending.problem.message
    finished = AgentEvent(kind="Finished", text=text, data={"ok": ok, "reason": state.ending.status})
    return Folded(state=state, events=(finished,))


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


_NOT_BY_EXEC: Final = frozenset({"permissions", "reset_time", "fork"})
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_HELPLESS: Final = "Refusing to create helper binaries"
_NO_SANDBOX: Final = (
    "Codex could not change a file, because its own sandbox does not work: CODEX_HOME must not lie in the folder "
    "for temporary files"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodexAgent:
    """Codec for `codex app-server`, and for `codex exec --json` with the option `protocol`."""

    binary: str = "codex"
    name: str = field(default=starting.NAME, init=False)
    capabilities: frozenset[str] = field(
        default=frozenset(
            {
                *("resume", "fork", "interrupt", "permissions", "confines", "tools", "schema", "usage"),
                "reset_time",
            }
        ),
        init=False,
    )
    tested: tuple[str, str] = field(default=("0.158.0", "0.166.0"), init=False)
    """The oldest and the newest version of the program that were tried; `doctor` warns about others."""

    def invocation(self, request: AgentRequest) -> Invocation:
        """Return how to start it; the app server is told its prompt on stdin when it is ready."""
        return starting.invocation(self.binary, request)

    def able(self, options: Mapping[str, Any]) -> frozenset[str]:
        """Return what it can do: `exec` never asks, and reports neither when a limit ends nor what a copy used."""
        return self.capabilities - _NOT_BY_EXEC if options.get("protocol") == "exec" else self.capabilities

    def initial(self, request: AgentRequest | None = None, *, before: Spent | None = None) -> CodexState:
        """Return the state before the first line."""
        return CodexState(
            request=request,
            roots=(str(request.workspace),) if request else (),
            before=before.usage if before else Usage(),
        )

    def fold(self, state: CodexState, line: OutputLine) -> Folded:
        """Take in one line of output, of either protocol."""
        folded = self._fold(state, line)
        windows = folded.state.windows
        return replace(folded, windows=windows) if windows != state.windows else folded

    def _fold(self, state: CodexState, line: OutputLine) -> Folded:
        message = json_object(line.text) if line.stream == "out" else None
        if message is None:
            text = _COLOUR.sub("", line.text)
            raw = AgentEvent(kind="Raw", text=readable(text), data={"stream": line.stream})
            helpless = state.helpless or _HELPLESS in text
            return Folded(
                state=replace(state, tail=remembered(state.tail, text), helpless=helpless), events=(raw,)
            )
        if "type" in message and "method" not in message:
            return fold(state, message)
        folded = server.fold(state, message)
        return replace(folded, stops=bool(folded.state.asked) and not state.asked)

    def interrupt(self, state: CodexState) -> tuple[str, ...]:
        """Return what makes the turn stop in order; `exec` understands only a signal."""
        return () if state.turn == TURN else server.interrupt(state)

    def result(self, state: CodexState, exit: Exit) -> AgentResult:
        """Judge the run: only a completed turn and a clean exit together are a claim of success."""
        failure, detail, retry_at = _judge(state, exit)
        limited = failure in (Failure.USAGE_LIMIT, Failure.BILLING)
        asked = state.asked if failure is None else ()
        return AgentResult(
            claimed=failure is None and not asked,
            summary=readable(state.said) if failure is None else "",
            failure=failure,
            detail=detail,
            retry_at=retry_at,
            usage=state.used(),
            session_ref=state.thread,
            model=state.model,
            version=state.version,
            asked=asked,
            structured=_structured(state) if failure is None and not asked else None,
            windows=quota.rejected(state.windows, state.model) if limited else state.windows,
        )

    def probe(self) -> tuple[str, ...]:
        """Return the command that prints the program's version."""
        return (self.binary, "--version")


def _judge(state: CodexState, exit: Exit) -> tuple[Failure | None, str, datetime | None]:
    ended = endings.ended_by_us(exit)
    if ended is not None:
        if state.waiting is not None and ended[0] in (Failure.TIMEOUT, Failure.HANG):
            # It had tried again and again to reach its service: the work itself took no such time.
            return failures.failure(state.waiting), f"{ended[1]}: {state.waiting.message}", None
        return (*ended, None)
    ending = state.ending
    if state.asked and (ending is None or ending.status != "failed"):
        return None, "", None
    if ending is None:
        return (*_without_end(state, exit), None)
    match ending.status:
        case "completed":
            return (*_of_success(state, exit), None)
        case "interrupted" if state.interrupted:
            return Failure.CANCELLED, "it was asked to stop", None
        case "interrupted":
            return Failure.CRASH, "its turn was interrupted, and not by us", None
    problem = ending.problem or failures.Problem(message=f"its turn ended as {ending.status or 'nothing'}")
    failure = failures.failure(problem)
    if ending.status == "refused" and failure is Failure.AGENT_ERROR:
        failure = Failure.CANNOT_START
    if failure is Failure.USAGE_LIMIT and state.unpaid:
        failure = Failure.BILLING
    return failure, problem.message, _again_at(failure, problem.message, state, exit)


def _again_at(failure: Failure, message: str, state: CodexState, exit: Exit) -> datetime | None:
    if failure is Failure.USAGE_LIMIT:
        return quota.free_at(state.windows, state.model)
    # What a service that asks to slow down names is handed on in its words alone, and not always.
    ahead_s = resets_in(message) if failure in (Failure.RATE_LIMIT, Failure.OVERLOADED) else None
    return None if ahead_s is None else exit.ended_at + timedelta(seconds=ahead_s)


def _of_success(state: CodexState, exit: Exit) -> tuple[Failure | None, str]:
    if exit.ended_by == "itself" and exit.code != 0:
        return Failure.CRASH, f"it reported success but {endings.in_words(exit.code)}"
    if not state.acted:
        # The words with which a model refuses are not handed on.
        return (
            Failure.REFUSAL,
            "its turn ended before it had done or said anything: the model may have refused",
        )
    if state.helpless and state.failed_changes:
        return Failure.ENVIRONMENT, _NO_SANDBOX
    if state.request is not None and state.request.schema is not None and _structured(state) is None:
        return Failure.AGENT_ERROR, f"its answer does not fit the schema: {readable(state.said, 500)}"
    return None, ""


def _without_end(state: CodexState, exit: Exit) -> tuple[Failure, str]:
    said = " / ".join(state.tail[-5:])
    by_words = failures.by_words(said)
    if by_words is not None and state.turn is None:
        return by_words, said
    detail = f"it {endings.in_words(exit.code)} without a result" + (f": {said}" if said else "")
    if state.thread is None and exit.code != 0 and not endings.is_signal(exit.code):
        return Failure.CANNOT_START, detail
    return Failure.CRASH, detail


def _structured(state: CodexState) -> dict[str, Any] | None:
    if state.request is None or state.request.schema is None:
        return None
    return json_object(state.said)
