"""What the service may do instead of answering: refuse in its own words, be slow, fail at first."""

import json
import threading
import time
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from tests.integration.model_server.clients import CLIENTS, ask, events, post
from tests.waiting import eventually

from loopwright.testing.model_server import Flaky, ModelServer, Rejection, Reply, Scenario, ToolCall, Trouble

# status, and what names the trouble in the error
REFUSALS: dict[tuple[str, str], tuple[int, str]] = {
    ("anthropic", "auth"): (401, "authentication_error"),
    ("anthropic", "forbidden"): (403, "permission_error"),
    ("anthropic", "model"): (404, "model: m-1"),
    ("anthropic", "rate_limit"): (429, "rate_limit_error"),
    ("anthropic", "usage_limit"): (429, "account's rate limit"),
    ("anthropic", "billing"): (400, "credit balance is too low"),
    ("anthropic", "overloaded"): (529, "overloaded_error"),
    ("anthropic", "context"): (400, "prompt is too long"),
    ("openai", "auth"): (401, "invalid_api_key"),
    ("openai", "forbidden"): (403, "insufficient_permissions"),
    ("openai", "model"): (404, "The model `m-1` does not exist"),
    ("openai", "rate_limit"): (429, "rate_limit_exceeded"),
    ("openai", "usage_limit"): (429, "usage_limit_reached"),
    ("openai", "billing"): (429, "insufficient_quota"),
    ("openai", "overloaded"): (503, "server_is_overloaded"),
    ("openai", "context"): (400, "context_length_exceeded"),
    ("gemini", "auth"): (400, "API_KEY_INVALID"),
    ("gemini", "forbidden"): (403, "PERMISSION_DENIED"),
    ("gemini", "model"): (404, "models/m-1 is not found"),
    ("gemini", "rate_limit"): (429, "PerMinute"),
    ("gemini", "usage_limit"): (429, "GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
    ("gemini", "billing"): (400, "FAILED_PRECONDITION"),
    ("gemini", "overloaded"): (503, "UNAVAILABLE"),
    ("gemini", "context"): (400, "exceeds the maximum number of tokens"),
}
SERVICES = {"anthropic": "anthropic", "responses": "openai", "chat": "openai", "gemini": "gemini"}
CASES = [
    pytest.param(protocol, kind, *expected, id=f"{protocol}-{kind}")
    for protocol, service in SERVICES.items()
    for (who, kind), expected in REFUSALS.items()
    if who == service
]


def refused(protocol: str, scenario: Scenario, *, stream: bool = False) -> tuple[int, Any, dict[str, str]]:
    with ModelServer(scenario) as server, pytest.raises(HTTPError) as caught:
        ask(CLIENTS[protocol], server.url, "go", stream=stream)
    with caught.value as error:
        headers = {name.lower(): value for name, value in error.headers.items()}
        return error.code, json.loads(error.read()), headers


@pytest.mark.parametrize(("protocol", "kind", "status", "sign"), CASES)
def test_a_trouble_is_refused_as_the_service_itself_does_it(
    protocol: str, kind: Any, status: int, sign: str
) -> None:
    code, body, _ = refused(protocol, Scenario(turns=(Trouble(kind=kind),)))
    assert code == status
    assert sign in json.dumps(body["error"])


@pytest.mark.parametrize("protocol", CLIENTS)
def test_the_shape_of_an_error_is_the_protocols_own(protocol: str) -> None:
    rejection = Rejection(
        status=418, kind="teapot", code="short", message="no coffee", more={"x": 1}, headers={"x-pot": "7"}
    )
    code, body, headers = refused(protocol, Scenario(turns=(rejection,)), stream=True)
    assert (code, headers["x-pot"]) == (418, "7")
    shapes = {
        "anthropic": {
            "type": "error",
            "error": {"type": "teapot", "message": "no coffee", "x": 1},
            "request_id": "req_scripted",
        },
        "openai": {
            "error": {"type": "teapot", "code": "short", "param": None, "message": "no coffee", "x": 1}
        },
        "gemini": {"error": {"code": 418, "status": "teapot", "message": "no coffee", "x": 1}},
    }
    assert body == shapes[SERVICES[protocol]]


def test_a_subscription_learns_when_its_limit_ends() -> None:
    limit = Scenario(turns=(Trouble(kind="usage_limit", resets_at=123),))
    _, _, headers = refused("anthropic", limit)
    assert headers["anthropic-ratelimit-unified-status"] == "rejected"
    assert headers["anthropic-ratelimit-unified-reset"] == "123"
    assert headers["anthropic-ratelimit-unified-5h-reset"] == "123"
    _, body, headers = refused("responses", limit)
    assert body["error"]["resets_at"] == 123
    assert headers["x-codex-primary-reset-at"] == "123"


def test_a_limit_ends_in_an_hour_unless_it_says_when() -> None:
    before = int(time.time())
    _, body, _ = refused("responses", Scenario(turns=(Trouble(kind="usage_limit"),)))
    assert before + 3600 <= body["error"]["resets_at"] <= time.time() + 3600
    assert body["error"]["resets_in_seconds"] == 3600


@pytest.mark.parametrize(
    ("protocol", "kinds", "place"),
    [
        ("anthropic", ["message_start", "error"], "error"),
        ("responses", ["response.created", "response.failed"], "response"),
        ("chat", ["", "", ""], "error"),
        ("gemini", [""], "error"),
    ],
)
def test_a_stream_may_fail_after_it_has_begun(protocol: str, kinds: list[str], place: str) -> None:
    late = Rejection(status=529, kind="overloaded_error", message="no more", in_stream=True)
    client = CLIENTS[protocol]
    with ModelServer(Scenario(turns=(late,))) as server:
        answer = post(client.url(server.url, stream=True), client.body(["go"], stream=True, tools=True))
    got = list(events(answer))
    assert [name for name, _ in got] == kinds
    (failed,) = [json.loads(data)[place] for _, data in got if "no more" in data]
    assert failed.get("error", failed)["message"] == "no more"
    assert refused(protocol, Scenario(turns=(late,)))[0] == 529, "without a stream there is only one way"


def test_codex_hears_in_the_stream_that_its_input_is_too_long() -> None:
    client = CLIENTS["responses"]
    with ModelServer(Scenario(turns=(Trouble(kind="context"),))) as server:
        answer = post(client.url(server.url, stream=True), client.body(["go"], stream=True, tools=True))
    *_, (name, data) = events(answer)
    assert name == "response.failed"
    assert json.loads(data)["response"]["error"]["code"] == "context_length_exceeded"


@pytest.mark.parametrize("protocol", CLIENTS)
def test_a_turn_fails_as_often_as_it_says_also_for_an_agent_that_resumes(protocol: str) -> None:
    flaky = Flaky(fails=Trouble(kind="overloaded"), times=2, then=Reply(text="at last"))
    apart = Flaky(fails=Trouble(kind="overloaded"), times=1, then=Reply(text="apart"))
    scenario = Scenario(turns=(flaky, Reply(text="second")), by_prompt={"other": (apart,)})
    with ModelServer(scenario) as server:

        def text(*conversation: str | int) -> str:
            try:
                return ask(CLIENTS[protocol], server.url, *conversation).text
            except HTTPError as error:
                with error:
                    return str(error.code)

        status = str(REFUSALS[SERVICES[protocol], "overloaded"][0])
        assert [text("go"), text("go", "go on"), text("go", "go on", "go on")] == [status, status, "at last"]
        assert text("go", 1) == "second"
        assert [text("other"), text("other"), text("go")] == [status, "apart", "at last"]


def test_a_slow_turn_keeps_silent_for_as_long_as_it_says() -> None:
    with ModelServer(Scenario(turns=(Reply(text="well", delay_s=0.2),))) as server:
        began = time.monotonic()
        ask(CLIENTS["chat"], server.url, "go")
        assert time.monotonic() - began >= 0.2


def test_a_paced_stream_takes_its_time_between_the_pieces() -> None:
    with ModelServer(Scenario(turns=(Reply(text="a b c d", pace_s=0.05),))) as server:
        began = time.monotonic()
        assert ask(CLIENTS["chat"], server.url, "go", stream=True).text == "a b c d"
        assert time.monotonic() - began >= 4 * 0.05


def test_a_server_that_is_left_leaves_no_slow_turn_behind() -> None:
    client, before = CLIENTS["chat"], set(threading.enumerate())
    with ModelServer(Scenario(turns=(Reply(text="well", delay_s=60),))) as server:
        body = json.dumps(client.body(["go"], stream=False, tools=True)).encode()
        with pytest.raises(TimeoutError):
            urlopen(client.url(server.url, stream=False), body, timeout=0.1)
    eventually(lambda: set(threading.enumerate()) <= before)


@pytest.mark.parametrize("protocol", ["anthropic", "gemini"])
def test_a_call_that_the_protocol_cannot_say_is_an_error_and_no_wrong_call(protocol: str) -> None:
    patch = Scenario(turns=(Reply(tools=(ToolCall(name="apply_patch", input="text"),)),))
    code, body, _ = refused(protocol, patch)
    assert code == 500
    assert "apply_patch" in body["error"]["message"]


def test_an_unknown_path_is_not_found() -> None:
    with ModelServer(Scenario(turns=(Reply(),))) as server, pytest.raises(HTTPError) as caught:
        post(f"{server.url}/v1/embeddings", {})
    with caught.value as error:
        assert error.code == 404
