"""What Claude Code's stream-json output tells, line by line: facts to judge by, and normalised events."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Final

from loopwright.adapters.agents.claude import claude_meters
from loopwright.adapters.agents.claude.claude_meters import Calls
from loopwright.adapters.agents.output import Object, micros, object_in, readable, remembered, whole_number
from loopwright.core.rows.model import Usage
from loopwright.ports import AgentEvent, OutputLine, QuotaWindow

_OPEN_TOOLS: Final = 64
"""So many tool calls are remembered at most, to name them when they end."""

_LONGEST_PAUSE_MS: Final = 3_600_000
"""It does not wait for longer than a minute; what is far above that is not a pause."""

_TELLING: Final = ("file_path", "notebook_path", "command", "pattern", "path", "url", "query", "description")
"""The inputs of a tool call that say most about it, best first."""


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
    structured: Object | None
    """What the program says fits the schema that it was given."""
    denied: tuple[str, ...]
    """Names of the tools that were refused, one for each refusal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Everything that the judgement needs to know about the lines so far."""

    started: bool = False
    session_ref: str | None = None
    model: str | None = None
    version: str | None = None
    folder: str | None = None
    """Where it says that it works: the workspace as the program calls it, links followed."""
    ending: Ending | None = None
    error: str | None = None
    """The error class of the last message, if that message was an error."""
    total_cost_micros: int | None = None
    """Of the whole conversation so far, not of this run."""
    total_usage: Usage | None = None
    """As above, and with what its own helpers used."""
    turns_usage: Usage | None = None
    """Of this run's turns, without its helpers: for output that has no totals."""
    calls: Calls = field(default_factory=Calls)
    """What its models have answered so far."""
    retried: tuple[int | None, str] | None = None
    """It asked the service once more by itself, since the service last answered: because of this status and error."""
    wait_s: float | None = None
    """So long the service wants to be left alone, as it said last since it answered."""
    limit_rejected: bool = False
    resets_at: datetime | None = None
    windows: tuple[QuotaWindow, ...] = ()
    open_tools: tuple[tuple[str, str], ...] = ()
    tail: tuple[str, ...] = ()
    """The last lines that were not JSON: this is where the program complains before it can stream."""


Read = tuple[Seen, tuple[AgentEvent, ...]]


def unread(seen: Seen, line: OutputLine) -> Read:
    """Take in a line that is not JSON."""
    raw = AgentEvent(kind="Raw", text=readable(line.text), data={"stream": line.stream})
    return replace(seen, tail=remembered(seen.tail, line.text)), (raw,)


def read(seen: Seen, event: Object, line: OutputLine) -> Read:
    """Take in one event."""
    match event.get("type"), event.get("subtype"):
        case "system", "init":
            return _started(seen, event)
        case "system", "api_retry":
            return _retried(seen, event)
        case "system", "permission_denied":
            return seen, (_denied(event),)
        case "assistant", _:
            return _assistant(seen, event)
        case "user", _:
            return _user(seen, event)
        case "rate_limit_event", _:
            return _rate_limit(seen, event)
        case "result", _:
            return _result(seen, event)
        case kind, subtype:
            what = {"type": readable(kind, 100), "subtype": readable(subtype, 100), "stream": line.stream}
            return seen, (AgentEvent(kind="Raw", text=readable(line.text), data=what),)


def _started(seen: Seen, event: Object) -> Read:
    new = replace(
        seen,
        started=True,
        session_ref=readable(event.get("session_id"), 200) or seen.session_ref,
        model=readable(event.get("model"), 200) or seen.model,
        version=readable(event.get("claude_code_version"), 100) or seen.version,
        folder=readable(event.get("cwd")) or seen.folder,
        windows=seen.windows or claude_meters.paid_by_key(event.get("apiKeySource")),
    )
    data = {
        "session_ref": new.session_ref,
        "model": new.model,
        "version": new.version,
        "permission_mode": readable(event.get("permissionMode"), 100),
    }
    return new, (AgentEvent(kind="Started", text=new.model or "", data=data),)


def _retried(seen: Seen, event: Object) -> Read:
    attempt, delay_ms = whole_number(event.get("attempt")), whole_number(event.get("retry_delay_ms"))
    status, error = whole_number(event.get("error_status")), readable(event.get("error"), 200)
    new = replace(seen, retried=(status, error))
    if delay_ms is not None and _own_pause_ms(attempt or 1) < delay_ms <= _LONGEST_PAUSE_MS:
        new = replace(new, wait_s=delay_ms / 1000)
    data = {
        "attempt": attempt,
        "max_retries": whole_number(event.get("max_retries")),
        "delay_ms": delay_ms,
        "status": status,
        "error": error,
    }
    return new, (AgentEvent(kind="Retry", text=error, data=data),)


def _own_pause_ms(attempt: int) -> float:
    """Return the longest pause that it makes of its own accord: only a longer one is what the service asked for."""
    return 1.25 * min(500.0 * 2.0 ** (min(attempt, 20) - 1), 32_000.0)


def _denied(event: Object) -> AgentEvent:
    data = {"class": "permission_denied", "tool": readable(event.get("tool_name"), 100)}
    return AgentEvent(kind="Error", text=readable(event.get("message")), data=data)


def _assistant(seen: Seen, event: Object) -> Read:
    error = readable(event.get("error"), 200) or None
    new = replace(seen, error=error)
    if error is None:
        new = replace(new, retried=None, wait_s=None)
    if error is not None:
        info = object_in(object_in(event.get("api_error_params")).get("rate_limit_info"))
        resets_at = claude_meters.moment(info.get("resetsAt"))
        if resets_at is not None:
            new = replace(
                new,
                limit_rejected=True,
                resets_at=resets_at,
                windows=claude_meters.windows(new.windows, info),
            )
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
                events.append(_tool_start(call, name, object_in(block.get("input"))))
            case other:
                events.append(AgentEvent(kind="Raw", data={"block": readable(other, 100)}))
    calls = seen.calls.heard(object_in(event.get("message")))
    if calls != seen.calls:
        events.append(AgentEvent(kind="Usage", data=calls.told()))
    return replace(new, calls=calls), tuple(events)


def _tool_start(call: str, name: str, given: Object) -> AgentEvent:
    inputs = {
        readable(key, 100): readable(given[key], 500) for key in _TELLING if isinstance(given.get(key), str)
    }
    telling = next(iter(inputs.values()), "")
    return AgentEvent(
        kind="ToolStart", text=f"{name} {telling}".strip(), data={"id": call, "name": name, "input": inputs}
    )


def _user(seen: Seen, event: Object) -> Read:
    events: list[AgentEvent] = []
    for block in _blocks(event):
        if block.get("type") != "tool_result":
            events.append(AgentEvent(kind="Raw", text=readable(block.get("text")), data={"type": "user"}))
            continue
        call = readable(block.get("tool_use_id"), 200)
        name = dict(seen.open_tools).get(call, "")
        ok = block.get("is_error") is not True
        seen = replace(seen, open_tools=tuple(tool for tool in seen.open_tools if tool[0] != call))
        events.append(
            AgentEvent(
                kind="ToolEnd",
                text=_result_text(block.get("content")),
                data={"id": call, "name": name, "ok": ok},
            )
        )
        if ok:
            events.extend(_file_changes(object_in(event.get("tool_use_result"))))
    return seen, tuple(events)


def _result_text(content: object) -> str:
    if isinstance(content, list):
        texts = [
            block["text"]
            for block in content
            if isinstance(block, dict) and isinstance(block.get("text"), str)
        ]
        return readable("\n".join(texts), 1_000)
    return readable(content, 1_000)


def _file_changes(result: Object) -> Iterator[AgentEvent]:
    path = readable(result.get("filePath"), 1_000)
    if path and "structuredPatch" in result:
        change = "created" if result.get("type") == "create" else "changed"
        yield AgentEvent(kind="FileChange", text=path, data={"path": path, "change": change})
    by_shell = object_in(result.get("bashEditDiff")).get("changedFiles")
    for item in by_shell[:200] if isinstance(by_shell, list) else ():
        if path := readable(item, 1_000):
            yield AgentEvent(kind="FileChange", text=path, data={"path": path, "change": "changed"})


def _rate_limit(seen: Seen, event: Object) -> Read:
    info = object_in(event.get("rate_limit_info"))
    status, resets_at = readable(info.get("status"), 100), claude_meters.moment(info.get("resetsAt"))
    seen = replace(seen, windows=claude_meters.windows(seen.windows, info))
    if status == "rejected":
        seen = replace(seen, limit_rejected=True, resets_at=resets_at or seen.resets_at)
    data = {
        "status": status,
        "window": readable(info.get("rateLimitType"), 100),
        "resets_at": resets_at.isoformat() if resets_at else None,
        "utilization": claude_meters.share(info.get("utilization")),
    }
    return seen, (AgentEvent(kind="RateLimit", text=status, data=data),)


def _result(seen: Seen, event: Object) -> Read:
    errors = event.get("errors")
    said = event.get("result") if isinstance(event.get("result"), str) else None
    complaints = [item for item in errors if isinstance(item, str)] if isinstance(errors, list) else []
    denials = event.get("permission_denials")
    structured = event.get("structured_output")
    ending = Ending(
        # Only a plain `false` is not an error: what is missing or odd proves nothing.
        is_error=event.get("is_error") is not False,
        text=readable(said if said is not None else "; ".join(complaints[:5])),
        subtype=readable(event.get("subtype"), 100),
        terminal_reason=readable(event.get("terminal_reason"), 100) or None,
        stop_reason=readable(event.get("stop_reason"), 100) or None,
        api_status=whole_number(event.get("api_error_status")),
        api_error=readable(event.get("api_error"), 100) or None,
        turns=whole_number(event.get("num_turns")),
        structured=structured if isinstance(structured, dict) else None,
        denied=tuple(
            readable(item.get("tool_name"), 100) or "a tool"
            for item in (denials[:1_000] if isinstance(denials, list) else ())
            if isinstance(item, dict)
        ),
    )
    usage, cost = claude_meters.usage_of_turn(event.get("usage")), micros(event.get("total_cost_usd"))
    events = [AgentEvent(kind="Usage", data=asdict(usage))] if usage is not None else []
    finished = {"ok": not ending.is_error, "reason": ending.terminal_reason or ending.subtype}
    events.append(AgentEvent(kind="Finished", text=ending.text, data=finished))
    # Without an opening line there is no conversation that could be continued.
    session_ref = seen.session_ref or (readable(event.get("session_id"), 200) if seen.started else None)
    new = replace(
        seen,
        ending=ending,
        session_ref=session_ref or None,
        total_cost_micros=seen.total_cost_micros if cost is None else cost,
        total_usage=claude_meters.usage_of_all(event.get("modelUsage")) or seen.total_usage,
        turns_usage=claude_meters.added(seen.turns_usage, usage),
    )
    return new, tuple(events)


def _blocks(event: Object) -> list[Object]:
    content = object_in(event.get("message")).get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
