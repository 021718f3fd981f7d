"""Webhooks over HTTP: made once with a secret, sent by the daemon, seen without it."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from standardwebhooks.webhooks import Webhook as Verifier
from tests.contracts.store import rows
from tests.integration.server.api import Api, serving, until

from loopwright.core.rows.events import Event
from loopwright.core.rows.webhook_rows import DeadLetter, Webhook
from loopwright.core.values.access import Scope
from loopwright.ports import Tx


class Sink(HTTPServer):
    """Keeps what it gets."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                sink.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        super().__init__(("127.0.0.1", 0), Handler)


@pytest.fixture
def sink() -> Iterator[Sink]:
    """A receiver in this process."""
    made = Sink()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Api]:
    """A served home that may send to loopback."""
    with serving(tmp_path / "home", env={"LOOPWRIGHT_WEBHOOK_NETWORKS": "127.0.0.0/8"}) as made:
        yield made


def test_an_event_arrives_signed_and_its_secret_is_shown_once(served: Api, sink: Sink) -> None:
    project, *_ = served.family()
    url = f"http://127.0.0.1:{sink.server_address[1]}/hook"
    with served.client() as client:
        made = client.post("/api/webhooks", json={"url": url, "types": ["plan_verified"]})
    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    secret, hook = made.json()["secret"], made.json()["id"]
    served.append(3, project=project.id)
    served.append(1, project=project.id, type="plan_verified")
    until(lambda: sink.got)
    [(headers, body)] = sink.got
    assert Verifier(secret).verify(body, headers)["data"]["projectId"] == project.id
    listed = served.get("/api/webhooks")
    until(lambda: served.get(f"/api/webhooks/{hook}")["behind"] == 0)
    for shown in (listed, served.get(f"/api/webhooks/{hook}"), served.get("/api/alerts")):
        assert secret not in json.dumps(shown)
    assert listed["webhooks"][0]["status"] == "on"


def test_the_page_of_a_webhook_shows_what_was_taken_refused_and_waits(served: Api, sink: Sink) -> None:
    project, _, plan, _ = served.family()
    form = {"url": f"http://127.0.0.1:{sink.server_address[1]}/", "types": "plan_verified, plan_failed"}
    with served.client(follow_redirects=True) as client:
        made = client.post("/webhooks", data=form | {"projects": project.id})
        wrong = client.post("/webhooks", data=form | {"types": "no_such"})
    assert 'id="made-secret"' in made.text
    assert 'value="no_such"' in wrong.text, "what was typed stays"
    [hook] = [one["id"] for one in served.get("/api/webhooks")["webhooks"]]
    assert "made-secret" not in served.page("/webhooks")
    served.append(2, project=project.id, plan=plan.id, type="plan_verified")
    until(lambda: len(sink.got) == 2)
    until(lambda: served.get(f"/api/webhooks/{hook}")["behind"] == 0)
    last = served.get("/api/events", type="plan_verified")["events"][-1]["n"]
    letter = DeadLetter(
        id="x", webhook_id=hook, n=last, type="plan_verified", error="410", failures=3, died_at=rows.AT
    )

    def refuse(tx: Tx) -> None:
        tx.insert(letter)
        tx.update(Webhook, hook, off_at=tx.now(), error="410")
        tx.append(Event(type="plan_failed", actor="test", project=project.id))

    served.write(refuse)
    page = served.page(f"/webhooks/{hook}")
    states = re.findall(r'id="sent-[0-9]+".*?tone-(good|bad|idle)', page)
    assert states == ["idle", "bad", "good"]
    assert f'id="letter-{last}"' in page
    assert f"/webhooks/{hook}" in served.page("/alerts")
    with served.client(follow_redirects=True) as client:
        assert client.post(f"/webhooks/{hook}/replay").status_code == 200
    until(lambda: len(sink.got) == 4)
    until(lambda: served.get(f"/api/webhooks/{hook}")["dead"] == 0)
    with served.client(follow_redirects=True) as client:
        assert hook not in client.post(f"/webhooks/{hook}/remove").text
        reader = {"Authorization": f"Bearer {served.make_token('reader')}"}
        assert client.get("/webhooks", headers=reader).status_code == 403


def test_a_target_on_this_machine_is_refused_unless_a_setting_allows_it(shared_api: Api) -> None:
    with shared_api.client() as client:
        refused = client.post("/api/webhooks", json={"url": "https://127.0.0.1/"})
        wrong = client.post("/api/webhooks", json={"url": "ftp://example.com/"})
        unknown = client.post("/api/webhooks", json={"url": "https://example.com/", "types": ["no_such"]})
    assert (refused.status_code, refused.json()["code"]) == (409, "webhook_target_refused")
    assert (wrong.status_code, wrong.json()["code"]) == (422, "webhook_url_wrong")
    assert unknown.json()["code"] == "event_type_unknown"


def test_an_admin_of_some_projects_makes_webhooks_for_these_only(served: Api) -> None:
    project, *_ = served.family()
    other, loop, *_ = served.family()
    some = served.make_token("some", scope=Scope.ADMIN, projects=(project.id,))
    url = "http://127.0.0.1:9/"
    with served.client(some) as client:
        every = client.post("/api/webhooks", json={"url": url})
        foreign = client.post("/api/webhooks", json={"url": url, "projects": [other.id]})
        hidden = client.post("/api/webhooks", json={"url": url, "projects": [project.id], "loop": loop.id})
        own = client.post("/api/webhooks", json={"url": url, "projects": [project.id]})
    assert (every.status_code, every.json()["code"]) == (403, "webhook_reaches_too_far")
    assert (foreign.status_code, foreign.json()["code"]) == (404, "project_not_found")
    assert (hidden.status_code, hidden.json()["code"]) == (404, "loop_not_found")
    assert own.status_code == 201
