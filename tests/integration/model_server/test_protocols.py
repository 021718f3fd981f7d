"""The model server, asked over HTTP in every protocol: the same scenario is the same story in each."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.request import Request, urlopen

import pytest
from tests.integration.model_server.clients import CLIENTS, RESULTS, Client, ask, post

from loopwright.core.rows.model import Usage
from loopwright.testing.model_server import ModelServer, Reply, Scenario, ToolCall

STOPS = {
    # end of the turn, waiting for a tool, cut off, refused
    "anthropic": ("end_turn", "tool_use", "max_tokens", "refusal"),
    "responses": ("completed", "completed", "max_output_tokens", "refusal"),
    "chat": ("stop", "tool_calls", "length", "content_filter"),
    "gemini": ("STOP", "STOP", "MAX_TOKENS", "PROHIBITED_CONTENT"),
}


@pytest.fixture(params=CLIENTS)
def protocol(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def client(protocol: str) -> Client:
    return CLIENTS[protocol]


@pytest.fixture(params=[False, True], ids=["plain", "stream"])
def stream(request: pytest.FixtureRequest) -> bool:
    answer: bool = request.param
    return answer


def test_the_turn_follows_from_the_rounds_of_tool_results_after_the_last_words(client: Client) -> None:
    turns = tuple(Reply(text=text) for text in ("first", "second", "last"))
    with ModelServer(Scenario(turns=turns)) as server:

        def text(*conversation: str | int) -> str:
            return ask(client, server.url, *conversation).text

        assert text("go") == "first"
        assert text("go", 1) == "second"
        assert text("go", RESULTS) == "second", "results of calls that were made at once are one round"
        assert text("go", RESULTS, 1, 1) == "last"
        assert text("go", RESULTS, "and again") == "first"


def test_a_prompt_can_have_turns_of_its_own_also_for_many_at_once(client: Client) -> None:
    scenario = Scenario(turns=(Reply(text="other"),), by_prompt={"Task: a": (Reply(text="a"),)})
    with ModelServer(scenario) as server, ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda text: ask(client, server.url, text).text, ["Task: a", "Task: b"] * 4))
        assert answers == ["a", "other"] * 4
        assert sorted(asked.prompt for asked in server.asked) == ["Task: a"] * 4 + ["Task: b"] * 4


def test_text_and_tool_calls_arrive_as_they_were_written(protocol: str, client: Client, stream: bool) -> None:
    text = "Zwei  Wörter,\nand “quotes” \\ {braces}.\n"
    calls = (
        ToolCall(name="shell", input={"command": "echo 'ä' \\ \"x\"", "n": [1, None]}),
        ToolCall(name="add", namespace="mcp__toy", input={}),
    )
    with ModelServer(Scenario(turns=(Reply(text=text, tools=calls),))) as server:
        said = ask(client, server.url, "go", stream=stream)
    assert said.text == text
    there = "mcp__toy/add" if protocol == "responses" else "mcp__toy__add"
    assert said.tools == [("shell", {"command": "echo 'ä' \\ \"x\"", "n": [1, None]}), (there, {})]
    assert said.stop == STOPS[protocol][1]


@pytest.mark.parametrize(("reason", "place"), [(None, 0), ("max_tokens", 2), ("refusal", 3)])
def test_why_it_stopped_is_said_in_the_words_of_the_protocol(
    protocol: str, client: Client, stream: bool, reason: Any, place: int
) -> None:
    with ModelServer(Scenario(turns=(Reply(text="I would", stop_reason=reason),))) as server:
        said = ask(client, server.url, "go", stream=stream)
    assert (said.text, said.stop) == ("I would", STOPS[protocol][place])


def test_usage_is_each_turns_own_and_means_the_same_everywhere(client: Client, stream: bool) -> None:
    usage = Usage(input_tokens=100, cache_read_tokens=20, cache_write_tokens=3, output_tokens=7)
    scenario = Scenario(turns=(Reply(text="one"), Reply(text="two", usage=usage)))
    with ModelServer(scenario) as server:
        assert ask(client, server.url, "go", stream=stream).usage == (180, 50, 25)
        assert ask(client, server.url, "go", 1, stream=stream).usage == (123, 20, 7)


def test_ids_of_calls_are_never_given_twice(client: Client) -> None:
    call = ToolCall(name="shell", input={})
    with ModelServer(Scenario(turns=(Reply(tools=(call, call)),))) as server:
        answers = [
            post(client.url(server.url, stream=False), client.body(["go"], stream=False, tools=True))
            for _ in range(2)
        ]
    ids = [found for answer in answers for found in re.findall(r'"((?:call|toolu)_[0-9a-f]{8,})"', answer)]
    assert len(ids) == len(set(ids)) == 4


def test_a_request_without_tools_may_get_an_answer_aside(client: Client) -> None:
    turns = (Reply(text="the work"),)
    with ModelServer(Scenario(turns=turns, aside=Reply(text="a title"))) as server:
        assert ask(client, server.url, "go", tools=False).text == "a title"
        assert ask(client, server.url, "go", tools=True).text == "the work"
    with ModelServer(Scenario(turns=turns)) as server:
        assert ask(client, server.url, "go", tools=False).text == "the work"


def test_what_was_asked_is_kept(client: Client) -> None:
    with ModelServer(Scenario(turns=(Reply(),))) as server:
        ask(client, server.url, "first", 1, "then this", RESULTS)
        (asked,) = server.asked
    assert (asked.model, asked.prompt, asked.answered) == ("m-1", "then this", 1)
    assert asked.headers["content-type"] == "application/json"
    assert asked.body == client.body(["first", 1, "then this", RESULTS], stream=False, tools=True)


@pytest.mark.parametrize("name", ["responses", "chat"])
def test_a_tool_may_take_a_text_as_it_is_with_openai(name: str, stream: bool) -> None:
    patch = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n"
    with ModelServer(Scenario(turns=(Reply(tools=(ToolCall(name="apply_patch", input=patch),)),))) as server:
        assert ask(CLIENTS[name], server.url, "go", stream=stream).tools == [("apply_patch", patch)]


def test_gemini_streams_a_list_to_who_does_not_ask_for_events() -> None:
    with ModelServer(Scenario(turns=(Reply(text="two words"),))) as server:
        url = f"{server.url}/v1beta/models/m-1:streamGenerateContent"
        answers = json.loads(post(url, CLIENTS["gemini"].body(["go"], stream=True, tools=True)))
    assert "".join(CLIENTS["gemini"].plain(answer).text for answer in answers) == "two words"


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/v1/messages/count_tokens", {"input_tokens": 100}),
        ("/v1beta/models/m-1:countTokens", {"totalTokens": 100}),
    ],
)
def test_tokens_are_counted_for_who_asks_and_that_is_no_turn(path: str, answer: dict[str, int]) -> None:
    with ModelServer(Scenario(turns=(Reply(),))) as server:
        assert json.loads(post(server.url + path, {})) == answer
        assert server.asked == ()


def test_a_program_that_looks_around_first_finds_somebody_and_a_model() -> None:
    with ModelServer(Scenario(turns=(Reply(),))) as server:
        with urlopen(Request(server.url, method="HEAD"), timeout=10) as response:
            assert response.status == 200
        with urlopen(f"{server.url}/v1/models", timeout=10) as response:
            assert [model["id"] for model in json.loads(response.read())["data"]] == ["scripted"]
        assert server.asked == ()
