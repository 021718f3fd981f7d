"""Requests for leave, answered as policy says, in the protocol's words."""

from dataclasses import asdict, replace
from typing import Any, Final

from loopwright.adapters.agents.acp import calls, rpc, updates
from loopwright.adapters.agents.acp.profiles import Profile
from loopwright.adapters.agents.acp.state import AcpState
from loopwright.adapters.agents.output import Object, object_in, readable
from loopwright.core.replies.questions import asking_leave
from loopwright.core.values.permissions import Settled, Wish, settle
from loopwright.ports import AgentEvent, Folded

_KINDS: Final = {
    # Never "always": it would not ask again for what policy decides again each time.
    Settled.ALLOW: ("allow_once",),
    Settled.DENY: ("reject_once", "reject_always"),
}
_CANCELLED: Final = {"outcome": {"outcome": "cancelled"}}


def fold(state: AcpState, profile: Profile, id: object, params: Object) -> Folded:
    """Answer a permission request; the protocol has no words for why, so what a person has to say stops the turn."""
    told = object_in(params.get("toolCall"))
    known = state.call(readable(told.get("toolCallId"), 300))
    asked_for = calls.learnt(known, _named(told, params, profile))
    # What is asked may be about a part of the call only, so it does not change what is known of the whole.
    state, events = updates.started(state, known or asked_for)
    if state.aim is None:
        return Folded(state=state, events=events)
    permissions = state.aim.permissions
    wishes = calls.wishes(state, asked_for, profile)
    settled = [(settle(permissions, wish), wish) for wish in wishes]
    refused = [wish for verdict, wish in settled if verdict is Settled.DENY]
    unsettled = [wish for verdict, wish in settled if verdict is Settled.ASK]
    if unsettled and not refused:
        return _ask(state, events, id, unsettled)
    verdict = Settled.DENY if refused else Settled.ALLOW
    answer = None if state.is_stopping else _answer(verdict, params)
    if answer is not None and verdict is Settled.ALLOW:
        return Folded(state=state, events=events, writes=(rpc.answer(id, answer),))
    why = "not allowed" if refused else "told to stop" if state.is_stopping else "cannot be allowed just once"
    what = (refused or wishes)[0].what
    data = {"class": "permission_denied", "tool": calls.shown_name(asked_for)}
    event = AgentEvent(kind="Error", text=f"{why}: {readable(what, 500)}", data=data)
    writes = (rpc.answer(id, answer or _CANCELLED),)
    # Some end their turn at a refusal, as if they were done. Whatever they do or say next shows that they continued.
    state = replace(state.with_denied(what), complaint=("refused", readable(what, 500)))
    return Folded(state=state, events=(*events, event), writes=writes)


def _ask(state: AcpState, events: tuple[AgentEvent, ...], id: object, wishes: list[Wish]) -> Folded:
    askings = tuple(asking_leave(wish) for wish in wishes)
    told = tuple(
        AgentEvent(
            kind="Ask",
            text=readable(one.text),
            data={
                "kind": one.kind,
                "options": list(one.options),
                "wish": asdict(one.wish) if one.wish else None,
            },
        )
        for one in askings
    )
    answer = rpc.answer(id, _CANCELLED)
    stop = rpc.notification("session/cancel", {"sessionId": state.session})
    # As the protocol wants it: after a cancel, requests that are still open are answered so.
    writes = (answer,) if state.is_stopping else (stop, answer)
    new = replace(state, asked=tuple(dict.fromkeys((*state.asked, *askings))))
    return Folded(state=new, events=(*events, *told), writes=writes)


def _answer(settled: Settled, params: Object) -> dict[str, Any] | None:
    offered = params.get("options")
    options = [object_in(one) for one in offered[:50]] if isinstance(offered, list) else []
    for kind in _KINDS[settled]:
        for option in options:
            if option.get("kind") == kind and isinstance(option.get("optionId"), str):
                return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
    return None


def _named(told: Object, params: Object, profile: Profile) -> Object:
    """Add the tool's name where only the options tell it."""
    offered = params.get("options")
    if profile.tool_in_options is None or told.get("kind") != "other" or not isinstance(offered, list):
        return told
    for option in offered[:50]:
        found = profile.tool_in_options.fullmatch(readable(object_in(option).get("name"), 300))
        if found:
            return {"name": found["tool"], **told}
    return told
