"""Inspect, plan, dispatch, verify: each step waits for the next request."""

import re

import pytest
from tests.acceptance.control.greeting import PLAN, VAIN, block
from tests.acceptance.sandbox import task
from tests.acceptance.server.conftest import Served
from tests.waiting import eventually

from loopwright.adapters.home.membership import LockedMembership
from loopwright.core.rows.model import Loop, Plan, Project, Role, Run

_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def _project(served: Served) -> str:
    """Run a small plan once, so that there is a run to inspect and a recorded environment."""
    served.play({"first": [[{"write": "first", "text": "1\n"}]]})
    assert served.run(served.plan("first", [task("first", "test -s first")])).code == 0
    return served.row(Project).id


@pytest.mark.capability("C018")
@pytest.mark.capability("C101")
def test_a_packet_becomes_a_plan_that_waits_for_its_dispatch_and_its_verification(served: Served) -> None:
    project = _project(served)
    (run,) = served.rows(Run, role=Role.IMPLEMENTER)
    served.play(
        {"plan": [[{"claim": block(PLAN)}]], "bonjour": [[{"write": "bonjour", "text": "bonjour\n"}]]}
    )
    served.serve()
    packet = served.post(f"/api/inspection/run/{run.id}").json()
    assert packet["packetId"].startswith("pkt_")
    assert packet["runId"] == run.id
    assert [one["packetId"] for one in served.get("/api/inspection")["packets"]] == [packet["packetId"]]
    assert served.get(f"/api/inspection/{packet['packetId']}") == packet
    answer = served.post(f"/api/projects/{project}/plan", {"packetId": packet["packetId"]})
    assert answer.status_code == 202, answer.text
    asked = answer.json()
    assert (asked["status"], asked["tasks"], asked["packetId"]) == ("DRAFT", [], packet["packetId"])
    assert asked["runId"] == run.id
    early = served.post(f"/api/plans/{asked['planId']}/dispatch")
    assert (early.status_code, early.json()["code"]) == (409, "plan_being_written"), early.text
    eventually(lambda: not served.get(f"/api/plans/{asked['planId']}")["planning"], timeout=90)
    draft = served.get(f"/api/plans/{asked['planId']}")
    assert (draft["status"], draft["planId"]) == ("DRAFT", asked["planId"])
    assert draft["evaluation"]["passed"] is True
    assert re.fullmatch(f"plan_{_UUID}", draft["planId"])
    assert [one["status"] for one in draft["tasks"]] == ["CREATED"]
    assert re.fullmatch(f"ptask_{_UUID}", draft["tasks"][0]["taskId"])
    assert draft["executedAt"] is None
    early = served.post(f"/api/plans/{draft['planId']}/verify")
    assert early.status_code == 409, early.text
    dispatched = served.post(f"/api/plans/{draft['planId']}/dispatch", {"parallel": False})
    assert dispatched.status_code == 200, dispatched.text
    assert dispatched.json()["status"] == "RUNNING"
    (given,) = dispatched.json()["runs"]
    assert given["taskId"] == draft["tasks"][0]["taskId"]
    assert given["runId"] is not None
    twice = served.post(f"/api/plans/{draft['planId']}/dispatch")
    assert (twice.status_code, twice.json()["code"]) == (409, "plan_not_a_draft")
    path = f"/api/plans/{draft['planId']}"
    eventually(lambda: served.get(path)["completedAt"], timeout=90)
    eventually(lambda: served.row(Loop, plan_id=draft["planId"]).state == "PAUSED", timeout=60)
    waiting = served.get(path)
    assert (waiting["status"], waiting["verifyRunId"], waiting["verifiedAt"]) == ("RUNNING", None, None)
    begun = served.post(f"{path}/verify")
    assert begun.status_code in (200, 202), begun.text
    assert begun.json()["status"] in ("VERIFYING", "VERIFIED")
    eventually(lambda: served.get(path)["status"] == "VERIFIED", timeout=60)
    (judged,) = served.rows(Run, plan_id=draft["planId"], role=Role.VERIFY)
    assert judged.label == f"verify_{draft['planId']}"
    verified = served.get(path)
    assert verified["gateResult"]["passed"] is True
    assert verified["verifyRunId"] == judged.id
    told = [one["type"] for one in served.get("/api/events", plan=draft["planId"])["events"]]
    for name in ("plan_created", "plan_dispatched", "plan_completed", "plan_verified"):
        assert told.count(name) == 1, name
    assert served.get(f"/api/projects/{project}/plans")["plans"][0]["planId"] == draft["planId"]


@pytest.mark.capability("C019")
def test_a_plan_that_could_not_be_generated_is_failed_and_says_so(served: Served) -> None:
    project = _project(served)
    served.play({"plan": [[{"claim": block(VAIN)}]] * 3})
    served.serve()
    answer = served.post(f"/api/projects/{project}/plan?wait=60", {"goal": "Greet people in French"})
    assert answer.status_code == 200, answer.text
    failed = answer.json()
    assert (failed["status"], failed["tasks"]) == ("FAILED", [])
    (check,) = failed["gateResult"]["checks"]
    assert (check["name"], check["passed"]) == ("plan_generation", False)
    assert check["message"]
    assert served.get(f"/api/plans/{failed['planId']}")["gateResult"] == failed["gateResult"]
    listed = served.get(f"/api/projects/{project}/plans")["plans"]
    assert failed["planId"] in [one["planId"] for one in listed]


def test_results_settings_quota_and_metrics_can_be_read(served: Served) -> None:
    project = _project(served)
    plan = served.row(Plan).id
    served.serve()
    receipt = served.get(f"/api/plans/{plan}/receipt")
    assert receipt["plan"]["id"] == plan
    with served.client() as client:
        changed = client.get(f"/api/plans/{plan}/diff", params={"task": "first"})
        figures = client.get("/metrics").text
    assert "+++ b/first" in changed.text
    assert 'loopwright_plans{state="verified"} 1' in figures
    detail = served.get(f"/api/plans/{plan}/tasks/first")
    assert [one["state"] for one in detail["attempts"]] == ["LANDED"]
    found = {one["key"]: one for one in served.get(f"/api/projects/{project}/settings")["settings"]}
    assert found["agent"]["value"] == "scripted"
    assert served.get("/api/quota")["accounts"]
    checked = served.post(f"/api/plans/{plan}/receipt/verify").json()
    assert (checked["agrees"], checked["differences"]) == (True, [])
    (gate,) = served.get(f"/api/projects/{project}/gates")["gates"]
    assert gate["passed"] is True
    assert served.get(f"/api/runs/{gate['runId']}")["taskRunId"] == f"verify_{plan}"
    assert served.get(f"/api/projects/{project}/budget")["plans"] == {}
    assert served.get(f"/api/projects/{project}/environment")["recorded"] is True
    assert served.get("/api/workers")["workers"]
    assert [one["name"] for one in served.get("/api/costs", by="role")["costs"]] == ["implementer"]
    loop = served.row(Loop).id
    report = served.get(f"/api/loops/{loop}/report")
    assert (report["plans"], report["verified"], report["alerts"]) == (1, 1, [])
    with served.client() as client:
        told = client.get(f"/api/loops/{loop}/report", params={"format": "markdown"}).text
    assert "| first | COMPLETE |" in told
    (run,) = served.rows(Run, role=Role.IMPLEMENTER)
    shown = served.get(f"/api/runs/{run.id}")
    assert (shown["projectId"], shown["planId"], shown["status"]) == (project, plan, "COMPLETE")
    assert "first" in shown["prompt"]
    told = served.get(f"/api/runs/{run.id}/events")
    assert (told["events"][0]["type"], told["hasMore"]) == ("run_started", False)
    lines = [one["message"] for one in told["events"] if one["type"] == "log"]
    assert lines == [one["line"] for one in served.get(f"/api/runs/{run.id}/logs")["logs"]]
    with served.client() as client:
        streamed = client.get(f"/api/runs/{run.id}/logs/stream").text
    assert streamed.endswith("event: end\ndata: {}\n\n")
    assert streamed.count('data: {"offset"') == len(lines) > 0
    over = served.post(f"/api/runs/{run.id}/interrupt")
    assert (over.status_code, over.json()["code"]) == (409, "task_settled")
    rejected = served.post(f"/api/plans/{plan}/tasks/first/reject", {})
    assert (rejected.status_code, rejected.json()["code"]) == (422, "note_missing")
    comments = {"comments": [{"at": "first:1", "text": "say 2"}]}
    assert served.post(f"/api/plans/{plan}/tasks/first/reject", comments).status_code == 200
    (said,) = served.get(f"/api/plans/{plan}/comments")["comments"]
    assert (said["file"], said["line"], said["text"]) == ("first", 1, "say 2")
    assert served.task("first").status != "COMPLETE"


def test_landed_work_is_rolled_back(served: Served) -> None:
    _project(served)
    plan = served.row(Plan).id
    served.serve()
    back = served.post(f"/api/plans/{plan}/tasks/first/rollback")
    assert back.status_code == 200, back.text
    assert served.task("first").status != "COMPLETE"


def test_the_daemon_takes_accepted_work_over_and_keeps_its_home(served: Served) -> None:
    _project(served)
    served.serve()
    plan = served.row(Plan)
    accepted = served.post(f"/api/plans/{plan.id}/accept", {"finish": "fast-forward"})
    assert accepted.status_code == 200, accepted.text
    assert served.git("rev-parse", plan.base_ref) == served.git("rev-parse", plan.branch)
    holder = LockedMembership(served.home).holder()
    assert holder is not None
    assert holder["pid"] == served.pid
    again = served.post(f"/api/plans/{plan.id}/accept", {"finish": "fast-forward"})
    assert again.status_code < 500, again.text
    assert "no longer as expected" not in again.text
