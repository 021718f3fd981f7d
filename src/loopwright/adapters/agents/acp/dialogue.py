"""The conversation: initialize, a session, its mode and model, the prompt, and then stdin is closed.

Each answer leads to our next request; the agent's own requests are answered as policy says.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from loopwright.adapters.agents.acp import calls, failures, meters, rpc, tries, updates
from loopwright.adapters.agents.acp.profiles import Profile
from loopwright.adapters.agents.acp.state import AcpState, Aim, Ending, Problem
from loopwright.adapters.agents.output import Object, json_object, object_in, readable, remembered
from loopwright.core.replies.questions import asking_leave
from loopwright.core.values.permissions import Settled, Wish, settle
from loopwright.ports import AgentEvent, Folded, OutputLine

# Requests for leave, answered as policy says, in the protocol's words.

_KINDS: Final = {
    # Never "always": it would not ask again for what policy decides again each time.
    Settled.ALLOW: ("allow_once",),
    Settled.DENY: ("reject_once", "reject_always"),
}
_CANCELLED: Final = {"outcome": {"outcome": "cancelled"}}


def _fold_leave(state: AcpState, profile: Profile, id: object, params: Object) -> Folded:
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
        return _ask_leave(state, events, id, unsettled)
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


def _ask_leave(state: AcpState, events: tuple[AgentEvent, ...], id: object, wishes: list[Wish]) -> Folded:
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


def fold(state: AcpState, profile: Profile, line: OutputLine) -> Folded:
    """Take in one line of output."""
    message = json_object(line.text) if line.stream == "out" else None
    if message is None:
        return _unread(state, profile, line)
    method, params = message.get("method"), object_in(message.get("params"))
    if isinstance(method, str) and "id" in message:
        return _requested(state, profile, method, message["id"], params)
    if method == "session/update" and _is_ours(state, params):
        return updates.fold(state, profile, object_in(params.get("update")))
    if isinstance(method, str):
        return Folded(state=state, events=(_raw({"method": readable(method, 100)}),))
    step = _step(state, message.get("id"))
    if step is None or not ("error" in message or "result" in message):
        return Folded(state=state, events=(_raw({"message": "unknown"}, json.dumps(message)),))
    if "error" in message:
        return _failed(state, profile, step, message["error"])
    return _answered(state, profile, step, object_in(message["result"]))


def _is_ours(state: AcpState, params: Object) -> bool:
    """Whether something is told of our own conversation, and not of one that the agent started for itself."""
    return not state.is_working or state.session is None or params.get("sessionId") == state.session


def _step(state: AcpState, id: object) -> int | None:
    """Return which of our requests is answered; None if none waits for this answer."""
    if isinstance(id, bool) or not isinstance(id, int) or id > rpc.PROMPT or state.ending is not None:
        return None
    # A reader of the recording does not know which of the requests were made.
    return id if id == state.waiting or (state.aim is None and id > state.waiting) else None


def interrupt(state: AcpState) -> tuple[str, ...]:
    """Return what makes the turn stop in order; nothing when there is none."""
    if not state.is_working or state.session is None:
        return ()
    return (rpc.notification("session/cancel", {"sessionId": state.session}),)


def _unread(state: AcpState, profile: Profile, line: OutputLine) -> Folded:
    if line.stream == "err" and _is_own_log(state, profile, line.text):
        return Folded(state=replace(state, in_own_log=True), events=(_raw({"type": "log"}, line.text),))
    raw = _raw({"stream": line.stream}, line.text)
    state = replace(state, tail=remembered(state.tail, line.text), in_own_log=False)
    if line.stream == "err":
        return _complained(state, profile, raw)
    waits = rpc.id_of_cut_request(line.text)
    if waits is None or state.aim is None or state.ending is not None:
        return Folded(state=state, events=(raw,))
    too_long = rpc.refusal(waits, rpc.INVALID_REQUEST, "Loopwright cannot read this request: it is too long")
    return Folded(state=state, events=(raw,), writes=(too_long,))


def _is_own_log(state: AcpState, profile: Profile, text: str) -> bool:
    if profile.own_log is None:
        return False
    return bool(profile.own_log.match(text)) or (state.in_own_log and text[:1] in ("", " ", "\t", "}"))


def _complained(state: AcpState, profile: Profile, raw: AgentEvent) -> Folded:
    """Take in a line on stderr: it may tell that the service refuses, and that it keeps trying."""
    # An empty line is not kept, and what came before it was looked at already.
    if not state.is_working or state.is_stopping or not raw.text.strip():
        return Folded(state=state, events=(raw,))
    state, event = tries.seen(state, profile)
    if event is None:
        return Folded(state=state, events=(raw,))
    return Folded(state=state, events=(raw, event), writes=interrupt(state) if state.stalled else ())


def _requested(state: AcpState, profile: Profile, method: str, id: object, params: Object) -> Folded:
    """Answer a request of the agent. Refuse what Loopwright did not announce that it can do."""
    raw = _raw({"request": readable(method, 100)})
    if method == "session/request_permission" and state.is_working:
        return _fold_leave(state, profile, id, params)
    if state.aim is None or state.ending is not None:
        return Folded(state=state, events=(raw,))
    no = rpc.refusal(id, rpc.METHOD_NOT_FOUND, f"Method not found: {readable(method, 100)}")
    return Folded(state=state, events=(raw,), writes=(no,))


def _answered(state: AcpState, profile: Profile, step: int, result: Object) -> Folded:
    match step:
        case rpc.INITIALIZE if result.get("protocolVersion") != rpc.PROTOCOL_VERSION:
            told = (
                f"it speaks version {readable(str(result.get('protocolVersion')), 50)} of the protocol, not "
            )
            problem = Problem(message=f"{told}{rpc.PROTOCOL_VERSION}")
            return _ended(state, Ending(step=step, problem=problem))
        case rpc.INITIALIZE:
            about, can = object_in(result.get("agentInfo")), object_in(result.get("agentCapabilities"))
            methods = result.get("authMethods")
            state = replace(
                state,
                version=readable(about.get("version"), 100) or None,
                can_load=can.get("loadSession") is True,
                auth_methods=tuple(
                    readable(object_in(one).get("id"), 100)
                    for one in (methods[:20] if isinstance(methods, list) else ())
                ),
            )
            return _authenticate(state, profile)
        case rpc.AUTHENTICATE:
            return _begin(state, profile)
        case rpc.SESSION:
            return _begun(state, profile, result)
        case rpc.MODE:
            return _choose_model(state)
        case rpc.MODEL:
            return _prompt(state)
        case _:
            return _ended(meters.with_result(state, profile, result), _stopped(result))


def _stopped(result: Object) -> Ending:
    return Ending(step=rpc.PROMPT, stop_reason=readable(result.get("stopReason"), 100))


def _failed(state: AcpState, profile: Profile, step: int, error: object) -> Folded:
    problem = failures.problem(error)
    if problem.code == rpc.AUTH_REQUIRED and step == rpc.SESSION and state.auth_methods:
        ways = ", ".join(state.auth_methods)
        hint = f"{problem.message} (the option `auth` of agents.{profile.name} may name one of {ways})"
        problem = replace(problem, message=hint)
    going_on = step == rpc.SESSION and _known_session(state, profile) is not None
    return _ended(state, Ending(step=step, going_on=going_on, problem=problem))


def _ended(state: AcpState, ending: Ending) -> Folded:
    state, events = updates.flushed(state)
    if state.usage is not None:
        events = (*events, AgentEvent(kind="Usage", data=meters.tokens(state.usage)))
    problem = ending.problem
    finished = AgentEvent(
        kind="Finished",
        text=problem.message if problem else readable(state.said),
        data={
            "ok": ending.stop_reason == "end_turn" and state.complaint is None,
            "reason": ending.stop_reason or "error",
        },
    )
    return Folded(
        state=replace(state, ending=ending), events=(*events, finished), close=state.aim is not None
    )


def _ask(state: AcpState, step: int, method: str, params: Mapping[str, Any]) -> Folded:
    return Folded(state=replace(state, waiting=step), writes=(rpc.request(step, method, params),))


def _authenticate(state: AcpState, profile: Profile) -> Folded:
    if state.aim is None or state.aim.auth is None:
        return _begin(state, profile)
    return _ask(state, rpc.AUTHENTICATE, "authenticate", {"methodId": state.aim.auth})


def _begin(state: AcpState, profile: Profile) -> Folded:
    aim = state.aim
    if aim is None:
        return Folded(state=replace(state, waiting=rpc.SESSION))
    servers = [
        {
            "name": name,
            "command": tool.command,
            "args": list(tool.args),
            "env": [{"name": key, "value": value} for key, value in tool.env.items()],
        }
        for name, tool in aim.tools
    ]
    params: dict[str, Any] = {"cwd": aim.cwd, "mcpServers": servers}
    known = _known_session(state, profile)
    if known is None:
        return _ask(state, rpc.SESSION, "session/new", params)
    method = "session/fork" if aim.fork else profile.goes_on_by
    return _ask(state, rpc.SESSION, method, {"sessionId": known, **params})


def _begun(state: AcpState, profile: Profile, result: Object) -> Folded:
    session = readable(result.get("sessionId"), 300) or _known_session(state, profile)
    if session is None and state.aim is not None:
        nameless = Problem(message="it began a conversation without a name")
        return _ended(state, Ending(step=rpc.SESSION, problem=nameless))
    option = _model_option(result)
    listed = readable(object_in(result.get("models")).get("currentModelId"), 200)
    state = replace(
        state,
        session=session,
        model=listed or readable(option.get("currentValue"), 200) or None,
        model_option=readable(option.get("id"), 200),
        models=tuple(readable(object_in(one).get("value"), 200) for one in _list(option.get("options"))),
    )
    data = {"session_ref": session, "model": state.model, "version": state.version}
    started = AgentEvent(kind="Started", text=state.model or "", data=data)
    if state.aim is None:
        return Folded(state=replace(state, waiting=rpc.PROMPT), events=(started,))
    step = _choose_mode(state, state.aim, object_in(result.get("modes")))
    return replace(step, events=(started, *step.events))


def _known_session(state: AcpState, profile: Profile) -> str | None:
    """Return the conversation to continue, where the agent can do that; otherwise there is a new one."""
    return state.aim.session_ref if state.aim and profile.goes_on_by and state.can_load else None


def _choose_mode(state: AcpState, aim: Aim, modes: Object) -> Folded:
    offered = [readable(object_in(one).get("id"), 200) for one in _list(modes.get("availableModes"))]
    wanted = next((mode for mode in aim.modes if mode in offered), None)
    if aim.modes and wanted is None:
        # It would work with other permissions than were promised.
        told = f"it has no mode {aim.modes[-1]!r}, only {', '.join(offered) or 'none'}"
        return _ended(state, Ending(step=rpc.MODE, problem=Problem(message=told)))
    if wanted is None or modes.get("currentModeId") == wanted:
        return _choose_model(state)
    return _ask(state, rpc.MODE, "session/set_mode", {"sessionId": state.session, "modeId": wanted})


def _choose_model(state: AcpState) -> Folded:
    """Choose the model where that is done in the conversation: one that an agent does not know it may replace."""
    wanted = state.aim.model if state.aim else None
    if wanted is None or state.model == wanted:
        return _prompt(state)
    if wanted not in state.models:
        told = f"it has no model {wanted!r}, only {', '.join(state.models[:20]) or 'its own'}"
        return _ended(state, Ending(step=rpc.MODEL, problem=Problem(message=told, kind="model_not_found")))
    params = {"sessionId": state.session, "configId": state.model_option, "value": wanted}
    return _ask(replace(state, model=wanted), rpc.MODEL, "session/set_config_option", params)


def _prompt(state: AcpState) -> Folded:
    words = [{"type": "text", "text": state.aim.prompt if state.aim else ""}]
    return _ask(state, rpc.PROMPT, "session/prompt", {"sessionId": state.session, "prompt": words})


def _model_option(result: Object) -> Object:
    options = (object_in(one) for one in _list(result.get("configOptions")))
    return next((one for one in options if one.get("category") == "model"), {})


def _list(value: Any) -> list[Any]:
    return value[:200] if isinstance(value, list) else []


def _raw(data: dict[str, Any], text: str = "") -> AgentEvent:
    return AgentEvent(kind="Raw", text=readable(text), data=data)
