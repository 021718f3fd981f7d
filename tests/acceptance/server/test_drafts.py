"""Drafts: an agent writes their tasks in the background, and you change, replace, cancel or dispatch them."""

import pytest
from tests.acceptance.control.greeting import PLAN, block
from tests.acceptance.sandbox import task
from tests.acceptance.server.conftest import Served
from tests.waiting import eventually

from loopwright.core.rows.model import Loop, Plan, Project, Role, Run

_GOAL = {"goal": "Greet people in French"}


def _project(served: Served) -> str:
    """Register the project with its environment."""
    served.play({"first": [[{"write": "first", "text": "1\n"}]]})
    assert served.run(served.plan("first", [task("first", "test -s first")])).code == 0
    return served.row(Project).id


@pytest.mark.capability("C101")
def test_a_draft_is_edited_planned_again_and_only_dispatched_as_it_was_seen(served: Served) -> None:
    project = _project(served)
    served.play({"plan": [[{"claim": block(PLAN)}]]})
    served.serve()
    draft = served.post(f"/api/projects/{project}/plan?wait=60", _GOAL).json()
    path = f"/api/plans/{draft['planId']}"
    seen = served.ask("GET", path)
    tag = seen.headers["etag"]
    assert served.ask("GET", path, headers={"If-None-Match": tag}).status_code == 304
    (bonjour,) = draft["tasks"]
    tasks = [
        {"taskId": bonjour["taskId"], "title": "Say bonjour loudly", "priority": 7},
        {"taskId": "salut", "title": "Say salut", "dependencies": [bonjour["taskId"]]},
    ]
    operator = served.post("/api/tokens", {"name": "operator", "scope": "operate"}).json()["token"]
    with served.client(operator) as client:
        commands = [{**tasks[0], "acceptance": ["rm -rf /"]}]
        refused = client.patch(path, json={"tasks": commands})
        assert refused.json()["code"] == "commands_need_admin", refused.text
        changed = client.patch(
            path, json={"title": "Two greetings", "tasks": tasks}, headers={"If-Match": tag}
        )
        late = client.patch(path, json={"title": "Too late"}, headers={"If-Match": tag})
    assert changed.status_code == 200, changed.text
    assert (late.status_code, late.json()["code"]) == (412, "version_changed")
    edited = changed.json()
    assert (edited["planId"], edited["title"]) == (draft["planId"], "Two greetings")
    assert [(one["title"], one["priority"]) for one in edited["tasks"]] == [
        ("Say bonjour loudly", 7),
        ("Say salut", 50),
    ]
    assert edited["tasks"][0]["taskId"] == bonjour["taskId"]
    assert edited["tasks"][1]["dependencies"] == [bonjour["taskId"]]
    stale = served.ask("POST", f"{path}/dispatch", json={}, headers={"If-Match": tag})
    assert stale.status_code == 412, stale.text
    wrong = served.ask("PATCH", path, json={"tasks": [{"taskId": "x", "dependencies": ["nothing"]}]})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "bad_plan"), wrong.text
    assert served.get(path)["tasks"] == edited["tasks"], "an edit that is refused changes nothing"
    again = served.post(f"{path}/replan?wait=60").json()
    assert (again["replaces"], again["status"], len(again["tasks"])) == (draft["planId"], "DRAFT", 1)
    assert served.get(path)["status"] == "CANCELLED"
    cancelled = served.ask("PATCH", path, json={"title": "Gone"})
    assert (cancelled.status_code, cancelled.json()["code"]) == (409, "plan_not_a_draft")


@pytest.mark.capability("C101")
def test_a_draft_that_its_evaluation_objects_to_is_dispatched_with_a_reason_only(served: Served) -> None:
    project = _project(served)
    served.play(
        {"plan": [[{"claim": block(PLAN)}]], "bonjour": [[{"write": "bonjour", "text": "bonjour\n"}]]}
    )
    served.serve()
    draft = served.post(f"/api/projects/{project}/plan?wait=60", _GOAL).json()
    path = f"/api/plans/{draft['planId']}"
    vain = [{"taskId": "bonjour", "acceptance": ["true"]}]
    edited = served.ask("PATCH", path, json={"tasks": vain}).json()
    assert edited["evaluation"]["passed"] is False
    assert edited["evaluation"]["findings"]
    refused = served.post(f"{path}/dispatch")
    assert (refused.status_code, refused.json()["code"]) == (409, "plan_not_evaluated")
    assert served.post(f"{path}/dispatch", {"despite": "I know"}).status_code == 200
    assert served.events("plan_forced")[-1].payload["reason"] == "I know"
    assert served.get(path)["evaluation"]["despite"] == "I know"
    assert served.post(f"{path}/cancel").status_code == 200


@pytest.mark.capability("C018")
def test_a_killed_daemon_continues_to_plan_and_pays_the_planner_once(served: Served) -> None:
    project = _project(served)
    gate = served.gate("planner")
    served.play({"plan": [[gate.step, {"claim": block(PLAN)}]]})
    daemon = served.serve()
    key = {"Idempotency-Key": "one"}
    first = served.ask("POST", f"/api/projects/{project}/plan", json=_GOAL, headers=key)
    assert (first.status_code, first.json()["planning"]) == (202, True)
    again = served.ask("POST", f"/api/projects/{project}/plan", json=_GOAL, headers=key)
    assert (again.json(), again.headers["idempotency-replayed"]) == (first.json(), "true")
    path = f"/api/plans/{first.json()['planId']}"
    served.until_started("plan")
    daemon.kill()
    served.serve()
    assert served.get(path)["planning"]
    gate.let_go()
    eventually(lambda: not served.get(path)["planning"], timeout=90)
    draft = served.get(path)
    assert (draft["status"], len(draft["tasks"])) == ("DRAFT", 1)
    assert len(served.rows(Run, role=Role.PLANNER)) == 1
    assert served.started().count(("plan", 1)) == 1
    assert len(served.rows(Plan, made_for=None)) == 2
    assert len(served.get(f"/api/projects/{project}/plans")["plans"]) == 2


@pytest.mark.capability("C113")
def test_a_draft_is_cancelled_while_its_agent_writes(served: Served) -> None:
    project = _project(served)
    gate = served.gate("planner")
    served.play({"plan": [[gate.step, {"claim": block(PLAN)}]]})
    served.serve()
    draft = served.post(f"/api/projects/{project}/plan", _GOAL).json()
    served.until_started("plan")
    assert served.post(f"/api/plans/{draft['planId']}/cancel").status_code == 200
    assert served.get(f"/api/plans/{draft['planId']}")["status"] == "CANCELLED"
    (asked,) = served.rows(Plan, made_for=draft["planId"])
    assert asked.status == "CANCELLED"
    eventually(lambda: not served.rows(Run, plan_id=asked.id, state="RUNNING"), timeout=60)


@pytest.mark.capability("C101")
def test_a_draft_that_needs_no_person_is_dispatched_and_verified_by_itself(served: Served) -> None:
    project = _project(served)
    bonjour = [[{"write": "bonjour", "text": "bonjour\n"}]]
    served.play({"plan": [[{"claim": block(PLAN)}]], "bonjour": bonjour})
    served.serve()
    wish = {**_GOAL, "autonomy": "auto"}
    path = f"/api/plans/{served.post(f'/api/projects/{project}/plan', wish).json()['planId']}"
    eventually(lambda: served.get(path)["status"] in ("VERIFIED", "FAILED"), timeout=120)
    assert served.get(path)["status"] == "VERIFIED"
    gone = served.post(f"/api/projects/{project}/plan?wait=60", _GOAL).json()
    (served.repository / served.row(Loop, plan_id=gone["planId"]).source_path).unlink()
    refused = served.ask("PATCH", f"/api/plans/{gone['planId']}", json={"title": "Two greetings"})
    assert (refused.status_code, refused.json()["code"]) == (409, "plan_not_editable"), refused.text
