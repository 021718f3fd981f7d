"""What an agent tells of its work: words, tool calls, plans and what was used, as normalised events."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from loopwright.adapters.agents.acp import calls, meters, rpc
from loopwright.adapters.agents.acp.profiles import Meaning, Profile
from loopwright.adapters.agents.acp.state import LAST_WORDS, AcpState, Call
from loopwright.adapters.agents.output import Object, micros, object_in, readable
from loopwright.ports import AgentEvent, Folded

_PROGRESS: Final = ("agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update")
_ENDED: Final = ("completed", "failed")
_CHANGING: Final = ("edit", "delete", "move")
_SAY_AT: Final = 400
"""Words come in pieces; they are told at the end of a message, and at the end of a line from this length on."""

_MOST_CHANGES: Final = 200
_PLAN_MARKS: Final = {"completed": "[x]", "in_progress": "[>]"}


def fold(state: AcpState, profile: Profile, update: Object) -> Folded:
    """Take in one `session/update`."""
    if not state.is_working:
        # An old conversation is repeated before the prompt is given; after its answer nothing counts any more.
        return Folded(state=state)
    kind = update.get("sessionUpdate")
    if state.tries and kind in _PROGRESS:
        state = replace(state, tries=0)
    match kind:
        case "agent_message_chunk":
            return _words(state, profile, update)
        case "agent_thought_chunk":
            return _thought(state, update)
        case "tool_call" | "tool_call_update":
            return _call(state, profile, update)
        case "usage_update":
            return _usage(state, profile, update)
        case "plan":
            return _plan(state, update)
        case _:
            raw = AgentEvent(kind="Raw", data={"update": readable(kind, 100)})
            return Folded(state=state, events=(raw,))


def started(state: AcpState, call: Call) -> tuple[AcpState, tuple[AgentEvent, ...]]:
    """Report that a call began, once, and only when there is something to say about it."""
    state, said = flushed(state)
    state = replace(state, messages_in_a_row=0, did_something=True)
    if call.told:
        return state.with_call(call), said
    state = replace(state, complaint=None)
    name = calls.shown_name(call)
    inputs = {"command": call.command, "path": call.paths[0] if call.paths else "", "url": call.url}
    given = {key: readable(value, 500) for key, value in inputs.items() if value}
    telling = next(iter(given.values()), "") or ("" if call.title == name else readable(call.title, 500))
    event = AgentEvent(
        kind="ToolStart",
        text=f"{name} {telling}".strip(),
        data={"id": readable(call.id, 300), "name": name, "input": given},
    )
    return state.with_call(replace(call, told=True)), (*said, event)


def flushed(state: AcpState) -> tuple[AcpState, tuple[AgentEvent, ...]]:
    """Report the words that were not reported yet."""
    if not state.saying.strip():
        return replace(state, saying=""), ()
    data = {"thinking": True} if state.thinking else {}
    event = AgentEvent(kind="Text", text=readable(state.saying), data=data)
    return replace(state, saying=""), (event,)


def _words(state: AcpState, profile: Profile, update: Object) -> Folded:
    text = _text(update.get("content"))
    counted = meters.with_chunk(state, profile, object_in(update.get("_meta")))
    if counted.usage != state.usage:
        told = AgentEvent(kind="Usage", data=meters.so_far(counted, profile))
        rest = _words(counted, profile, {**update, "_meta": None})
        return replace(rest, events=(told, *rest.events))
    if not text:
        return Folded(state=state)
    remark = next((meaning for pattern, meaning in profile.remarks if pattern.match(text)), None)
    if remark is not None:
        return _remark(state, remark, readable(text))
    message_id = readable(update.get("messageId"), 300)
    events: tuple[AgentEvent, ...] = ()
    if _is_new(state, message_id):
        state, events = flushed(state)
        state = replace(state, said="", messages_in_a_row=state.messages_in_a_row + 1)
    state = replace(
        state,
        message_id=message_id,
        thinking=False,
        saying=state.saying + text,
        said=(state.said + text)[-LAST_WORDS:],
        did_something=True,
        complaint=None,
    )
    if len(state.saying) >= _SAY_AT and "\n" in text:
        state, more = flushed(state)
        events = (*events, *more)
    if _circles(state, profile):
        stop = rpc.notification("session/cancel", {"sessionId": state.session})
        text = f"it has said {state.messages_in_a_row} things in a row without doing anything, and is stopped"
        event = AgentEvent(kind="Error", text=text, data={"class": "circles"})
        return Folded(state=replace(state, circling=True), events=(*events, event), writes=(stop,))
    return Folded(state=state, events=events)


def _remark(state: AcpState, meaning: Meaning, text: str) -> Folded:
    """Take in what the program itself said in between."""
    state, events = flushed(state)
    if meaning == "retry":
        return Folded(state=state, events=(*events, AgentEvent(kind="Retry", text=text)))
    event = AgentEvent(kind="Error", text=text, data={"class": meaning})
    return Folded(state=replace(state, complaint=(meaning, text)), events=(*events, event))


def _is_new(state: AcpState, message_id: str) -> bool:
    """Whether a piece of text begins a message: it has another id, or something else came between."""
    if state.thinking or state.messages_in_a_row == 0 or state.complaint is not None:
        return True
    return message_id != state.message_id


def _circles(state: AcpState, profile: Profile) -> bool:
    most = profile.most_messages_in_a_row
    return (
        most is not None
        and state.messages_in_a_row > most
        and state.aim is not None
        and not state.is_stopping
    )


def _thought(state: AcpState, update: Object) -> Folded:
    text = _text(update.get("content"))
    events: tuple[AgentEvent, ...] = ()
    if not state.thinking:
        state, events = flushed(state)
    state = replace(state, thinking=True, saying=state.saying + text, message_id="")
    if len(state.saying) >= _SAY_AT and "\n" in text:
        state, more = flushed(state)
        events = (*events, *more)
    return Folded(state=state, events=events)


def _call(state: AcpState, profile: Profile, update: Object) -> Folded:
    call = calls.learnt(state.call(readable(update.get("toolCallId"), 300)), update)
    status = update.get("status")
    if not (call.told or call.command or call.paths or status in ("in_progress", *_ENDED)):
        # It is announced before its input is known; then there is nothing to tell yet.
        state, events = flushed(state)
        new = replace(state.with_call(call), messages_in_a_row=0, did_something=True)
        return Folded(state=new, events=events)
    state, events = started(state, call)
    if status not in _ENDED:
        return Folded(state=state, events=events)
    ok = status == "completed"
    ended = AgentEvent(
        kind="ToolEnd",
        text=_outcome(update),
        data={"id": readable(call.id, 300), "name": calls.shown_name(call), "ok": ok},
    )
    kind = calls.kind_of(call, profile)
    changes = tuple(_changes(state, call, kind)) if ok and kind in _CHANGING else ()
    return Folded(state=state.without_call(call.id), events=(*events, ended, *changes))


def _changes(state: AcpState, call: Call, kind: str) -> Iterator[AgentEvent]:
    for path in call.paths[:_MOST_CHANGES]:
        where = readable(calls.place(state, path)[0], 1_000)
        change = "deleted" if kind == "delete" else "changed"
        yield AgentEvent(kind="FileChange", text=where, data={"path": where, "change": change})


def _outcome(update: Object) -> str:
    content = update.get("content")
    texts = [
        _text(object_in(one).get("content")) for one in (content[:50] if isinstance(content, list) else ())
    ]
    return readable("\n".join(filter(None, texts)) or update.get("rawOutput"), 1_000)


def _usage(state: AcpState, profile: Profile, update: Object) -> Folded:
    cost = object_in(update.get("cost"))
    amount = micros(cost.get("amount")) if cost.get("currency") == "USD" else None
    if amount:
        # Nothing at all is what it says as well when it does not know: without prices, and of a call that was stopped.
        state = replace(state, cost_micros=amount)
    data = {**meters.context(update, amount), **meters.so_far(state, profile)}
    return Folded(state=state, events=(AgentEvent(kind="Usage", data=data),))


def _plan(state: AcpState, update: Object) -> Folded:
    entries = update.get("entries")
    lines = [
        f"{_PLAN_MARKS.get(readable(one.get('status'), 50), '[ ]')} {readable(one.get('content'), 300)}"
        for one in (entries[:100] if isinstance(entries, list) else ())
        if isinstance(one, dict)
    ]
    plan = "\n".join(lines)
    if plan == state.plan:
        return Folded(state=state)
    event = AgentEvent(kind="Text", text=readable(plan), data={"plan": True})
    return Folded(state=replace(state, plan=plan), events=(event,))


def _text(content: Any) -> str:
    block = object_in(content)
    return readable(block.get("text"), 1_000_000) if block.get("type") == "text" else ""
