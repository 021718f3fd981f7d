"""What needs a person is an alert; an agent can be interrupted, and limits can be changed."""

import pytest
from tests.acceptance.sandbox import task
from tests.acceptance.server.conftest import Served
from tests.waiting import eventually

from loopwright.core.rows.model import Plan, Role, Run


@pytest.mark.capability("C075")
def test_failures_are_alerts_limits_are_set_and_an_agent_is_interrupted(served: Served) -> None:
    gate = served.gate("agent")
    served.play(
        {
            "bad": [[{"claim": "done"}]],
            "slow": [[gate.step, {"hang": 90}], [{"write": "slow", "text": "1\n"}]],
        }
    )
    tasks = [task(key, f"test -s {key}", max_attempts=1) for key in ("bad", "slow")]
    served.serve("--slots", "2")
    assert (
        served.run(served.plan("two", tasks), "--detach", "--max-attempts", "1", "--parallel", "2").code == 0
    )
    eventually(lambda: served.task("bad").status == "ERROR", timeout=90)
    alerts = served.get("/api/alerts")["alerts"]
    # Its question is the alert: one action is needed, so there is one.
    assert [(one["kind"], one["severity"]) for one in alerts if one["taskId"] == served.task("bad").id] == [
        ("needs_response", "error")
    ]
    plan = served.row(Plan)
    limited = served.ask("PATCH", f"/api/plans/{plan.id}/budget", json={"maxCost": 5_000_000})
    assert limited.status_code == 200, limited.text
    budget = served.get(f"/api/projects/{plan.project_id}/budget")["plans"][plan.id]
    assert [(one["setting"], one["limitMicros"]) for one in budget] == [("max_cost", 5_000_000)]
    operator = served.post("/api/tokens", {"name": "operator", "scope": "operate"}).json()["token"]
    with served.client(operator) as client:
        raised = client.patch(f"/api/plans/{plan.id}/budget", json={"maxCost": 6_000_000})
        lowered = client.patch(f"/api/plans/{plan.id}/budget", json={"maxCost": 4_000_000})
    assert (raised.status_code, raised.json()["code"]) == (403, "budget_needs_admin")
    assert lowered.status_code == 200, lowered.text
    unlimited = served.ask("PATCH", f"/api/plans/{plan.id}/budget", json={"maxCost": None})
    assert unlimited.status_code == 200, unlimited.text
    served.until_started("slow")
    gate.let_go()
    (run,) = (one for one in served.rows(Run, role=Role.IMPLEMENTER) if one.task_id == served.task("slow").id)
    ended = served.post(f"/api/runs/{run.id}/interrupt", {"note": "be quick"})
    assert ended.status_code == 200, ended.text
    eventually(lambda: served.task("slow").status == "COMPLETE", timeout=90)
    assert [one.note for one in served.attempts("slow")] == ["", "be quick"]
    assert served.task("slow").attempts <= 1, "no attempt was used up"
    assert served.events("task_interrupted")[0].actor == "token:owner"
