"""Laws of the codec for the Agent Client Protocol, whatever an agent says."""

import json
import re
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.agents.acp.recordings import NAMES, TOOLS, agent_of, ended, lines, request
from tests.unit.agents.acp.talk import OPTIONS, start

from loopwright.adapters.agents.acp import rpc
from loopwright.adapters.agents.acp.agent import AcpAgent
from loopwright.adapters.agents.acp.profiles import PROFILES
from loopwright.core.values.permissions import Access, Permissions, Settled, settle
from loopwright.ports import AgentRequest, OutputLine

profiles = st.sampled_from(sorted(PROFILES)).map(lambda name: AcpAgent(profile=PROFILES[name]))
streams = st.sampled_from(["out", "out", "out", "err"])
odd = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
paths = st.sampled_from(["/workspace/a", "/workspace/../b", "c", "../d", "/etc/hosts", "", "\ud800"])
commands = st.sampled_from(["make dist", "cat a", "", ["make"], ["sh", "-c", "make"], 7])
calls = st.fixed_dictionaries(
    {"toolCallId": st.sampled_from(["c1", "c2", ""]) | odd},
    optional={
        "kind": st.sampled_from(["read", "edit", "execute", "delete", "fetch", "other", "new"]) | odd,
        "status": st.sampled_from(["pending", "in_progress", "completed", "failed"]) | odd,
        "title": st.sampled_from(["make dist", "toy_add", "loopwright-ask"]) | odd,
        "locations": st.lists(st.fixed_dictionaries({"path": paths | odd}), max_size=3) | odd,
        "content": st.lists(st.fixed_dictionaries({"type": st.just("diff"), "path": paths}), max_size=2)
        | odd,
        "rawInput": st.fixed_dictionaries({}, optional={"command": commands, "path": paths, "cwd": paths})
        | odd,
        "_meta": st.fixed_dictionaries({"toolName": st.sampled_from(["shell", "mcp__toy__add"])}) | odd,
    },
)
updates = st.one_of(
    st.fixed_dictionaries(
        {
            "sessionUpdate": st.sampled_from(
                ["agent_message_chunk", "agent_thought_chunk", "user_message_chunk"]
            ),
            "content": st.fixed_dictionaries({"type": st.just("text"), "text": st.text(max_size=30) | odd})
            | odd,
        },
        optional={"messageId": st.sampled_from(["1", "2"]) | odd, "_meta": odd},
    ),
    calls.flatmap(
        lambda call: st.sampled_from(["tool_call", "tool_call_update"]).map(
            lambda what: {"sessionUpdate": what, **call}
        )
    ),
    st.fixed_dictionaries(
        {"sessionUpdate": st.just("usage_update"), "used": odd, "size": odd, "cost": odd},
    ),
    st.fixed_dictionaries({"sessionUpdate": st.just("plan"), "entries": odd}),
    st.fixed_dictionaries({"sessionUpdate": odd}),
)
ids = st.integers(-1, 8) | st.sampled_from(["a", "6"]) | odd
messages = st.one_of(
    updates.map(lambda one: {"method": "session/update", "params": {"sessionId": "s", "update": one}}),
    st.tuples(ids, calls, st.sampled_from([OPTIONS, OPTIONS[:1], []]) | odd).map(
        lambda one: {
            "id": one[0],
            "method": "session/request_permission",
            "params": {"sessionId": "s", "toolCall": one[1], "options": one[2]},
        }
    ),
    st.tuples(ids, odd, odd).map(lambda one: {"id": one[0], "method": one[1], "params": one[2]}),
    st.tuples(ids, odd).map(lambda one: {"id": one[0], "result": one[1]}),
    st.tuples(ids, odd).map(lambda one: {"id": one[0], "error": one[1]}),
    st.just({"id": rpc.PROMPT, "result": {"stopReason": "end_turn"}}),
    st.dictionaries(st.text(max_size=8), odd, max_size=3),
)
texts = st.one_of(
    messages.map(lambda one: json.dumps({"jsonrpc": "2.0", **one})),
    messages.flatmap(
        lambda one: st.integers(0, 200).map(lambda cut: json.dumps({"jsonrpc": "2.0", **one})[:cut])
    ),
    st.text(max_size=60),
)
outputs = st.lists(st.tuples(streams, texts), max_size=12).map(
    lambda said: [OutputLine(offset=n, stream=stream, text=text) for n, (stream, text) in enumerate(said)]
)
allowed = st.sampled_from(
    [
        Permissions(),
        Permissions(access=Access.READ_ONLY),
        Permissions(access=Access.SANDBOXED_ALL),
        Permissions(commands=("make *",), refused=("edit:/etc/hosts",)),
    ]
)
exits = st.builds(
    ended,
    st.sampled_from([0, 1, -9, 143, None]),
    st.sampled_from(["itself", "deadline", "idle", "done_hang", "asked", "not_started", "lost"]),
)


def asked_of(agent: AcpAgent, may: Permissions) -> AgentRequest:
    options = {"command": ["agent"]} if agent.name == "acp" else {}
    return request(permissions=may, tools=TOOLS, options=options)


def _texts(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [text for pair in value.items() for one in pair for text in _texts(one)]
        case list() | tuple():
            return [text for one in value for text in _texts(one)]
        case _:
            return []


def folded(agent: AcpAgent, output: list[OutputLine], asked: AgentRequest | None) -> list[Any]:
    state, steps = agent.initial(asked), []
    for line in output:
        step = agent.fold(state, line)
        state = step.state
        steps.append(step)
    return steps


@settings(max_examples=60, deadline=None)
@given(profiles, outputs, allowed, exits, st.booleans())
def test_nothing_that_is_said_makes_it_raise_and_folding_again_comes_to_the_same(
    agent: AcpAgent, output: list[OutputLine], may: Permissions, exit: Any, is_begun: bool
) -> None:
    output = [*(start(agent) if is_begun else []), *output]
    asked = asked_of(agent, may)
    steps = folded(agent, output, asked)
    assert folded(agent, output, asked) == steps
    state = steps[-1].state if steps else agent.initial(asked)
    agent.interrupt(state)
    result = agent.result(state, exit)
    assert result.claimed is (result.failure is None and not result.asked)
    closed = [place for place, step in enumerate(steps) if step.close]
    assert len(closed) <= 1
    assert not any(step.writes for step in steps[(closed or [len(steps)])[0] :]), "nobody listens any more"
    for step in steps:
        for text in step.writes:
            assert text.endswith("\n")
            assert "\n" not in text[:-1]
            assert isinstance(json.loads(text.encode()), dict)
        for event in step.events:
            assert not any("\0" in text for text in _texts([event.text, dict(event.data)]))
            event.text.encode()


@settings(max_examples=60, deadline=None)
@given(profiles, outputs, allowed)
def test_every_request_is_answered_exactly_once_until_the_end(
    agent: AcpAgent, output: list[OutputLine], may: Permissions
) -> None:
    steps = folded(agent, [*start(agent), *output], asked_of(agent, may))
    for line, step in zip([*start(agent), *output], steps, strict=True):
        ours = [json.loads(text) for text in step.writes]
        answers = [one for one in ours if "method" not in one]
        try:
            message = json.loads(line.text) if line.stream == "out" else None
        except ValueError:
            continue
        is_request = isinstance(message, dict) and isinstance(message.get("method"), str) and "id" in message
        ended_before = step.state.ending is not None
        if is_request and not ended_before:
            assert len(answers) == 1
        elif not is_request:
            assert answers == []


def harmless(call: dict[str, Any], may: Permissions) -> bool:
    """Say, from the call alone, whether it may be done without a person: once more, in other words than the codec's."""
    kind, given = call.get("kind"), call.get("rawInput")
    facts = given if isinstance(given, dict) else {}
    listed = [call.get("locations"), call.get("content")]
    found = [
        one.get("path") for many in listed if isinstance(many, list) for one in many if isinstance(one, dict)
    ]
    named = [path for path in (*found, facts.get("path")) if isinstance(path, str) and path]
    line = facts.get("command")
    match kind:
        case "read" | "search" | "think":
            return True
        case "edit" | "delete":
            within = [
                PurePosixPath(normpath(PurePosixPath("/workspace", path.replace("\0", "")))) for path in named
            ]
            return (
                may.access is Access.EDIT
                and bool(named)
                and all(one.is_relative_to("/workspace") for one in within)
            )
        case "execute" if line == "cat a":
            return True
        case "execute":
            return "make *" in may.commands and line in ("make dist", ["make"], ["sh", "-c", "make"])
        case _:
            return call.get("title") == "loopwright-ask"


@settings(max_examples=120, deadline=None)
@given(calls, allowed.filter(lambda may: may.access is not Access.SANDBOXED_ALL))
def test_nothing_is_allowed_that_policy_does_not_allow(call: dict[str, Any], may: Permissions) -> None:
    agent = AcpAgent()
    params = {"sessionId": "s", "toolCall": call, "options": OPTIONS}
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": params})
    last = folded(
        agent, [*start(agent), OutputLine(offset=9, stream="out", text=asked)], asked_of(agent, may)
    )[-1]
    if any('"optionId":"yes"' in text for text in last.writes):
        assert harmless(json.loads(json.dumps(call)), may)
    for asking in last.state.asked:
        assert asking.wish is not None
        assert settle(may, asking.wish) is Settled.ASK


@settings(deadline=None)
@given(st.sampled_from(NAMES), st.data())
def test_a_recording_that_is_bent_somewhere_never_makes_it_raise(name: str, data: st.DataObject) -> None:
    agent, output = agent_of(name), lines(name)
    place = data.draw(st.integers(0, len(output) - 1))
    text = output[place].text
    cut = data.draw(st.integers(0, len(text)))
    bent = data.draw(
        st.sampled_from([text[:cut], text[cut:], text * 2, text.replace('"', "", 1), text[:cut] + "\0"])
    )
    output[place] = OutputLine(offset=place, stream=output[place].stream, text=bent)
    steps = folded(agent, output, request())
    assert steps == folded(agent, output, request())
    agent.result(steps[-1].state, ended())


@pytest.mark.trap("quoted success")
@given(st.text(max_size=200))
def test_no_words_of_an_agent_look_like_the_end(text: str) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    for words in (update, {**update, "rawOutput": {"id": rpc.PROMPT, "result": {"stopReason": "end_turn"}}}):
        note = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": words}}
        for line in (json.dumps(note), json.dumps(note, separators=(",", ":"))):
            assert re.search(rpc.DONE.encode(), line.encode(), re.MULTILINE) is None
