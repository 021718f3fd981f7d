"""Codex's own requests: what each wants leave for, put into wishes, and the answer in the protocol's words."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from loopwright.adapters.agents.codex.items import command_line, place, whole
from loopwright.adapters.agents.codex.state import CodexState, Item
from loopwright.adapters.agents.output import readable
from loopwright.adapters.agents.reading import only_reads
from loopwright.core.replies.questions import Asking, asking_leave, asking_of
from loopwright.core.values.permissions import Permissions, Settled, Wish, settle
from loopwright.core.values.wording import on_one_line

Answer = Mapping[str, Any]
_Params = Mapping[str, Any]

WAIT: Final = "A person has been asked; stop here, you will be told the answer."
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
        result = {**result, "permissions": _given(_object(params.get("permissions")))}
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
            yield from _edits(_texts(list(_object(params.get("fileChanges")))), state.roots)
            yield from _edits(_texts([params.get("grantRoot")]), state.roots)
        case "mcpServer/elicitation/request":
            yield Wish(kind="tool", what=_tool(state.items, params))
        case "item/permissions/requestApproval":
            yield from _permissions(_object(params.get("permissions")), state.roots)


def _command(state: CodexState, params: _Params) -> Iterator[Wish]:
    network = _object(params.get("networkApprovalContext"))
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
    files = _object(wanted.get("fileSystem"))
    yield from _edits(_texts(files.get("write")), roots)
    yield from (Wish(kind="read", what=path) for path in _texts(files.get("read")))
    entries = files.get("entries")
    for entry in entries if isinstance(entries, list) else ():
        where = _object(_object(entry).get("path"))
        path = whole(where.get("path"))
        if path and where.get("type") == "path" and _object(entry).get("access") == "write":
            yield from _edits((path,), roots)
        elif _object(entry).get("access") != "deny":
            yield Wish(kind="tool", what=f"files {path or readable(str(sorted(where.items())), 300)}")
    if _object(wanted.get("network")).get("enabled") is not None:
        yield Wish(kind="tool", what="network")


def _given(wanted: _Params) -> dict[str, Any]:
    return {name: wanted[name] for name in ("fileSystem", "network") if wanted.get(name) is not None}


def _is_tool_approval(params: _Params) -> bool:
    return _object(params.get("_meta")).get("codex_approval_kind") == "mcp_tool_call"


def _tool(items: Sequence[Item], params: _Params) -> str:
    """Name the tool that a server wants to run: the request itself says it only to people."""
    server = readable(params.get("serverName"), 200)
    given = _object(params.get("_meta")).get("tool_params")
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
        facts = _object(question)
        options = facts.get("options")
        labels = [_object(one).get("label") for one in options] if isinstance(options, list) else []
        answers[readable(facts.get("id"), 200)] = {"answers": [WAIT]}
        if found := asking_of({"question": facts.get("question"), "options": labels}):
            asked.append(found)
    return {"answers": answers}, tuple(asked)


def _object(value: object) -> _Params:
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> list[str]:
    items = value if isinstance(value, list) else []
    return [whole(one) for one in items if isinstance(one, str) and one]
