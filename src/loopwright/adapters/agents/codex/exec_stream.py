"""`codex exec --json`: the same items with less around them. Nothing can be said to it, and its errors are prose."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from loopwright.adapters.agents.codex import items
from loopwright.adapters.agents.codex.failures import Problem
from loopwright.adapters.agents.codex.state import CodexState, Ending, read_usage
from loopwright.adapters.agents.output import readable
from loopwright.ports import AgentEvent, Folded

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
