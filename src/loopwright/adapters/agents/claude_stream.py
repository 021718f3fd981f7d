"""Claude Code's stream-json output, line by line, as a frozen state and normalised events."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from loopwright.adapters.agents.output import json_object, micros, readable, remembered, whole_number
from loopwright.core.model import Usage
from loopwright.ports import AgentEvent, Folded, OutputLine

_OPEN_TOOLS: Final = 64
"""So many tool calls are remembered at most, to name them when they end."""

_TELLING: Final = ("file_path", "notebook_path", "command", "pattern", "path", "url", "query", "description")
"""The inputs of a tool call that say most about it, best first."""

_Event = Mapping[str, Any]
_NOTHING: Final[_Event] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The facts of a terminal `result` line."""

    is_error: bool
    text: str
    subtype: str
    terminal_reason: str | None
    stop_reason: str | None
    api_status: int | None
    api_error: str | None
    turns: int | None
    total_cost_micros: int | None
    """Of the whole conversation so far, not of this run."""
    usage: Usage | None
    denied: tuple[str, ...]
    """Names of the tools that were refused, one for each refusal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeState:
    """Everything that the judgement needs to know about the lines so far."""

    session_cost_micros: int = 0
    started: bool = False
    session_ref: str | None = None
    model: str | None = None
    version: str | None = None
    ending: Ending | None = None
    error: str | None = None
    """The error class of the last message, if that message was an error."""
    limit_rejected: bool = False
    resets_at: datetime | None = None
    open_tools: tuple[tuple[str, str], ...] = ()
    tail: tuple[str, ...] = ()
    """The last lines that were not JSON: this is where the program complains before it can stream."""


def fold(state: ClaudeState, line: OutputLine) -> Folded:
    """Take in one line of output."""
    event = json_object(line.text) if line.stream == "out" else None
    if event is None:
        raw = AgentEvent(kind="Raw", text=readable(line.text), data={"stream": line.stream})
        return Folded(state=replace(state, tail=remembered(state.tail, line.text)), events=(raw,))
    match event.get("type"), event.get("subtype"):
        case "system", "init":
            return _started(state, event)
        case "system", "api_retry":
            return Folded(state=state, events=(_retry(event),))
        case "system", "permission_denied":
            return Folded(state=state, events=(_denied(event),))
        case "assistant", _:
            return _assistant(state, event)
        case "user", _:
            return _user(state, event)
        case "rate_limit_event", _:
            return _rate_limit(state, event)
        case "result", _:
            return _result(state, event)
        case kind, subtype:
            what = {"type": readable(kind, 100), "subtype": readable(subtype, 100), "stream": line.stream}
            return Folded(state=state, events=(AgentEvent(kind="Raw", text=readable(line.text), data=what),))


def _started(state: ClaudeState, event: _Event) -> Folded:
    new = replace(
        state,
        started=True,
        session_ref=readable(event.get("session_id"), 200) or state.session_ref,
        model=readable(event.get("model"), 200) or state.model,
        version=readable(event.get("claude_code_version"), 100) or state.version,
    )
    data = {
        "session_ref": new.session_ref,
        "model": new.model,
        "version": new.version,
        "permission_mode": readable(event.get("permissionMode"), 100),
    }
    return Folded(state=new, events=(AgentEvent(kind="Started", text=new.model or "", data=data),))


def _retry(event: _Event) -> AgentEvent:
    error = readable(event.get("error"), 200)
    data = {
        "attempt": whole_number(event.get("attempt")),
        "max_retries": whole_number(event.get("max_retries")),
        "delay_ms": whole_number(event.get("retry_delay_ms")),
        "status": whole_number(event.get("error_status")),
        "error": error,
    }
    return AgentEvent(kind="Retry", text=error, data=data)


def _denied(event: _Event) -> AgentEvent:
    data = {"class": "permission_denied", "tool": readable(event.get("tool_name"), 100)}
    return AgentEvent(kind="Error", text=readable(event.get("message")), data=data)


def _assistant(state: ClaudeState, event: _Event) -> Folded:
    error = readable(event.get("error"), 200) or None
    new = replace(state, error=error)
    if error is not None:
        info = _object(_object(event.get("api_error_params")).get("rate_limit_info"))
        resets_at = _moment(info.get("resetsAt"))
        if resets_at is not None:
            new = replace(new, limit_rejected=True, resets_at=resets_at)
    events: list[AgentEvent] = []
    for block in _blocks(event):
        match block.get("type"):
            case "text" if error is not None:
                data = {"class": error, "status": whole_number(event.get("api_error_status"))}
                events.append(AgentEvent(kind="Error", text=readable(block.get("text")), data=data))
            case "text":
                events.append(AgentEvent(kind="Text", text=readable(block.get("text"))))
            case "thinking":
                events.append(
                    AgentEvent(kind="Text", text=readable(block.get("thinking")), data={"thinking": True})
                )
            case "tool_use":
                call, name = readable(block.get("id"), 200), readable(block.get("name"), 200)
                new = replace(new, open_tools=(*new.open_tools, (call, name))[-_OPEN_TOOLS:])
                events.append(_tool_start(call, name, _object(block.get("input"))))
            case other:
                events.append(AgentEvent(kind="Raw", data={"block": readable(other, 100)}))
    return Folded(state=new, events=tuple(events))


def _tool_start(call: str, name: str, given: _Event) -> AgentEvent:
    inputs = {
        readable(key, 100): readable(given[key], 500) for key in _TELLING if isinstance(given.get(key), str)
    }
    telling = next(iter(inputs.values()), "")
    return AgentEvent(
        kind="ToolStart", text=f"{name} {telling}".strip(), data={"id": call, "name": name, "input": inputs}
    )


def _user(state: ClaudeState, event: _Event) -> Folded:
    events: list[AgentEvent] = []
    for block in _blocks(event):
        if block.get("type") != "tool_result":
            events.append(AgentEvent(kind="Raw", text=readable(block.get("text")), data={"type": "user"}))
            continue
        call = readable(block.get("tool_use_id"), 200)
        name = dict(state.open_tools).get(call, "")
        ok = block.get("is_error") is not True
        state = replace(state, open_tools=tuple(tool for tool in state.open_tools if tool[0] != call))
        events.append(
            AgentEvent(
                kind="ToolEnd",
                text=_result_text(block.get("content")),
                data={"id": call, "name": name, "ok": ok},
            )
        )
        if ok:
            events.extend(_file_changes(_object(event.get("tool_use_result"))))
    return Folded(state=state, events=tuple(events))


def _result_text(content: object) -> str:
    if isinstance(content, list):
        texts = [
            block["text"]
            for block in content
            if isinstance(block, dict) and isinstance(block.get("text"), str)
        ]
        return readable("\n".join(texts), 1_000)
    return readable(content, 1_000)


def _file_changes(result: _Event) -> Iterator[AgentEvent]:
    path = readable(result.get("filePath"), 1_000)
    if path and "structuredPatch" in result:
        change = "created" if result.get("type") == "create" else "changed"
        yield AgentEvent(kind="FileChange", text=path, data={"path": path, "change": change})
    by_shell = _object(result.get("bashEditDiff")).get("changedFiles")
    for item in by_shell[:200] if isinstance(by_shell, list) else ():
        if path := readable(item, 1_000):
            yield AgentEvent(kind="FileChange", text=path, data={"path": path, "change": "changed"})


def _rate_limit(state: ClaudeState, event: _Event) -> Folded:
    info = _object(event.get("rate_limit_info"))
    status, resets_at = readable(info.get("status"), 100), _moment(info.get("resetsAt"))
    if status == "rejected":
        state = replace(state, limit_rejected=True, resets_at=resets_at or state.resets_at)
    used = info.get("utilization")
    data = {
        "status": status,
        "window": readable(info.get("rateLimitType"), 100),
        "resets_at": resets_at.isoformat() if resets_at else None,
        "utilization": used if isinstance(used, float) and 0 <= used <= 1_000 else whole_number(used),
    }
    return Folded(state=state, events=(AgentEvent(kind="RateLimit", text=status, data=data),))


def _result(state: ClaudeState, event: _Event) -> Folded:
    errors = event.get("errors")
    said = event.get("result") if isinstance(event.get("result"), str) else None
    complaints = [item for item in errors if isinstance(item, str)] if isinstance(errors, list) else []
    denials = event.get("permission_denials")
    ending = Ending(
        # Only a plain `false` is no error: what is missing or odd proves nothing.
        is_error=event.get("is_error") is not False,
        text=readable(said if said is not None else "; ".join(complaints[:5])),
        subtype=readable(event.get("subtype"), 100),
        terminal_reason=readable(event.get("terminal_reason"), 100) or None,
        stop_reason=readable(event.get("stop_reason"), 100) or None,
        api_status=whole_number(event.get("api_error_status")),
        api_error=readable(event.get("api_error"), 100) or None,
        turns=whole_number(event.get("num_turns")),
        total_cost_micros=micros(event.get("total_cost_usd")),
        usage=_usage(event.get("usage")),
        denied=tuple(
            readable(item.get("tool_name"), 100) or "a tool"
            for item in (denials[:1_000] if isinstance(denials, list) else ())
            if isinstance(item, dict)
        ),
    )
    events = []
    if ending.usage is not None:
        tokens = {
            "input_tokens": ending.usage.input_tokens,
            "output_tokens": ending.usage.output_tokens,
            "cache_read_tokens": ending.usage.cache_read_tokens,
            "cache_write_tokens": ending.usage.cache_write_tokens,
        }
        events.append(AgentEvent(kind="Usage", data=tokens))
    events.append(
        AgentEvent(
            kind="Finished",
            text=ending.text,
            data={"ok": not ending.is_error, "reason": ending.terminal_reason or ending.subtype},
        )
    )
    # Without an opening line there is no conversation that could be gone on with.
    session_ref = state.session_ref or (readable(event.get("session_id"), 200) if state.started else None)
    return Folded(state=replace(state, ending=ending, session_ref=session_ref or None), events=tuple(events))


def _usage(value: object) -> Usage | None:
    if not isinstance(value, dict):
        return None
    return Usage(
        input_tokens=whole_number(value.get("input_tokens")),
        output_tokens=whole_number(value.get("output_tokens")),
        cache_read_tokens=whole_number(value.get("cache_read_input_tokens")),
        cache_write_tokens=whole_number(value.get("cache_creation_input_tokens")),
    )


def _moment(epoch: object) -> datetime | None:
    seconds = whole_number(epoch)
    # Year 2001 to 2286: anything else is no time in seconds.
    return datetime.fromtimestamp(seconds, UTC) if seconds and 10**9 <= seconds < 10**10 else None


def _object(value: object) -> _Event:
    return value if isinstance(value, dict) else _NOTHING


def _blocks(event: _Event) -> list[_Event]:
    content = _object(event.get("message")).get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
