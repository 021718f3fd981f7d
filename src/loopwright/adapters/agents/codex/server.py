"""`codex app-server`: one conversation, one turn, and then its stdin is closed, which ends it."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any, Final
from zlib import crc32

from loopwright.adapters.agents.codex import failures, items, quota, starting
from loopwright.adapters.agents.codex.items import command_line, place, whole
from loopwright.adapters.agents.codex.state import CodexState, Ending, Item, minus, read_usage
from loopwright.adapters.agents.output import readable
from loopwright.adapters.agents.reading import only_reads
from loopwright.core.replies.questions import Asking, asking_leave, asking_of
from loopwright.core.values.permissions import Permissions, Settled, Wish, settle
from loopwright.core.values.wording import on_one_line
from loopwright.ports import AgentEvent, Folded, QuotaWindow

# Codex's own requests: what each wants leave for, put into wishes, and the answer in the protocol's words.

Answer = Mapping[str, Any]
_Params = Mapping[str, Any]

WAIT: Final = "A person has the question. Stop here; you will get the answer."
_REFUSED: Final = "This is not permitted here."

_V2: Final[Mapping[Settled, Answer]] = {
    Settled.ALLOW: {"decision": "accept"},
    Settled.DENY: {"decision": "decline"},
    # The protocol has no words for a refusal, but one that interrupts the turn.
    Settled.ASK: {"decision": "cancel"},
}
_V1: Final[Mapping[Settled, Answer]] = {
    Settled.ALLOW: {"decision": "approved"},
    Settled.DENY: {"decision": {"denied": {"rejection": _REFUSED}}},
    Settled.ASK: {"decision": {"denied": {"rejection": WAIT}}},
}
_NOTHING: Final[Answer] = {"permissions": {}, "scope": "turn"}
_ANSWERS: Final[Mapping[str, Mapping[Settled, Answer]]] = MappingProxyType(
    {
        "item/commandExecution/requestApproval": _V2,
        "item/fileChange/requestApproval": _V2,
        "execCommandApproval": _V1,
        "applyPatchApproval": _V1,
        "mcpServer/elicitation/request": {
            Settled.ALLOW: {"action": "accept", "content": {}},
            Settled.DENY: {"action": "decline"},
            Settled.ASK: {"action": "cancel"},
        },
        "item/permissions/requestApproval": {
            Settled.ALLOW: _NOTHING,  # with what was asked for in it
            Settled.DENY: _NOTHING,
            Settled.ASK: _NOTHING,
        },
    }
)
_TOOL_IN_WORDS: Final = re.compile(r'run tool "([^"]+)"')


def answer(state: CodexState, method: str, params: _Params) -> tuple[Answer | None, tuple[Asking, ...]]:
    """Return the result to answer with and what has to be asked; None if such a request cannot be answered."""
    if method == "item/tool/requestUserInput":
        return _questions(params)
    if method not in _ANSWERS:
        return None, ()
    if method == "mcpServer/elicitation/request" and not _is_tool_approval(params):
        # A server wants a form filled in, which is not supported.
        return {"action": "decline"}, ()
    permissions = state.request.permissions if state.request else Permissions()
    # The same path may be named in two ways.
    wishes = tuple(dict.fromkeys(_wishes(state, method, params))) or (Wish(kind="tool", what=method),)
    verdicts = [settle(permissions, wish) for wish in wishes]
    if Settled.DENY in verdicts:
        return _ANSWERS[method][Settled.DENY], ()
    if Settled.ASK in verdicts:
        reason = on_one_line(readable(params.get("reason"), 1_000))
        open_ones = [wish for wish, verdict in zip(wishes, verdicts, strict=True) if verdict is Settled.ASK]
        return _ANSWERS[method][Settled.ASK], tuple(_asking(wish, reason) for wish in open_ones)
    result = _ANSWERS[method][Settled.ALLOW]
    if method == "item/permissions/requestApproval":
        result = {**result, "permissions": _given(_as_object(params.get("permissions")))}
    return result, ()


def _wishes(state: CodexState, method: str, params: _Params) -> Iterator[Wish]:
    match method:
        case "item/commandExecution/requestApproval":
            yield from _command(state, params)
        case "execCommandApproval":
            yield _to_run(shlex.join(_texts(params.get("command"))), params.get("cwd"), state.roots)
        case "item/fileChange/requestApproval":
            item = next((one for one in state.items if one.id == params.get("itemId")), None)
            # A change that was not told before could be of any file.
            yield from _edits(item.paths if item and item.paths else ("/",), state.roots)
            yield from _edits(_texts([params.get("grantRoot")]), state.roots)
        case "applyPatchApproval":
            yield from _edits(_texts(list(_as_object(params.get("fileChanges")))), state.roots)
            yield from _edits(_texts([params.get("grantRoot")]), state.roots)
        case "mcpServer/elicitation/request":
            yield Wish(kind="tool", what=_tool(state.items, params))
        case "item/permissions/requestApproval":
            yield from _permissions(_as_object(params.get("permissions")), state.roots)


def _command(state: CodexState, params: _Params) -> Iterator[Wish]:
    network = _as_object(params.get("networkApprovalContext"))
    if network:
        # Leave for a command is not permission for the network.
        yield Wish(kind="tool", what=f"network {readable(network.get('host'), 300)}")
    elif params.get("kind", "command") == "command":
        yield _to_run(whole(params.get("command")), params.get("cwd"), state.roots)
    else:
        yield Wish(kind="tool", what=f"{readable(params.get('kind'), 100)} {whole(params.get('command'))}")


def _to_run(command: str, cwd: object, roots: Sequence[str]) -> Wish:
    line = command_line(command)
    if only_reads(line):
        return Wish(kind="read", what=line)
    where, inside = place(whole(cwd) or ".", roots)
    return Wish(kind="command", what=line if inside else f"cd {shlex.quote(where)} && {line}")


def _edits(paths: Sequence[str], roots: Sequence[str]) -> Iterator[Wish]:
    for path in paths:
        what, inside = place(path, roots)
        yield Wish(kind="edit", what=what, inside=inside)


def _permissions(wanted: _Params, roots: Sequence[str]) -> Iterator[Wish]:
    files = _as_object(wanted.get("fileSystem"))
    yield from _edits(_texts(files.get("write")), roots)
    yield from (Wish(kind="read", what=path) for path in _texts(files.get("read")))
    entries = files.get("entries")
    for entry in entries if isinstance(entries, list) else ():
        where = _as_object(_as_object(entry).get("path"))
        path = whole(where.get("path"))
        if path and where.get("type") == "path" and _as_object(entry).get("access") == "write":
            yield from _edits((path,), roots)
        elif _as_object(entry).get("access") != "deny":
            yield Wish(kind="tool", what=f"files {path or readable(str(sorted(where.items())), 300)}")
    if _as_object(wanted.get("network")).get("enabled") is not None:
        yield Wish(kind="tool", what="network")


def _given(wanted: _Params) -> dict[str, Any]:
    return {name: wanted[name] for name in ("fileSystem", "network") if wanted.get(name) is not None}


def _is_tool_approval(params: _Params) -> bool:
    return _as_object(params.get("_meta")).get("codex_approval_kind") == "mcp_tool_call"


def _tool(items: Sequence[Item], params: _Params) -> str:
    """Name the tool that a server wants to run: the request itself says it only to people."""
    server = readable(params.get("serverName"), 200)
    given = _as_object(params.get("_meta")).get("tool_params")
    calls = [one for one in items if one.type == "mcpToolCall" and one.server == server and one.tool]
    same = [one.tool for one in calls if (one.arguments or {}) == (given or {})]
    told = _TOOL_IN_WORDS.search(readable(params.get("message"), 1_000))
    tools = same or [one.tool for one in calls]
    if told and (told[1] in tools or not tools):
        tools = [told[1]]
    return f"mcp__{server}__{tools[-1] if tools else '?'}"


def _asking(wish: Wish, reason: str) -> Asking:
    asking = asking_leave(wish)
    return replace(asking, text=f"{asking.text} (it says: {reason})") if reason else asking


def _questions(params: _Params) -> tuple[Answer, tuple[Asking, ...]]:
    given = params.get("questions")
    asked, answers = [], {}
    for question in given[:20] if isinstance(given, list) else ():
        facts = _as_object(question)
        options = facts.get("options")
        labels = [_as_object(one).get("label") for one in options] if isinstance(options, list) else []
        answers[readable(facts.get("id"), 200)] = {"answers": [WAIT]}
        if found := asking_of({"question": facts.get("question"), "options": labels}):
            asked.append(found)
    return {"answers": answers}, tuple(asked)


def _as_object(value: object) -> _Params:
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> list[str]:
    items = value if isinstance(value, list) else []
    return [whole(one) for one in items if isinstance(one, str) and one]


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
    return (
        starting.rpc_request("interrupt", "turn/interrupt", {"threadId": state.thread, "turnId": state.turn}),
    )


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
            who = starting.rpc_request("account", "account/read", {"refreshToken": False})
            writes = (
                starting.rpc_line({"method": "initialized"}),
                who,
                starting.rpc_request("thread", method, params),
            )
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
    ask = starting.rpc_request("turn", "turn/start", {"threadId": new.thread, **starting.turn(state.request)})
    return Folded(state=new, events=(started,), writes=(ask,))


def _asked(state: CodexState, method: str, id: object, params: _Params) -> Folded:
    result, questions = answer(state, method, params)
    if result is None:
        error = {"code": _NOT_KNOWN, "message": f"Loopwright has no answer to {method}"}
        return Folded(
            state=state, events=(_raw(method),), writes=(starting.rpc_line({"id": id, "error": error}),)
        )
    writes = (starting.rpc_line({"id": id, "result": result}),)
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
    stop = starting.rpc_request(f"stop {len(new.asked)}", "turn/interrupt", turn)
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
