"""The daemon runs the plans of a home and answers requests about them."""

import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.acceptance.server.conftest import Served
from tests.waiting import eventually

from loopwright.core.rows.model import Loop, Plan


def test_the_daemon_takes_over_a_detached_plan_and_reports_it(served: Served) -> None:
    agent = served.gate("agent")
    plan = served.chain("one", "two", steps={"one": [[agent.step, {"write": "one", "text": "1\n"}]]})
    assert served.run(plan, "--detach").code == 0
    served.until_started("one")
    daemon = served.serve()
    eventually(lambda: _ready(served), timeout=60)
    (loop,) = served.get("/api/loops")["loops"]
    assert loop["status"] == "running"
    assert loop["pid"] == daemon.process.pid
    assert loop["current_test"] == "one"
    assert loop["progress"] == {"passed": 0, "total": 2}
    health = served.get(f"/api/loops/{loop['id']}/health")
    assert (health["live"], health["ready"]) == (True, True)
    agent.let_go()
    eventually(lambda: served.row(Plan).status == "VERIFIED", timeout=90)
    assert served.started() == [("one", 1), ("two", 1)], "the agent was adopted, not started again"
    shown = served.get(f"/api/plans/{served.row(Plan).id}")
    assert shown["status"] == "VERIFIED"
    assert [one["status"] for one in shown["tasks"]] == ["COMPLETE", "COMPLETE"]
    assert shown["gateResult"]["passed"] is True
    assert {one["passed"] for one in shown["gateResult"]["checks"]} == {True}
    (verify,) = [
        one
        for one in served.get(f"/api/plans/{shown['planId']}/runs")["runs"]
        if one["taskRunId"].startswith("verify_")
    ]
    assert verify["runId"] == shown["verifyRunId"]
    assert verify["taskRunId"] == f"verify_{shown['planId']}"
    assert verify["prompt"] == "Execute gate:all verification"


def _ready(served: Served) -> bool:
    with served.client() as client:
        return client.get("/readyz").status_code == 200


def test_a_killed_daemon_leaves_its_agents_running_and_the_next_one_adopts_them(served: Served) -> None:
    agent = served.gate("agent")
    first = served.serve()
    plan = served.chain("one", steps={"one": [[agent.step, {"write": "one", "text": "1\n"}]]})
    assert served.run(plan, "--detach").code == 0
    served.until_started("one")
    first.kill()
    served.serve()
    agent.let_go()
    eventually(lambda: served.row(Plan).status == "VERIFIED", timeout=90)
    assert served.started() == [("one", 1)]


def test_a_daemon_in_the_background_is_started_restarted_and_ended_and_its_agents_stay(
    served: Served,
) -> None:
    agent = served.gate("agent")
    plan = served.chain("one", "two", steps={"one": [[agent.step, {"write": "one", "text": "1\n"}]]})
    first = served("up", "--port", "0", "--slots", "2", "--json").document
    try:
        options = _note(served)["arguments"]
        held = served("up", "--port", "0", "--json")
        assert held.document["error"]["code"] == "daemon_running", held.out
        assert str(first["pid"]) in held.document["error"]["message"]
        assert served.run(plan, "--detach").code == 0
        served.until_started("one")
        second = served("restart", "--json").document
        assert second["pid"] != first["pid"]
        assert _note(served)["arguments"] == options
        assert "--slots" in options
        agent.let_go()
        eventually(lambda: served.row(Plan).status == "VERIFIED", timeout=90)
        assert served.started() == [("one", 1), ("two", 1)], "the agent was adopted, not started again"
    finally:
        ended = served("down", "--json").document
    assert ended == {"ended": second["pid"]}
    assert served("down", "--json").document == {"ended": None}
    written = served("service", "install", "--port", "8377")
    assert "loopwright" in written.out, written.err
    assert list(served.program.user.rglob("loopwright.service" if sys.platform == "linux" else "*.plist"))


def _note(served: Served) -> dict[str, Any]:
    note: dict[str, Any] = json.loads((served.home / "daemon.json").read_text())
    return note


SLOW_STACK = """
import sys, time
from pathlib import Path

for name in ("fastapi", "starlette", "uvicorn.config"):
    assert name not in sys.modules, name
while not Path({release!r}).exists():
    time.sleep(0.01)
sys.path.remove({folder!r})
del sys.modules["uvicorn"]
import uvicorn
"""
"""A package `uvicorn` that takes as long to load as the test wants, and then is the real one."""


def test_the_daemon_starts_agents_before_the_http_stack_is_loaded(served: Served) -> None:
    folder, release = served.place / "slow", served.place / "release"
    (folder / "uvicorn").mkdir(parents=True)
    (folder / "uvicorn" / "__init__.py").write_text(
        SLOW_STACK.format(folder=str(folder), release=str(release))
    )
    served.program.env["PYTHONPATH"] = str(folder)
    served.program.python = f"{Path(sys.executable).parent}/./{Path(sys.executable).name}"  # a new process
    daemon = served.start("serve", "--port", "0", "--json")
    served.program.python = sys.executable
    del served.program.env["PYTHONPATH"]
    eventually((served.home / "loop_registry.json").exists, timeout=60)
    assert served.run(served.chain("one"), "--detach").code == 0
    served.until_started("one")
    assert not (served.home / "daemon.json").exists(), "it does not listen yet"
    release.touch()
    daemon.until('"listening"')
    eventually(lambda: served.row(Plan).status == "VERIFIED", timeout=90)


def test_a_second_daemon_names_the_one_that_holds_the_home(served: Served) -> None:
    daemon = served.serve()
    said = served("serve", "--port", "0", "--json")
    assert said.code == 5, said.out
    assert said.document["error"]["code"] == "daemon_running"
    assert str(daemon.process.pid) in said.document["error"]["message"]


def test_pause_and_resume_can_be_asked_for_twice(served: Served) -> None:
    agent = served.gate("agent")
    served.serve()
    plan = served.chain("one", steps={"one": [[agent.step, {"write": "one", "text": "1\n"}]]})
    assert served.run(plan, "--detach").code == 0
    served.until_started("one")
    loop = served.row(Loop).id
    for _ in range(2):
        answer = served.post(f"/api/loops/{loop}/pause")
        assert (answer.status_code, answer.json()["status"]) == (200, "paused"), answer.text
    health = served.get(f"/api/loops/{loop}/health")
    assert (health["ready"], "paused" in health["why_not"]) == (False, True)
    for _ in range(2):
        answer = served.post(f"/api/loops/{loop}/resume")
        assert (answer.status_code, answer.json()["status"]) == (200, "running"), answer.text
    agent.let_go()
    eventually(lambda: served.row(Plan).status == "VERIFIED", timeout=90)
    again = served.post(f"/api/plans/{served.row(Plan).id}/pause")
    assert (again.status_code, again.headers["content-type"]) == (409, "application/problem+json")
    paused = [event.actor for event in served.events("command_applied")]
    assert paused[0] == "token:owner"


def test_a_stream_continues_after_the_daemon_was_restarted_without_a_gap(served: Served) -> None:
    daemon = served.serve()
    assert (
        served.run(served.chain("one", steps={"one": [[{"write": "one", "text": "1\n"}]]}), "--detach").code
        == 0
    )
    first = _stream(served, last="0", until="attempt_working")
    daemon.kill()
    served.serve()
    rest = _stream(served, last=str(first[-1]["n"]), until="plan_verified")
    numbers = [one["n"] for one in (*first, *rest)]
    assert numbers == list(range(1, numbers[-1] + 1))
    page = served.get("/api/events", after=0, type="plan_verified")
    assert [one["type"] for one in page["events"]] == ["plan_verified"]


def _stream(served: Served, *, last: str, until: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    with (
        served.client() as client,
        client.stream("GET", "/api/events/stream", headers={"Last-Event-ID": last}) as stream,
    ):
        for line in stream.iter_lines():
            if line.startswith("data: "):
                found.append(json.loads(line.removeprefix("data: ")))
                if found[-1]["type"] == until:
                    return found
    raise AssertionError(f"the stream ended before {until}: {found}")


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 401, "token_missing"),
        ({"Authorization": "Bearer lw_wrong"}, 401, "token_unknown"),
        ({"Authorization": "Basic eDp5"}, 401, "token_missing"),
        ({"Host": "evil.example"}, 421, "host_wrong"),
    ],
)
def test_a_request_without_a_valid_token_or_host_is_refused(
    served_once: Served, headers: dict[str, str], status: int, code: str
) -> None:
    answer = httpx.get(served_once.listening["url"] + "/api/loops", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_bodies_origins_and_paths_are_checked(served_once: Served) -> None:
    with served_once.client() as client:
        large = client.post("/api/tokens", content=b"x" * (2 << 20))
        foreign = client.post("/api/tokens", json={"name": "x"}, headers={"Origin": "https://evil.example"})
        wrong = client.post("/api/tokens", json={"name": 7, "scope": "all"})
        broken = client.post("/api/tokens", content=b"{", headers={"Content-Type": "application/json"})
        unknown = client.get("/api/nothing")
        traversal = client.get("/api/plans/..%2f..%2fetc")
    assert [one.status_code for one in (large, foreign, wrong, broken, unknown, traversal)] == [
        413,
        403,
        422,
        422,
        404,
        404,
    ]
    for one in (large, foreign, wrong, broken, unknown, traversal):
        assert one.headers["content-type"] == "application/problem+json"
        assert one.json()["code"]


def test_a_token_sees_its_projects_only_and_does_what_its_scope_allows(served: Served) -> None:
    served.serve()
    assert served.run(served.chain("one", steps={"one": [[{"write": "one", "text": "1\n"}]]})).code == 0
    loop, plan = served.row(Loop), served.row(Plan)
    mine = served.post("/api/tokens", {"name": "mine", "projects": [plan.project_id]}).json()["token"]
    assert served.post("/api/tokens", {"name": "mine"}).json()["code"] == "token_name_taken"
    other = served.post("/api/tokens", {"name": "other", "scope": "operate"}).json()
    paths = [f"/api/loops/{loop.id}", f"/api/plans/{plan.id}", f"/api/projects/{plan.project_id}"]
    with served.client(mine) as client:
        assert [client.get(path).status_code for path in paths] == [200, 200, 200]
        refused = client.post(f"/api/loops/{loop.id}/pause")
        assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")
        assert client.get("/api/tokens").status_code == 403
    with served.client(other["token"]) as client:
        assert client.get("/api/loops").json()["loops"]
        assert client.get("/api/tokens").status_code == 403
    with served.client() as client:
        assert client.delete(f"/api/tokens/{other['id']}").status_code == 200
    with served.client(other["token"]) as client:
        assert client.get("/api/loops").status_code == 401
    assert mine not in (served.home / "loopwright.db").read_bytes().decode("latin-1")


def test_a_repeated_request_gets_the_first_reply_and_does_nothing(served: Served) -> None:
    agent = served.gate("agent")
    served.serve()
    plan = served.chain("one", steps={"one": [[agent.step, {"write": "one", "text": "1\n"}]]})
    assert served.run(plan, "--detach").code == 0
    served.until_started("one")
    path = f"/api/plans/{served.row(Plan).id}"
    key = {"Idempotency-Key": "one"}
    with served.client() as client:
        first = client.post(f"{path}/pause", json={}, headers=key)
        again = client.post(f"{path}/pause", json={}, headers=key)
        other = client.post(f"{path}/pause", json={"now": True}, headers=key)
        made = client.post("/api/tokens", json={"name": "once"}, headers=key)
        kept = client.post("/api/tokens", json={"name": "once"}, headers=key)
    assert (first.status_code, again.status_code) == (200, 200), first.text
    assert first.json() == again.json()
    assert again.headers["idempotency-replayed"] == "true"
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert len(served.events("command_applied")) == 1
    assert (made.status_code, kept.status_code, kept.json()["code"]) == (201, 409, "reply_not_kept")
    assert made.json()["token"] not in (served.home / "loopwright.db").read_bytes().decode("latin-1")
