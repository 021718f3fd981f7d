"""Alerts are acknowledged once, stay known until their cause happens again, and name work in quarantine."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.contracts.store import rows
from tests.integration.server.api import Api

from loopwright.core.policy.escalations import GIVEN_UP, KIND
from loopwright.core.rows.alert_rows import Acknowledgement
from loopwright.core.rows.model import Loop, Plan, Task, Worker
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.access import Scope
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import LoopState, PlanState, QuestionState, TaskState
from loopwright.engine.intake import loops


def _failed(api: Api, **project: Any) -> Task:
    """Insert a task that failed."""
    *_, plan, task = api.family(**project)

    def fail(tx: Any) -> Task:
        tx.update(Plan, plan.id, status=PlanState.RUNNING)
        return tx.update(Task, task.id, status=TaskState.ERROR, reason="no", updated_at=tx.now())  # type: ignore[no-any-return]

    return api.write(fail)


def test_an_alert_is_acknowledged_once_until_its_cause_happens_again(api: Api) -> None:
    task = _failed(api)
    [alert] = api.get("/api/alerts")["alerts"]
    assert (alert["taskId"], alert["acknowledgedBy"], alert["acknowledgedAt"]) == (task.id, "", None)
    path = f"/api/alerts/{alert['id']}/acknowledge"
    with api.client() as client:
        first = client.post(path)
        assert (first.status_code, first.json()["acknowledgedBy"]) == (200, "token:owner")
        assert client.post(path).json() == first.json()
    assert api.get("/api/alerts")["alerts"] == [first.json()]
    events = api.get("/api/events", type="alert_acknowledged")["events"]
    assert [(one["projectId"], one["details"]) for one in events] == [
        (alert["projectId"], {"alert": alert["id"]})
    ]
    # The task is retried, and fails again.
    api.write(lambda tx: tx.update(Task, task.id, updated_at=tx.now()))
    [again] = api.get("/api/alerts")["alerts"]
    assert (again["id"], again["acknowledgedBy"]) == (alert["id"], "")
    with api.client() as client:
        assert client.post(path).json()["acknowledgedBy"] == "token:owner"


def test_an_acknowledged_alert_comes_last_and_is_not_forgotten_for_good(api: Api) -> None:
    first, second = _failed(api), _failed(api, path="/other")
    with api.client() as client:
        done = client.post(f"/api/alerts/task:{first.id}:failed/acknowledge")
    assert done.status_code == 200
    assert [one["taskId"] for one in api.get("/api/alerts")["alerts"]] == [second.id, first.id]

    def age(tx: Any) -> None:
        known = tx.find(Acknowledgement)[0]
        tx.update(Acknowledgement, known.id, created_at=known.created_at - timedelta(days=91))
        tx.update(Task, first.id, updated_at=known.created_at - timedelta(days=92))

    api.write(age)
    assert [one["acknowledgedBy"] for one in api.get("/api/alerts")["alerts"]] == ["", ""]


def test_who_sees_no_alert_cannot_acknowledge_it(api: Api) -> None:
    task = _failed(api)
    project, *_ = api.family(path="/mine")
    path = f"/api/alerts/task:{task.id}:failed/acknowledge"
    with api.client(api.make_token("mine", scope=Scope.OPERATE, projects=(project.id,))) as client:
        assert (client.post(path).status_code, client.post(path).json()["code"]) == (404, "alert_not_found")
    with api.client(api.make_token("reader")) as client:
        assert client.post(path).status_code == 403
    with api.client() as client:
        assert client.post("/api/alerts/account:claude/default/acknowledge").status_code == 404


def test_a_worker_that_holds_the_home_is_alive_whatever_its_lease_says(api: Api) -> None:
    _, loop, *_ = api.family()
    worker = Worker(
        id=rows.new_id(Kind.WORKER),
        host_id="h",
        boot_id="b",
        pid=os.getpid(),
        hostname="here",
        slots=2,
        version="1",
        started_at=rows.AT,
        lease_until=rows.AT,
    )
    api.write(lambda tx: (tx.insert(worker), tx.update(Loop, loop.id, state=LoopState.RUNNING)))
    assert api.get("/api/workers")["workers"] == []
    assert [one["kind"] for one in api.get("/api/alerts")["alerts"]] == ["no_worker"]
    api.at.home.membership.acquire({"pid": os.getpid()})
    try:
        assert [one["id"] for one in api.get("/api/workers")["workers"]] == [worker.id]
        assert api.get("/api/alerts")["alerts"] == []
    finally:
        api.at.home.membership.release()


def test_work_that_could_not_be_saved_is_an_alert_until_its_folder_is_gone(api: Api, tmp_path: Path) -> None:
    *_, task = api.family()
    left = tmp_path / "workspace"
    left.mkdir()
    attempt = rows.attempt(task, workspace=str(left), quarantined="the disk is full")
    api.write(lambda tx: tx.insert(attempt))
    [alert] = api.get("/api/alerts")["alerts"]
    assert (alert["kind"], alert["taskId"]) == ("work_quarantined", task.id)
    assert "the disk is full" in alert["message"]
    assert str(left) in alert["hint"]
    assert "the disk is full" in api.page("/")
    other, *_ = api.family(path="/mine")
    assert api.get("/api/alerts", token=api.make_token("other", projects=(other.id,)))["alerts"] == []
    left.rmdir()
    assert api.get("/api/alerts")["alerts"] == []


def test_what_needs_one_action_is_one_alert(api: Api) -> None:
    task = _failed(api)
    plan = api.at.home.store.read_sync(lambda tx: tx.get(Plan, task.plan_id))
    assert plan is not None
    api.write(lambda tx: tx.update(Loop, plan.loop_id, state=LoopState.FAILED, reason="a task failed"))
    assert [one["kind"] for one in api.get("/api/alerts")["alerts"]] == ["task_failed"]
    question = Question(
        id=rows.new_id(Kind.QUESTION),
        project_id=plan.project_id,
        loop_id=plan.loop_id,
        plan_id=plan.id,
        task_id=task.id,
        run_id="",
        kind=KIND,
        key=GIVEN_UP,
        text="It failed. What now?",
        created_at=rows.AT,
    )
    api.write(lambda tx: tx.insert(question))
    [alert] = api.get("/api/alerts")["alerts"]
    assert (alert["kind"], alert["severity"], alert["taskId"]) == ("needs_response", "error", task.id)
    # Left as it is, the task is still failed.
    api.write(lambda tx: tx.update(Question, question.id, state=QuestionState.ANSWERED))
    assert [one["kind"] for one in api.get("/api/alerts")["alerts"]] == ["task_failed"]
    # Without a failed task, the loop itself says what it needs.
    api.write(lambda tx: tx.update(Task, task.id, status=TaskState.CANCELLED))
    assert [one["kind"] for one in api.get("/api/alerts")["alerts"]] == ["loop_needs_you"]


def test_a_loop_that_could_not_start_is_an_alert_with_what_to_do(api: Api) -> None:
    _, loop, *_ = api.family()
    api.write(
        lambda tx: loops.note_not_started(
            tx, loop, code="no_gates", reason="nothing would check the work", hint="run `loopwright init`"
        )
    )
    told = "Nothing would check the work. Run `loopwright init`."
    assert api.get(f"/api/loops/{loop.id}")["reason"] == told
    [alert] = api.get("/api/alerts")["alerts"]
    assert (alert["kind"], alert["loopId"]) == ("loop_not_started", loop.id)
    assert told in alert["message"]
    assert "Run <code>loopwright init</code>" in api.page("/")
    shown = api.page(f"/loops/{loop.id}")
    assert "Nothing would check the work. Run <code>loopwright init</code>." in shown
    assert "Could not start" in shown
    assert "Start again" in shown
    assert shown.count(f'action="/loops/{loop.id}/start"') == 1
    api.write(lambda tx: tx.update(Loop, loop.id, state=LoopState.RUNNING, reason=""))
    assert api.get("/api/alerts")["alerts"] == []
    assert 'id="not-started"' not in api.page(f"/loops/{loop.id}")
