"""The conversation with Claude Code: what its lines lead us to say, until its stdin is closed.

A control request, written at the start, opens it. The prompt follows when that was answered, requests for leave are
answered as policy says, and after the last turn's result stdin is closed, which ends the program.
"""

from dataclasses import asdict, dataclass, field, replace
from typing import Final, Literal

from loopwright.adapters.agents.claude import claude_control, claude_meters, claude_stream
from loopwright.adapters.agents.claude.claude_stream import Seen
from loopwright.adapters.agents.output import Object, json_object, object_in, readable, remembered
from loopwright.core.replies.questions import Asking, asking_leave
from loopwright.core.rows.model import Usage
from loopwright.core.values.permissions import Settled, settle
from loopwright.ports import AgentEvent, AgentRequest, Folded, OutputLine, Spent

_NO_FIT: Final = (
    "Your result is missing: call the tool StructuredOutput now, once, with an input that fits its schema. "
    "Do nothing else."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeState:
    """Where the conversation stands."""

    request: AgentRequest | None = None
    """None when the output is only read."""
    before: Spent = field(default_factory=Spent)
    seen: Seen = field(default_factory=Seen)
    stage: Literal["opening", "working", "closed"] = "opening"
    interrupted: bool = False
    """It confirmed that we interrupted it."""
    asked: tuple[Asking, ...] = ()
    asked_to_fit: bool = False
    """It was told once that a result which fits the schema is missing."""
    broken_tools: tuple[str, ...] = ()
    """Tool servers that it was given and could not start."""

    @property
    def is_stopping(self) -> bool:
        """Whether we have told it to stop."""
        return bool(self.asked or self.broken_tools)


def fold(state: ClaudeState, line: OutputLine) -> Folded:
    """Take in one line of output."""
    event = json_object(line.text) if line.stream == "out" else None
    if event is None:
        return _unread(state, line)
    match event.get("type"):
        case "control_response":
            return _answered(state, object_in(event.get("response")))
        case "control_request":
            return _requested(state, event)
    seen, events = claude_stream.read(state.seen, event, line)
    state = replace(state, seen=seen)
    match event.get("type"), event.get("subtype"):
        case "result", _:
            return _turn_ended(state, events)
        case "system", "init":
            return _begun(state, events, event)
    return Folded(state=state, events=events)


def _unread(state: ClaudeState, line: OutputLine) -> Folded:
    seen, events = claude_stream.unread(state.seen, line)
    state = replace(state, seen=seen)
    waiting = claude_control.id_of_cut_request(line.text) if line.stream == "out" else None
    if waiting is None:
        return Folded(state=state, events=events)
    return _say(state, events, claude_control.not_understood(waiting, "the request is too long to be read"))


def _answered(state: ClaudeState, response: Object) -> Folded:
    fine = response.get("subtype") == "success"
    what = {"type": "control_response", "id": readable(response.get("request_id"), 200), "ok": fine}
    events = (AgentEvent(kind="Raw", data=what),)
    match response.get("request_id"):
        case claude_control.OPENING_ID if state.stage == "opening" and fine:
            if state.request is None:
                return Folded(state=replace(state, stage="working"), events=events)
            return _say(replace(state, stage="working"), events, claude_control.words(state.request.prompt))
        case claude_control.OPENING_ID if state.stage == "opening":
            told = remembered(state.seen.tail, readable(response.get("error")))
            return _close(replace(state, seen=replace(state.seen, tail=told)), events)
        case claude_control.INTERRUPT_ID if fine:
            return Folded(state=replace(state, interrupted=True), events=events)
    return Folded(state=state, events=events)


def _begun(state: ClaudeState, events: tuple[AgentEvent, ...], event: Object) -> Folded:
    """Stop at once, before it costs anything, if a tool server is missing that it was given for this run."""
    if state.request is None or state.broken_tools:
        return Folded(state=state, events=events)
    broken = claude_control.broken_servers(event, state.request.tools)
    if not broken:
        return Folded(state=state, events=events)
    told = AgentEvent(kind="Error", text=f"no tools from {', '.join(broken)}", data={"class": "tool"})
    return _say(replace(state, broken_tools=broken), (*events, told), claude_control.interrupt())


def _requested(state: ClaudeState, event: Object) -> Folded:
    request, id_ = object_in(event.get("request")), readable(event.get("request_id"), 200)
    kind = readable(request.get("subtype"), 100)
    raw = AgentEvent(kind="Raw", data={"type": "control_request", "id": id_, "subtype": kind})
    if state.request is None or state.stage == "closed" or not id_:
        # Once stdin is closed no answer is possible: the program takes that for a refusal.
        return Folded(state=state, events=(raw,))
    if kind != "can_use_tool":
        return _say(state, (raw,), claude_control.not_understood(id_, f"{kind or 'this'} is not supported"))
    questions = claude_control.questions_of(request)
    if questions:
        return _ask(state, id_, questions)
    roots = (str(state.request.workspace), *((state.seen.folder,) if state.seen.folder else ()))
    wish = claude_control.wish_of(request, roots)
    match settle(state.request.permissions, wish):
        case Settled.ALLOW:
            return _say(state, (raw,), claude_control.allow(id_))
        case Settled.DENY:
            data = {"class": "permission_denied", "tool": readable(request.get("tool_name"), 100)}
            denied = AgentEvent(kind="Error", text=f"not allowed: {readable(wish.what, 500)}", data=data)
            return _say(state, (denied,), claude_control.deny(id_, claude_control.REFUSED))
        case _:
            return _ask(state, id_, (asking_leave(wish),))


def _ask(state: ClaudeState, id: str, askings: tuple[Asking, ...]) -> Folded:
    """Note what a person has to say, and stop the turn for it."""
    events = tuple(
        AgentEvent(
            kind="Ask",
            text=one.text,
            data={
                "kind": one.kind,
                "options": list(one.options),
                "wish": asdict(one.wish) if one.wish else None,
            },
        )
        for one in askings
    )
    stopped = claude_control.deny(id, claude_control.ASKED, stop=True)
    return _say(replace(state, asked=(*state.asked, *askings)), events, stopped)


def _turn_ended(state: ClaudeState, events: tuple[AgentEvent, ...]) -> Folded:
    """Close, unless the result should fit a schema and is missing although all went well: say so once."""
    events = _told_in_the_end(state, events)
    ending = state.seen.ending
    fits = ending is None or ending.is_error or ending.structured is not None
    wanted = state.request is not None and state.request.schema is not None
    was_stopped = state.interrupted or state.asked or state.broken_tools
    if fits or not wanted or was_stopped or state.asked_to_fit or state.stage != "working":
        return _close(state, events)
    # What was said is no longer its last word.
    state = replace(state, seen=replace(state.seen, ending=None), asked_to_fit=True)
    return _say(state, events, claude_control.words(_NO_FIT))


def _told_in_the_end(state: ClaudeState, events: tuple[AgentEvent, ...]) -> tuple[AgentEvent, ...]:
    """Report what the whole run has used with the tokens of a turn: the program reports that last."""
    cost, usage = spent(state)
    if cost is None and usage is None:
        return events
    run = {**asdict(usage or Usage()), "cost_micros": cost}
    return tuple(
        replace(one, data={**one.data, "run": run}) if one.kind == "Usage" else one for one in events
    )


def spent(state: ClaudeState) -> tuple[int | None, Usage | None]:
    """Return what this run cost, and its tokens."""
    seen, before = state.seen, state.before
    if not claude_meters.counts_on(seen.total_usage, seen.turns_usage, before.usage):
        before = Spent()
    cost, usage = seen.total_cost_micros, seen.total_usage
    return (
        None if cost is None else claude_meters.since(cost, before.cost_micros),
        seen.turns_usage if usage is None else claude_meters.usage_since(usage, before.usage),
    )


def _say(state: ClaudeState, events: tuple[AgentEvent, ...], text: str) -> Folded:
    if state.stage == "closed":
        return Folded(state=state, events=events)
    return Folded(state=state, events=events, writes=(text,))


def _close(state: ClaudeState, events: tuple[AgentEvent, ...]) -> Folded:
    if state.stage == "closed" or state.request is None:
        return Folded(state=state, events=events)
    return Folded(state=replace(state, stage="closed"), events=events, close=True)
