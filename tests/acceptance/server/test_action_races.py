"""Of clients that race for the same action, one wins, and the others get 409: never two runs, never two verdicts."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import httpx
import pytest
from tests.acceptance.control.greeting import PLAN, block
from tests.acceptance.sandbox import task
from tests.acceptance.server.conftest import Served
from tests.waiting import eventually

from loopwright.core.rows.model import Loop, Plan, Project, Role, Run
from loopwright.core.rows.waiting_rows import Question

RACERS = 5
ASKS = [{"claim": '```loopwright-ask\n{"question": "Which colour?"}\n```\n'}]
RIGHT = [{"expect_prompt": "vermilion", "otherwise": ASKS}, {"write": "bonjour", "text": "bonjour\n"}]


def _race(served: Served, ask: Callable[[httpx.Client], httpx.Response]) -> list[httpx.Response]:
    """Let clients ask for the same at the same moment; return the answers, those of winners first."""
    start = Barrier(RACERS)

    def run(_: int) -> httpx.Response:
        with served.client() as client:
            client.get("/healthz")  # it is connected
            start.wait(60)
            return ask(client)

    with ThreadPoolExecutor(RACERS) as racers:
        return sorted(racers.map(run, range(RACERS)), key=lambda one: one.status_code)


def _one_won(answers: list[httpx.Response], won: int, lost: int = 409) -> set[str]:
    """Expect one winner; return the codes of the others."""
    assert [one.status_code for one in answers] == [won] + [lost] * (RACERS - 1), [
        one.text for one in answers
    ]
    return {one.json()["code"] for one in answers[1:]}


def _kinds(served: Served, plan: str) -> Counter[str]:
    return Counter(one["type"] for one in served.get("/api/events", plan=plan, limit=500)["events"])


@pytest.mark.capability("C101")
@pytest.mark.capability("C113")
def test_a_plan_is_dispatched_answered_verified_and_cancelled_by_one_of_many(served: Served) -> None:
    served.play({"first": [[{"write": "first", "text": "1\n"}]]})
    assert served.run(served.plan("first", [task("first", "test -s first")])).code == 0
    project = served.row(Project).id
    served.play({"plan": [[{"claim": block(PLAN)}]], "bonjour": [RIGHT]})
    served.serve()
    draft = served.post(f"/api/projects/{project}/plan?wait=60", {"goal": "Greet"}).json()["planId"]
    path = f"/api/plans/{draft}"

    assert _one_won(_race(served, lambda one: one.post(f"{path}/dispatch", json={})), 200) == {
        "plan_not_a_draft"
    }
    eventually(lambda: served.get("/api/needs-response")["questions"], timeout=90)
    run = served.row(Question).run_id
    answers = _race(served, lambda one: one.post(f"/api/runs/{run}/respond", json={"response": "vermilion"}))
    assert _one_won(answers, 200) <= {"question_settled", "no_open_question"}
    eventually(lambda: served.row(Loop, plan_id=draft).state == "PAUSED", timeout=90)
    assert _one_won(_race(served, lambda one: one.post(f"{path}/verify", json={})), 202)
    eventually(lambda: served.row(Plan, id=draft).status == "VERIFIED", timeout=90)
    assert len(served.rows(Run, plan_id=draft, role=Role.VERIFY)) == 1
    assert len(served.rows(Run, plan_id=draft, role=Role.IMPLEMENTER)) == 2, "one asked, one was answered"
    kinds = _kinds(served, draft)
    assert {kinds[one] for one in ("plan_dispatched", "plan_completed", "plan_verified")} == {1}

    served.play({"plan": [[{"claim": block(PLAN)}]]})
    other = served.post(f"/api/projects/{project}/plan?wait=60", {"goal": "Greet again"}).json()["planId"]
    answers = _race(served, lambda one: one.post(f"/api/plans/{other}/cancel"))
    assert _one_won(answers, 200) == {"plan_cancelled"}
    assert _kinds(served, other)["plan_cancelled"] == 1


@pytest.mark.capability("C098")
def test_a_loop_is_changed_and_started_only_as_it_was_seen(served: Served) -> None:
    served.play(
        {"first": [[{"write": "first", "text": "1\n"}]], "slow": [[{"write": "slow", "text": "1\n"}]]}
    )
    assert served.run(served.plan("first", [task("first", "test -s first")])).code == 0
    path = served.plan("slow", [task("slow", "test -s slow")])
    path.rename(served.repository / path.name)
    served.serve()
    made = served.post("/api/loops", {"project_id": served.row(Project).id, "source": path.name})
    loop, tag = f"/api/loops/{made.json()['id']}", {"If-Match": made.headers["etag"]}
    assert served.ask("GET", loop).headers["etag"] == tag["If-Match"]
    answers = _race(served, lambda one: one.patch(loop, json={"priority": 2}, headers=tag))
    assert _one_won(answers, 200, lost=412) == {"version_changed"}
    for method, stale in (("POST", f"{loop}/start"), ("POST", f"{loop}/stop"), ("DELETE", loop)):
        late = served.ask(method, stale, headers=tag)
        assert (late.status_code, late.json()["code"]) == (412, "version_changed"), (method, stale)
    tag = {"If-Match": answers[0].headers["etag"]}
    assert _one_won(_race(served, lambda one: one.post(f"{loop}/start", headers=tag)), 202, lost=412)
    assert served.ask("POST", f"{loop}/pause", headers=tag).status_code == 412
    eventually(lambda: served.get(loop)["status"] == "completed", timeout=90)
    assert served.started_keys() == ["first", "slow"]
