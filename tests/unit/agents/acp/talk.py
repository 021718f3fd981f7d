"""The agent's side of a conversation, message by message."""

import json
from typing import Any

from tests.unit.agents.acp.recordings import request

from loopwright.adapters.agents.acp import rpc
from loopwright.adapters.agents.acp.agent import AcpAgent
from loopwright.adapters.agents.acp.state import AcpState
from loopwright.core.values.permissions import Permissions
from loopwright.ports import OutputLine

OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


def line(text: str, stream: Any = "out") -> OutputLine:
    return OutputLine(offset=0, stream=stream, text=text)


def message(**facts: Any) -> OutputLine:
    return line(json.dumps({"jsonrpc": "2.0", **facts}))


def answer(id: int, **result: Any) -> OutputLine:
    return message(id=id, result=result)


def error(id: int, code: int, words: str, data: Any = None) -> OutputLine:
    return message(id=id, error={"code": code, "message": words, **({} if data is None else {"data": data})})


def begin(**capabilities: Any) -> OutputLine:
    can = {"loadSession": True, **capabilities}
    about = {"name": "agent", "version": "1.2.3"}
    return answer(rpc.INITIALIZE, protocolVersion=1, agentCapabilities=can, agentInfo=about)


def told(what: Any, **facts: Any) -> OutputLine:
    return message(
        method="session/update", params={"sessionId": "s", "update": {"sessionUpdate": what, **facts}}
    )


def says(text: str, **facts: Any) -> OutputLine:
    return told("agent_message_chunk", content={"type": "text", "text": text}, **facts)


def wants(id: object, call: dict[str, Any], options: Any = OPTIONS) -> OutputLine:
    params = {"sessionId": "s", "toolCall": {"toolCallId": "c", **call}, "options": options}
    return message(id=id, method="session/request_permission", params=params)


def end(reason: str = "end_turn", **facts: Any) -> OutputLine:
    return answer(rpc.PROMPT, stopReason=reason, **facts)


def modes_of(agent: AcpAgent) -> dict[str, Any]:
    """Return what is told at the beginning of a conversation, with the modes that the agent needs."""
    names = [one for one in (agent.profile.asking_mode, agent.profile.free_mode) if one]
    offered = [{"id": name, "name": name} for name in names]
    return {"modes": {"currentModeId": names[0], "availableModes": offered}} if names else {}


def start(agent: AcpAgent) -> list[OutputLine]:
    return [begin(), answer(rpc.SESSION, sessionId="s", **modes_of(agent))]


def begun(agent: AcpAgent, *more: OutputLine, may: Permissions | None = None, **given: Any) -> AcpState:
    """Return the state in the middle of a turn."""
    state = agent.initial(request(permissions=may or Permissions(), **given))
    for one in (*start(agent), *more):
        state = agent.fold(state, one).state
    assert state.is_working
    return state
