"""A loop over an orchestrator folder: the daemon is its controller, and pages and API show it like any other loop."""

import pytest
from tests.acceptance.control.workshop import kill
from tests.acceptance.orchestrator.bundle import play, prepared, state, statuses
from tests.acceptance.server.conftest import Served
from tests.waiting import eventually

from loopwright.core.rows.model import Project


def _loop(served: Served) -> str:
    """Register the repository, and return the path of a loop over its folder."""
    assert served("projects", "env", "--record").code == 0
    served.serve()
    wanted = {"project_id": served.row(Project).id, "source": "orchestrator"}
    made = served.post("/api/loops", wanted)
    assert made.status_code == 201, made.text
    return f"/api/loops/{made.json()['id']}"


def _until(served: Served, loop: str, status: str) -> None:
    eventually(lambda: served.get(loop)["status"] == status, timeout=120)


@pytest.mark.capability("C056")
@pytest.mark.capability("C060")
def test_rounds_in_the_daemon_pause_resume_and_outlive_a_kill_and_nothing_is_done_twice(
    served: Served,
) -> None:
    prepared(served, 1)
    gate = served.gate("implement")
    play(served, implement=[[gate.step, {"run": "python3 tools/roles.py implement"}]])
    loop = _loop(served)
    daemon = served.going[-1]
    assert served.post(f"{loop}/start").status_code == 202
    served.until_started("implement")
    seen = served.get(loop)
    assert (seen["status"], seen["progress"]) == ("running", {"passed": 0, "total": 1})
    assert served.get(f"/api/plans/{seen['plan_id']}")["title"] == "round-001: implement by the implementer"
    assert "the controller of" in served("run", "orchestrator").err
    kill(daemon)
    served.serve()
    _until(served, loop, "running")
    assert served.post(f"{loop}/pause").json()["status"] == "paused"
    gate.let_go()
    eventually(lambda: served.task("implement").status == "COMPLETE", timeout=60)
    assert state(served)["active_rounds"][0]["stage"] == "implement", "a paused loop begins nothing"
    assert served.post(f"{loop}/resume").status_code == 200
    _until(served, loop, "completed")
    assert served.started() == [("plan", 1), ("implement", 1), ("review", 1)]
    assert (statuses(served), state(served)["controller_stage"]) == (["done"], "done")


@pytest.mark.more
@pytest.mark.capability("C059")
def test_a_blockage_of_rounds_in_the_daemon_is_the_reason_of_the_loop_and_an_alert(served: Served) -> None:
    prepared(served, 1)
    role = served.repository / "orchestrator/role-contract.md"
    text = role.read_text()
    role.write_text("")
    loop = _loop(served)
    assert served("run", "orchestrator", "--detach", "--max-cost", "9").code == 0
    _until(served, loop, "failed")
    why = served.get(loop)["reason"]
    assert (
        why
        == state(served)["resume_errors"]["controller"]
        == "orchestrator/role-contract.md is empty; restore it"
    )
    assert why in {one["message"].partition(": ")[2] for one in served.get("/api/alerts")["alerts"]}
    role.write_text(text)
    assert "The daemon drives the rounds" in served("run", "orchestrator", "--detach").out
    _until(served, loop, "completed")
