"""The model server, asked over HTTP."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from loopwright.testing import scenarios
from loopwright.testing.model_server import ModelServer, Reply, Scenario


def ask(server: ModelServer, messages: list[dict[str, Any]], *, stream: bool = False) -> Any:
    body = json.dumps({"model": "m", "messages": messages, "stream": stream}).encode()
    request = Request(f"{server.url}/v1/messages?beta=true", body, {"content-type": "application/json"})
    with urlopen(request, timeout=10) as response:
        return response.read().decode()


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


RESULTS = {"role": "user", "content": [{"type": "tool_result"}, {"type": "tool_result"}]}


def test_the_turn_follows_from_the_tool_results_after_the_last_words() -> None:
    turns = tuple(Reply(text=text) for text in ("first", "second", "last"))
    with ModelServer(Scenario(turns=turns)) as server:

        def text(*messages: dict[str, Any]) -> str:
            return json.loads(ask(server, list(messages)))["content"][0]["text"]

        assert text(user("go")) == "first"
        assert text(user("go"), RESULTS) == "second"
        assert text(user("go"), RESULTS, RESULTS, RESULTS) == "last"
        assert text(user("go"), RESULTS, user("and again")) == "first"


def test_a_prompt_can_have_turns_of_its_own() -> None:
    scenario = Scenario(turns=(Reply(text="other"),), by_prompt={"Task: a": (Reply(text="a"),)})
    with ModelServer(scenario) as server, ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda text: ask(server, [user(text)]), ["Task: a", "Task: b"] * 4))
        assert [json.loads(answer)["content"][0]["text"] for answer in answers] == ["a", "other"] * 4
        assert len(server.asked) == 8


def test_a_stream_carries_the_tool_call() -> None:
    with ModelServer(scenarios.write_file("a.txt", text="x")) as server:
        stream = ask(server, [user("go")], stream=True)
    events = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: ")]
    assert [event["type"] for event in events] == [
        "message_start", "content_block_start", "content_block_delta", "content_block_stop",
        "message_delta", "message_stop",
    ]  # fmt: skip
    assert json.loads(events[2]["delta"]["partial_json"]) == {"file_path": "a.txt", "content": "x"}
    assert events[4]["delta"]["stop_reason"] == "tool_use"


def test_a_rejection_has_its_status_and_headers() -> None:
    with ModelServer(scenarios.window_used_up(resets_at=123)) as server:
        with pytest.raises(HTTPError) as caught:
            ask(server, [user("go")])
        with caught.value as error:
            assert error.code == 429
            assert error.headers["anthropic-ratelimit-unified-reset"] == "123"
            assert json.loads(error.read())["error"]["type"] == "rate_limit_error"
