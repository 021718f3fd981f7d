"""What every request passes before anything else happens."""

import json
import logging
import socket
from pathlib import Path

import httpx
import pytest
from tests.integration.server.api import Api, serving, until

from loopwright.core.values.access import Scope
from loopwright.core.values.errors import UserError
from loopwright.server.connections import Connection
from loopwright.server.context import Limits
from loopwright.server.daemon import Listening
from loopwright.server.guard import LARGEST_BODY, LARGEST_HEAD
from loopwright.services.homes.log import REQUESTS, log_daemon_to


def _raw(api: Api, head: str, body: bytes = b"", *, closes: bool = True) -> str:
    """Send bytes, and return what comes back until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", int(api.url.rpartition(":")[2])), timeout=30) as client:
        client.sendall(head.replace("\n", "\r\n").encode("latin-1") + body)
        said = b""
        while piece := client.recv(65536):
            said += piece
        return said.decode()


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ("", 421, "host_wrong"),
        ("Host: evil.example\n", 421, "host_wrong"),
        ("Host: 127.0.0.1.evil.example\n", 421, "host_wrong"),
        ("Host: 127.0.0.1@evil.example\n", 421, "host_wrong"),
        ("Host: 127.0.0.1:1234\n", 401, "token_missing"),
        ("Host: 127.0.0.1\nAuthorization: Bearer\n", 401, "token_missing"),
        ("Host: 127.0.0.1\nAuthorization: Bearer \xe4\n", 401, "token_unknown"),
        ("Host: 127.0.0.1\nAuthorization: Basic {token}\n", 401, "token_missing"),
    ],
)
def test_a_request_needs_a_host_of_the_daemon_and_a_token(
    shared_api: Api, headers: str, status: int, code: str
) -> None:
    head = "GET /api/loops HTTP/1.0\n" + headers.format(token=shared_api.token) + "\n"
    said = _raw(shared_api, head)
    assert said.startswith(f"HTTP/1.1 {status} ")
    assert json.loads(said.partition("\r\n\r\n")[2])["code"] == code


@pytest.mark.parametrize("query", ["token={}", "access_token={}", "authorization=Bearer%20{}", "api_key={}"])
def test_a_token_in_an_address_does_not_count(shared_api: Api, query: str) -> None:
    answer = httpx.get(f"{shared_api.url}/api/loops?{query.format(shared_api.token)}")
    assert answer.status_code == 401


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1", "http://localhost:1"])
def test_a_page_of_another_site_changes_nothing(shared_api: Api, origin: str) -> None:
    with shared_api.client() as client:
        refused = client.post("/api/tokens", json={"name": "x"}, headers={"Origin": origin})
        own = client.post("/api/tokens", json={"name": ""}, headers={"Origin": shared_api.url})
    assert (refused.status_code, refused.json()["code"]) == (403, "origin_wrong")
    assert own.status_code == 422


def test_guessing_tokens_gets_slow_and_a_right_token_still_passes(api: Api) -> None:
    with api.client("lw_wrong") as client:
        statuses = [client.get("/api/loops").status_code for _ in range(12)]
        last = client.get("/api/loops")
    assert statuses == [401] * 10 + [429] * 2
    assert (last.json()["code"], int(last.headers["Retry-After"]) > 0) == ("too_many_failed_logins", True)
    assert api.get("/api/loops")["loops"] == []


def test_large_and_endless_bodies_are_refused(shared_api: Api) -> None:
    def endless():
        for _ in range(100):
            yield b" " * (LARGEST_BODY // 10)

    with shared_api.client() as client:
        known = client.post("/api/tokens", content=b" " * (LARGEST_BODY + 1))
        chunked = client.post("/api/tokens", content=endless())
    assert (known.status_code, chunked.status_code) == (413, 413)
    said = _raw(
        shared_api,
        f"POST /api/tokens HTTP/1.0\nHost: 127.0.0.1\nAuthorization: Bearer {shared_api.token}\n"
        "Content-Length: 99999999999999999999\n\n",
    )
    assert said.startswith("HTTP/1.1 413 ")


def test_heads_and_addresses_that_are_too_large_are_refused(shared_api: Api) -> None:
    with shared_api.client() as client:
        head = client.get("/api/loops", headers={"X": "x" * LARGEST_HEAD})
        address = client.get("/api/loops", params={"after": "x" * LARGEST_HEAD})
    assert [(one.status_code, one.json()["code"]) for one in (head, address)] == [
        (431, "head_too_large"),
        (414, "address_too_long"),
    ]


def test_a_client_that_sends_its_head_or_body_too_slowly_is_dropped(tmp_path: Path) -> None:
    class Hasty(Connection):
        head_s = 0.1

    with serving(tmp_path / "home", connection=Hasty, limits=Limits(body_s=0.1)) as api:
        assert _raw(api, "GET /api/loops HTTP/1.1\nHost: 127") == ""
        head = f"POST /api/tokens HTTP/1.0\nHost: 127.0.0.1\nAuthorization: Bearer {api.token}\n"
        said = _raw(api, f"{head}Content-Length: 10\n\n", b"{")
        assert said.startswith("HTTP/1.1 408 ")
        assert "body_too_slow" in said


def test_every_request_is_one_line_of_json_without_secrets(tmp_path: Path) -> None:
    watched = [logging.getLogger(name) for name in ("loopwright", REQUESTS)]
    before = {logger: (list(logger.handlers), logger.level) for logger in watched}
    with serving(tmp_path / "home") as api:
        log_daemon_to(tmp_path)
        try:
            project, _, plan, _ = api.family()
            mine = api.make_token("mine", scope=Scope.OPERATE, projects=(project.id,))
            with api.client(mine) as client:
                given = client.get(f"/api/plans/{plan.id}", headers={"X-Request-ID": "abc-1"})
                made = client.get(f"/api/plans/{plan.id}?secret=hush", headers={"X-Request-ID": "a b\x7f"})
                client.get("/api/nothing/here")
                client.post("/api/tokens", json={"name": "hush"})
            httpx.get(f"{api.url}/healthz")
            file = tmp_path / "daemon.jsonl"
            until(lambda: file.read_text().count('"message": "request"') == 5)
        finally:
            for logger, (handlers, level) in before.items():
                for handler in set(logger.handlers) - set(handlers):
                    logger.removeHandler(handler)
                    handler.close()
                logger.setLevel(level)
    assert (given.headers["X-Request-ID"], len(made.headers["X-Request-ID"])) == ("abc-1", 32)
    assert given.headers["X-Content-Type-Options"] == "nosniff"
    text = file.read_text()
    assert mine not in text
    assert "hush" not in text
    assert plan.id not in text
    assert file.stat().st_mode & 0o077 == 0
    lines = [one for one in map(json.loads, text.splitlines()) if one["message"] == "request"]
    assert (
        lines[0].items()
        >= {
            "request_id": "abc-1",
            "method": "GET",
            "path": "/api/plans/{plan_id}",
            "status": 200,
            "token": "mine",
        }.items()
    )
    assert lines[0]["duration_ms"] > 0
    assert [(one["path"], one["status"], one["token"]) for one in lines[2:]] == [
        ("unknown", 404, "mine"),
        ("/api/tokens", 403, "mine"),
        ("/healthz", 200, None),
    ]


def test_metrics_count_requests_and_show_a_token_its_projects_only(api: Api) -> None:
    project, *_ = api.family()
    api.family()
    mine = api.make_token("mine", projects=(project.id,))
    with api.client() as owner, api.client(mine) as scoped:
        owner.get("/api/loops")
        everything, some = owner.get("/metrics").text, scoped.get("/metrics").text
    assert 'loopwright_plans{state="draft"} 2' in everything
    assert 'loopwright_http_requests_total{method="GET",path="/api/loops",status="200"} 1' in everything
    assert 'loopwright_http_request_seconds_bucket{le="+Inf"} 1' in everything
    assert 'loopwright_plans{state="draft"} 1' in some
    assert "loopwright_http" not in some
    assert "loopwright_events_total" not in some


def test_readiness_names_the_reason(api: Api) -> None:
    ready = httpx.get(f"{api.url}/readyz")
    assert (ready.status_code, ready.json()["code"]) == (503, "not_ready"), "no worker runs"
    api.store.is_away = True
    away = httpx.get(f"{api.url}/readyz")
    assert (away.status_code, "database" in away.json()["detail"]) == (503, True)
    assert httpx.get(f"{api.url}/healthz").status_code == 200


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.7", "example.org"])
def test_listening_beyond_this_machine_needs_tls_or_a_proxy(address: str) -> None:
    with pytest.raises(UserError, match="clear text"):
        Listening(address=address).check()
    with pytest.raises(UserError, match="clear text"):
        Listening(address=address, certificate=Path("c.pem")).check()
    Listening(address=address, certificate=Path("c.pem"), key=Path("k.pem")).check()
    Listening(address=address, proxy=True).check()
