"""`codex app-server`: one conversation, one turn, and then its stdin is closed, which ends it."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, Final
from zlib import crc32

from loopwright.adapters.agents.codex import asking, failures, items, quota, rpc, starting
from loopwright.adapters.agents.codex.state import CodexState, Ending, minus, read_usage
from loopwright.adapters.agents.output import readable
from loopwright.ports import AgentEvent, Folded, QuotaWindow

_Params = Mapping[str, Any]

_OPEN_ITEMS: Final = 64
_NOT_KNOWN: Final = -32601
"""How JSON-RPC says that there is no such method."""

_OTHERS: Final = frozenset(
    {"turn/started", "turn/completed", "thread/started", "mcpServer/startupStatus/updated"}
)
"""What says nothing when it is not about us, or is well."""

_DIFF: Final = re.compile(r"^diff --git a/(?P<from>.+) b/(?P<to>.+)$", re.MULTILINE)


def interrupt(state: CodexState) -> tuple[str, ...]:
    """Return what makes the turn stop in order; nothing when there is none."""
    if state.thread is None or state.turn is None or state.ending is not None:
        return ()
    return (rpc.request("interrupt", "turn/interrupt", {"threadId": state.thread, "turnId": state.turn}),)


def fold(state: CodexState, message: Mapping[str, Any]) -> Folded:
    """Take in one message."""
    method, params = message.get("method"), message.get("params")
    facts = params if isinstance(params, dict) else {}
    if isinstance(method, str) and "id" in message:
        return _asked(state, method, message["id"], facts)
    if isinstance(method, str):
        return _told(state, method, facts)
    if "id" in message and ("result" in message or "error" in message):
        return _answered(state, message)
    return Folded(state=state, events=(_raw("message", json.dumps(message)),))


def _answered(state: CodexState, message: Mapping[str, Any]) -> Folded:
    error, result = message.get("error"), _object(message.get("result"))
    match message.get("id"):
        case ("initialize" | "thread" | "turn") as what if error is not None:
            told = failures.problem(_object(error))
            text = f"{what}: {told.message}"
            new = replace(state, ending=Ending(status="refused", problem=replace(told, message=text)))
            return Folded(state=new, events=_finished(new), close=True)
        case "initialize":
            version = readable(result.get("userAgent"), 200).partition(" ")[0].rpartition("/")[2]
            new = replace(state, version=version or None)
            if state.request is None:
                return Folded(state=new)  # the output is only read
            method, params = starting.thread(state.request)
            # Who is logged in, as far as it knows by itself: no service is asked.
            who = rpc.request("account", "account/read", {"refreshToken": False})
            writes = (rpc.line({"method": "initialized"}), who, rpc.request("thread", method, params))
            return Folded(state=new, writes=writes)
        case "account":
            windows = quota.of_account(state.windows, _object(result.get("account")))
            return Folded(state=replace(state, windows=windows))
        case "thread":
            return _begun(state, result)
        case "turn":
            id = readable(_object(result.get("turn")).get("id"), 200)  # noqa: A001 - the protocol's word
            return Folded(state=replace(state, turn=id or state.turn))
        case "interrupt" if error is None:
            return Folded(state=replace(state, interrupted=True))
        case str(id) if id.startswith("stop"):
            return Folded(state=state)
        case _:
            return Folded(state=state, events=(_raw("response", json.dumps(message)),))


def _begun(state: CodexState, result: _Params) -> Folded:
    thread = _object(result.get("thread"))
    cwd = readable(result.get("cwd"), 10_000)
    new = replace(
        state,
        thread=readable(thread.get("id"), 200) or None,
        model=readable(result.get("model"), 200) or None,
        version=readable(thread.get("cliVersion"), 100) or state.version,
        roots=(*state.roots, cwd) if cwd.startswith("/") and cwd not in state.roots else state.roots,
    )
    data = {"session_ref": new.thread, "model": new.model, "version": new.version}
    started = AgentEvent(kind="Started", text=new.model or "", data=data)
    if state.request is None:
        return Folded(state=new, events=(started,))
    ask = rpc.request("turn", "turn/start", {"threadId": new.thread, **starting.turn(state.request)})
    return Folded(state=new, events=(started,), writes=(ask,))


def _asked(state: CodexState, method: str, id: object, params: _Params) -> Folded:
    result, questions = asking.answer(state, method, params)
    if result is None:
        error = {"code": _NOT_KNOWN, "message": f"Loopwright has no answer to {method}"}
        return Folded(state=state, events=(_raw(method),), writes=(rpc.line({"id": id, "error": error}),))
    writes = (rpc.line({"id": id, "result": result}),)
    if not questions:
        return Folded(state=state, writes=writes)
    # Not every refusal ends the turn, and a sub-agent has its own turn, so ours is ended in so
    # many words; when it has ended by then, that does no harm.
    turn = {"threadId": state.thread or params.get("threadId"), "turnId": state.turn or params.get("turnId")}
    known = {one.wish.key for one in state.asked if one.wish}
    fresh = [one for one in questions if one.wish is None or one.wish.key not in known]
    new = replace(state, asked=(*state.asked, *fresh))
    events = [
        AgentEvent(kind="Ask", text=one.text, data={"kind": one.kind, "options": list(one.options)})
        for one in fresh
        if state.request is not None
    ]
    stop = rpc.request(f"stop {len(new.asked)}", "turn/interrupt", turn)
    return Folded(state=new, events=tuple(events), writes=(*writes, stop))


def _told(state: CodexState, method: str, params: _Params) -> Folded:
    ours = params.get("threadId") == state.thread
    match method:
        case "turn/started" if ours:
            turn = readable(_object(params.get("turn")).get("id"), 200)
            return Folded(state=replace(state, turn=state.turn or turn or None))
        case "turn/completed" if ours and _object(params.get("turn")).get("id") in (state.turn, None):
            return _ended(state, _object(params.get("turn")))
        case "item/started":
            item = _object(params.get("item"))
            kept = (*state.items, items.remembered(item))[-_OPEN_ITEMS:]
            new = replace(state, items=kept, waiting=None, acted=state.acted or items.is_of_agent(item))
            return Folded(state=new, events=items.started(item))
        case "item/completed":
            return _done(state, _object(params.get("item")), ours=ours)
        case "thread/tokenUsage/updated":
            return _usage(state, params)
        case "turn/diff/updated":
            return _diff(state, readable(params.get("diff"), 10_000_000))
        case "account/rateLimits/updated":
            return _limits(state, _object(params.get("rateLimits")))
        case "error":
            return _error(state, params)
        case "mcpServer/startupStatus/updated" if params.get("status") == "failed":
            text = f"{readable(params.get('name'), 200)}: {readable(params.get('error'))}"
            return Folded(state=state, events=(AgentEvent(kind="Error", text=text, data={"class": "tool"}),))
        case "model/rerouted" if ours:
            return Folded(state=replace(state, model=readable(params.get("toModel"), 200) or state.model))
        case "warning" | "configWarning" | "guardianWarning" | "deprecationNotice":
            text = readable(params.get("message")) or readable(params.get("summary"))
            return Folded(state=state, events=(_raw(method, text),))
        case _ if method in starting.UNWANTED or method in _OTHERS:
            return Folded(state=state)
        case _:
            return Folded(state=state, events=(_raw(method),))


def _ended(state: CodexState, turn: _Params) -> Folded:
    error = turn.get("error")
    status = readable(turn.get("status"), 100)
    problem = failures.problem(error) if isinstance(error, dict) else None
    new = replace(state, ending=Ending(status=status, problem=problem))
    return Folded(state=new, events=_finished(new), close=True)


def _finished(state: CodexState) -> tuple[AgentEvent, ...]:
    assert state.ending is not None
    ok = state.ending.status == "completed"
    text = state.ending.problem.message if state.ending.problem else state.said if ok else ""
    return (AgentEvent(kind="Finished", text=text, data={"ok": ok, "reason": state.ending.status}),)


def _done(state: CodexState, item: _Params, *, ours: bool) -> Folded:
    id = item.get("id")  # noqa: A001 - the protocol's word
    new = replace(
        state,
        items=tuple(one for one in state.items if one.id != id),
        waiting=None,
        acted=state.acted or items.is_of_agent(item),
    )
    if item.get("type") == "agentMessage" and ours:
        new = replace(new, said=items.whole(item.get("text")))
    if item.get("type") == "fileChange" and item.get("status") == "failed":
        new = replace(new, failed_changes=state.failed_changes + 1)
    return Folded(state=new, events=items.completed(item))


def _usage(state: CodexState, params: _Params) -> Folded:
    counts = _object(params.get("tokenUsage"))
    total, last = read_usage(counts.get("total")), read_usage(counts.get("last"))
    thread = readable(params.get("threadId"), 200)
    if total is None or not thread:
        return Folded(state=state)
    new = state.counted(thread, total)
    if thread == state.thread and params.get("turnId") != state.turn:
        # What the conversation had used before, told again because it is continued.
        return Folded(state=new)
    if state.base is None and last is not None and thread == state.thread:
        new = replace(new, base=minus(total, last))
    used = total if last is None else last
    so_far = new.used()
    data = {**asdict(used), **({"run": asdict(so_far)} if so_far else {})}
    return Folded(state=new, events=(AgentEvent(kind="Usage", data=data),))


def _diff(state: CodexState, diff: str) -> Folded:
    """Report the files whose change is another than it was; Codex repeats the whole difference each time."""
    now = dict(_sections(diff))
    known = dict(state.changes)
    fresh = {path: change for path, (mark, change) in now.items() if known.get(path) != mark}
    events = tuple(
        AgentEvent(kind="FileChange", text=path, data={"path": path, "change": change})
        for path, change in fresh.items()
    )
    marks = tuple((path, mark) for path, (mark, _) in now.items())
    return Folded(state=replace(state, changes=marks), events=events)


def _sections(diff: str) -> Iterator[tuple[str, tuple[int, str]]]:
    starts = list(_DIFF.finditer(diff))
    ends = [*(one.start() for one in starts[1:]), len(diff)]
    for found, end in zip(starts, ends, strict=False):
        text = diff[found.start() : end]
        head = text.partition("\n@@")[0]
        change = "created" if "\nnew file" in head else "deleted" if "\ndeleted file" in head else "changed"
        yield readable(found["to"], 1_000), (crc32(text.encode("utf-8", "replace")), change)


def _limits(state: CodexState, limits: _Params) -> Folded:
    windows = quota.updated(state.windows, limits)
    events = tuple(
        AgentEvent(
            kind="RateLimit",
            text=_in_words(one),
            data={
                "window": one.name,
                "kind": one.kind.value,
                "utilization": one.used,
                "resets_at": one.resets_at.isoformat() if one.resets_at else None,
            },
        )
        for one in windows
        if one not in state.windows
    )
    new = replace(state, windows=windows, unpaid=quota.unpaid(state.unpaid, limits))
    return Folded(state=new, events=events)


def _in_words(window: QuotaWindow) -> str:
    if window.used is not None:
        return f"{window.name}: {window.used:.0%} used"
    if not window.left:
        return window.name
    return f"{window.name}: {window.left}" + ("" if window.left.endswith("used") else " left")


def _error(state: CodexState, params: _Params) -> Folded:
    told = failures.problem(_object(params.get("error")))
    data = {"class": told.name, "status": told.status}
    if params.get("willRetry") is True:
        event = AgentEvent(kind="Retry", text=told.message, data=data)
        return Folded(state=replace(state, waiting=told), events=(event,))
    return Folded(state=state, events=(AgentEvent(kind="Error", text=told.message, data=data),))


def _raw(method: str, text: str = "") -> AgentEvent:
    return AgentEvent(kind="Raw", text=readable(text), data={"method": readable(method, 100)})


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
