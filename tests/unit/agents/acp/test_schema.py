"""The protocol's own models judge what we write."""

import json
from typing import Any

from tests.unit.agents.acp.recordings import TOOLS, fold, request
from tests.unit.agents.acp.talk import answer, begin, begun, told, wants

from loopwright.adapters.agents.acp import rpc, starting
from loopwright.adapters.agents.acp.agent import AcpAgent
from loopwright.adapters.agents.acp.profiles import ACP, OPENCODE
from loopwright.ports import OutputLine


def ours() -> dict[str, Any]:
    """Return the model of each request of ours."""
    from acp import schema  # a second of loading: not for every process that only collects

    return {
        "initialize": schema.InitializeRequest,
        "authenticate": schema.AuthenticateRequest,
        "session/new": schema.NewSessionRequest,
        "session/load": schema.LoadSessionRequest,
        "session/resume": schema.ResumeSessionRequest,
        "session/fork": schema.ForkSessionRequest,
        "session/set_mode": schema.SetSessionModeRequest,
        "session/set_config_option": schema.SetSessionConfigOptionSelectRequest,
        "session/prompt": schema.PromptRequest,
        "session/cancel": schema.CancelNotification,
    }


def same(model: Any, value: Any) -> None:
    """A model takes the value, and has a place for everything in it."""
    read = model.model_validate(value)
    assert read.model_dump(by_alias=True, exclude_unset=True, mode="json") == value


def conversations() -> dict[str, tuple[str, ...]]:
    """Return what is written in every kind of conversation that there is."""
    model = {
        "sessionId": "s",
        "configOptions": [
            {"id": "model", "name": "Model", "type": "select", "category": "model", "currentValue": "a", "options": [
                {"value": "a", "name": "A"}, {"value": "b", "name": "B"},
            ]}
        ],
    }  # fmt: skip
    modes = {
        "currentModeId": "plan",
        "availableModes": [{"id": one, "name": one} for one in ("plan", "default", "ask", "yolo", "auto")],
    }
    generic, opencode = AcpAgent(profile=ACP), AcpAgent(profile=OPENCODE)
    options = {"command": ["agent"], "auth": "key", "mode": "ask"}
    return {
        "all": fold(
            generic,
            [
                *(
                    begin(),
                    answer(rpc.AUTHENTICATE),
                    answer(rpc.SESSION, **model, modes=modes),
                    answer(rpc.MODE),
                ),
                answer(rpc.MODEL, configOptions=[]),
                told("agent_message_chunk", content={"type": "text", "text": "hi"}),
                wants(7, {"kind": "edit", "locations": [{"path": "/workspace/a"}]}),
                wants("x", {"kind": "execute", "rawInput": {"command": "make"}}),
            ],
            request(tools=TOOLS, model="b", options=options),
        ).writes,
        "load": fold(generic, [begin()], request(session_ref="s", options=options)).writes,
        "load without a key": fold(
            generic, [begin()], request(session_ref="s", options={"command": ["agent"]})
        ).writes,
        "resume": fold(opencode, [begin()], request(session_ref="s", tools=TOOLS)).writes,
        "fork": fold(opencode, [begin()], request(session_ref="s", fork=True)).writes,
        "hello": (starting.hello(),),
        "interrupt": generic.interrupt(begun(generic)),
    }


def test_all_that_we_say_is_what_the_protocol_has_words_for() -> None:
    from acp import schema

    models, said = ours(), set[str]()
    for writes in conversations().values():
        for text in writes:
            message = json.loads(text)
            assert message["jsonrpc"] == "2.0"
            if "method" in message:
                said.add(message["method"])
                same(models[message["method"]], message["params"])
            else:
                same(schema.RequestPermissionResponse, message["result"])
    assert said == models.keys()


def test_a_line_that_the_library_would_write_is_read() -> None:
    """Their own models with all the fields that they write."""
    from acp import schema, update_agent_message_text

    note = schema.SessionNotification(session_id="s", update=update_agent_message_text("hello"))
    text = json.dumps(
        {"jsonrpc": "2.0", "method": "session/update", "params": note.model_dump(by_alias=True, mode="json")}
    )
    agent = AcpAgent()
    state = agent.fold(begun(agent), OutputLine(offset=0, stream="out", text=text)).state
    assert state.said == "hello"
