"""Locks over the API: one holder, the next one waits visibly, and a release passes it on."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.store import rows
from tests.integration.server.api import Api

from loopwright.core.rows.model import Loop
from loopwright.core.values.states import LoopState, PlanState


def two_loops(api: Api, place: Path) -> tuple[Any, Any]:
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    project, loop, plan, _ = api.family(path=str(place), name="locks")
    other = rows.loop(project, name="locks/other", state=LoopState.RUNNING)
    second = rows.plan(other, status=PlanState.RUNNING)

    def insert(tx: Any) -> None:
        tx.insert(other)
        tx.insert(second)
        tx.update(Loop, other.id, plan_id=second.id)
        tx.update(Loop, loop.id, state=LoopState.RUNNING, plan_id=plan.id, name="locks/one")

    api.write(insert)
    return plan, second


@pytest.mark.capability("C076")
def test_a_lock_is_taken_waited_for_and_passed_on(api: Api, tmp_path: Path) -> None:
    first, second = two_loops(api, tmp_path)
    with api.client(api.token) as client:
        held = client.post("/api/locks", json={"plan_id": first.id, "lock": "staging"}).json()
        waits = client.post("/api/locks", json={"plan_id": second.id, "lock": "staging"}).json()
        assert (held["state"], waits["state"], waits["waits_for"]) == ("HELD", "WAITING", ["locks/one"])
        loop = client.get(f"/api/loops/{second.loop_id}").json()
        assert loop["reason"] == "waits for locks/one, which has the lock staging"
        listed = client.get("/api/locks", params={"project": first.project_id}).json()["locks"]
        assert [one["id"] for one in listed] == [held["id"], waits["id"]]
        assert client.post(f"/api/locks/{held['id']}/release").json() == {
            "result": "locks/one has given up the lock staging"
        }
        (left,) = client.get("/api/locks").json()["locks"]
        assert (left["id"], left["state"]) == (waits["id"], "HELD")
        assert client.get(f"/api/loops/{second.loop_id}").json()["reason"] == ""


def test_a_wrong_name_and_an_unknown_hold_are_refused(api: Api, tmp_path: Path) -> None:
    first, _ = two_loops(api, tmp_path)
    with api.client(api.token) as client:
        wrong = client.post("/api/locks", json={"plan_id": first.id, "lock": "a b"})
        assert wrong.json()["code"] == "lock_name_wrong"
        gone = client.post("/api/locks/hold_00000000-0000-0000-0000-000000000000/release")
        assert gone.json()["code"] == "hold_not_found"
