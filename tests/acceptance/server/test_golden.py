"""The answers of the endpoints that other programs know, byte by byte, and held against the examples of their contract.

`LOOPWRIGHT_WRITE_GOLDEN=1` writes what the endpoints say now; look at the difference before you keep it.
"""

import json
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.control.greeting import PLAN, block
from tests.acceptance.sandbox import task
from tests.acceptance.server.conftest import Served
from tests.waiting import eventually

from loopwright.core.rows.events import CATALOGUE
from loopwright.core.rows.model import Loop, Project, Role, Run
from loopwright.core.values.states import PlanState
from loopwright.server.asgi import describe

DATA = Path(__file__).parents[2] / "data" / "api"
SEEDS: dict[str, Any] = json.loads((DATA / "seeds.json").read_text())
_IDS = re.compile(
    r"(?<![a-z])(plan|ptask|run|pkt|proj|loop|att|evt|cmd)_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
)
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
_RANDOM = re.compile(r"\b[0-9a-f]{40}\b|\b[0-9a-f]{64}\b|-[0-9a-f]{8}(?=\.yaml)|(?<=plan_)[0-9a-f]{8}\b")


class Golden:
    """The answers, without what differs from run to run."""

    def __init__(self, served: Served) -> None:
        self._ids: dict[str, str] = {}
        self._place = str(served.place)
        self.wrong: list[str] = []

    def check(self, name: str, answer: Any, *, moving: Collection[str] = ()) -> None:
        """Compare an answer with the golden one, and with the example of its contract.

        The values of `moving` fields depend on how far the daemon is at that moment.
        """
        still = self._still(answer, frozenset(moving))
        text = json.dumps(still, indent=1, sort_keys=True) + "\n"
        file = DATA / (re.sub(r"\W+", "-", name.lower()).strip("-") + ".json")
        if os.environ.get("LOOPWRIGHT_WRITE_GOLDEN"):
            file.write_text(text)
        if not file.exists() or file.read_text() != text:
            self.wrong.append(f"{name} is not as in {file.name}:\n{text}")
        if name in SEEDS:
            self.wrong += [f"{name}: {one}" for one in misfits(SEEDS[name], answer, "")]

    def _still(self, value: Any, moving: frozenset[str]) -> Any:
        if isinstance(value, dict):
            return {
                key: "MOVING"
                if key in moving
                else 0
                if key in _MEASURED and one is not None
                else self._still(one, moving)
                for key, one in value.items()
            }
        if isinstance(value, list):
            return [self._still(one, moving) for one in value]
        if not isinstance(value, str):
            return value
        value = _IDS.sub(lambda found: self._known(found.group(0)), value.replace(self._place, "PLACE"))
        return _RANDOM.sub("RANDOM", _TIMES.sub("TIME", value))

    def _known(self, id: str) -> str:
        kind = id.partition("_")[0]
        number = sum(one.startswith(f"{kind}_") for one in self._ids.values()) + 1
        return self._ids.setdefault(id, f"{kind}_{number}")


_MEASURED = {"duration", "pid"}
_STARTING = {
    "status",
    "pid",
    "plan_id",
    "plan_status",
    "started_at",
    "last_heartbeat",
    "progress",
    "resources",
    "budget",
}


def misfits(example: Any, answer: Any, where: str) -> list[str]:
    """Return where an answer lacks a field of the example, or has another type."""
    if isinstance(example, dict):
        if not isinstance(answer, dict):
            return [f"{where or 'it'} is not an object"]
        found = []
        for name, part in example.items():
            if name not in answer:
                found.append(f"{where}.{name} is missing")
            else:
                found += misfits(part, answer[name], f"{where}.{name}")
        return found
    if isinstance(example, list):
        if not isinstance(answer, list):
            return [f"{where} is not a list"]
        return [one for part in answer for one in misfits(example[0], part, f"{where}[]")] if example else []
    if answer is None:
        return [f"{where} is null"]
    if type(example) is not type(answer):
        return [f"{where} is {type(answer).__name__}, not {type(example).__name__}"]
    if isinstance(example, str) and (kind := re.match(r"(plan|ptask|run|pkt)_", example)):
        return [] if answer.startswith(kind.group(0)) else [f"{where} is {answer}"]
    return []


@pytest.mark.capability("C052")
@pytest.mark.capability("C101")
@pytest.mark.capability("C114")
@pytest.mark.capability("C116")
def test_the_answers_about_a_plan_are_as_their_contract_says(served: Served) -> None:
    served.play({"first": [[{"write": "first", "text": "1\n"}]]})
    assert served.run(served.plan("first", [task("first", "test -s first")])).code == 0
    project = served.row(Project).id
    (source,) = served.rows(Run, role=Role.IMPLEMENTER)
    served.play(
        {"plan": [[{"claim": block(PLAN)}]], "bonjour": [[{"write": "bonjour", "text": "bonjour\n"}]]}
    )
    served.serve()
    golden = Golden(served)
    packet = served.post(f"/api/inspection/run/{source.id}").json()
    assert (packet["packetId"][:4], packet["runId"]) == ("pkt_", source.id)
    made = served.post(f"/api/projects/{project}/plan?wait=60", {"packetId": packet["packetId"]})
    golden.check("POST /api/projects/{projectId}/plan", made.json())
    plan = made.json()["planId"]
    sent = served.post(f"/api/plans/{plan}/dispatch", {"parallel": True})
    golden.check("POST /api/plans/{planId}/dispatch", sent.json())
    eventually(lambda: served.row(Loop, plan_id=plan).state == "PAUSED", timeout=90)
    golden.check("POST /api/plans/{planId}/verify", served.post(f"/api/plans/{plan}/verify?wait=60").json())
    shown = served.get(f"/api/plans/{plan}")
    golden.check("GET /api/plans/{planId}", shown)
    listed = served.get(f"/api/projects/{project}/plans")
    golden.check("GET /api/projects/{projectId}/plans", listed)
    golden.wrong += misfits(
        {"plans": [SEEDS["POST /api/projects/{projectId}/plan"] | {"status": "VERIFIED"}]}, listed, "plans"
    )
    assert served.get("/api/plans", project=project) == listed
    run = served.get(f"/api/runs/{shown['verifyRunId']}")
    assert (run["taskRunId"], run["prompt"]) == (f"verify_{plan}", "Execute gate:all verification")
    assert (run["planId"], run["planTaskId"]) == (plan, None)
    printed = served.get(f"/api/runs/{run['runId']}/events")["events"]
    kinds = [one["type"] for one in printed if one["type"] != "log"]
    assert (kinds[0], sorted(kinds[1:])) == ("run_started", ["gate_judged", "run_ended"])
    assert [one["planTaskId"] for one in served.get(f"/api/plans/{plan}/runs")["runs"]].count(
        shown["tasks"][0]["taskId"]
    )
    told = [one["type"] for one in served.get("/api/events", plan=plan, limit=500)["events"]]
    activity = [one for one in told if one in SEEDS["enums"]["ActivityEventType"]]
    assert activity == ["plan_created", "plan_dispatched", "plan_completed", "plan_verified"]
    times = [shown[one] for one in ("createdAt", "executedAt", "completedAt", "verifiedAt")]
    assert times == sorted(times)
    assert not golden.wrong, "\n".join(golden.wrong)


@pytest.mark.capability("C098")
@pytest.mark.capability("C099")
@pytest.mark.capability("C100")
def test_the_answers_about_a_loop_are_as_their_contract_says(served: Served) -> None:
    gate = served.gate("agent")
    served.play(
        {
            "first": [[{"write": "first", "text": "1\n"}]],
            "bad": [[{"claim": "done"}], [{"write": "bad", "text": "1\n"}]],
            "slow": [[gate.step, {"write": "slow", "text": "1\n"}]],
        }
    )
    assert served.run(served.plan("first", [task("first", "test -s first")])).code == 0
    project = served.row(Project).id
    tasks = [task(key, f"test -s {key}", max_attempts=1) for key in ("bad", "slow")]
    path = served.plan("second", tasks)
    path.rename(served.repository / path.name)
    served.serve("--slots", "2")
    golden = Golden(served)
    made = served.post("/api/loops", {"project_id": project, "source": "second.yaml"}).json()
    golden.check("POST /api/loops", made)
    loop = f"/api/loops/{made['id']}"
    started = served.post(f"{loop}/start")
    assert started.status_code == 202
    golden.check("POST /api/loops/{id}/start", started.json(), moving=_STARTING)
    served.until_started("slow")
    eventually(lambda: served.get(loop)["last_heartbeat"], timeout=60)
    eventually(lambda: served.task("bad").status == "ERROR", timeout=60)
    eventually(lambda: served.get(loop)["current_tasks"] == ["slow"], timeout=60)
    running = served.get(loop)
    golden.check("GET /api/loops/{id}, running", running)
    golden.wrong += misfits(
        {**SEEDS["GET /api/loops/{id}"], "resources": {"max_concurrent": 1}}, running, "GET /api/loops/{id}"
    )
    assert "model" in running["resources"], "no model was chosen, and none is made up"
    health = served.get(f"{loop}/health")
    assert (health["live"], health["ready"], health["status"]) == (True, True, "running")
    golden.check("GET /api/loops/{id}/health", health)
    paused = served.post(f"{loop}/pause").json()
    golden.check("POST /api/loops/{id}/pause", paused)
    resumed = served.post(f"{loop}/resume").json()
    golden.check("POST /api/loops/{id}/resume", resumed)
    assert (paused["status"], resumed["status"]) == ("paused", "running")
    again = served.post(f"{loop}/tests/bad/reset").json()
    golden.check("POST /api/loops/{id}/tests/{testId}/reset", again, moving={"status", "runId"})
    assert {one["key"]: one["attempts"] for one in again["tasks"]}["bad"] == 0
    gate.let_go()
    eventually(lambda: served.get(loop)["status"] == "completed", timeout=90)
    listed = served.get("/api/loops")
    listed["loops"].sort(key=lambda one: one["name"])
    golden.check("GET /api/loops", listed)
    page = served.get(f"{loop}/transcripts")
    runs = page["runs"]
    verify = [one for one in runs if one["role"] == "verify"]
    golden.check("GET /api/loops/{id}/transcripts", {**page, "runs": verify})
    path = served.plan("third", [task("third", "test -s third")])
    path.rename(served.repository / path.name)
    idle = served.post("/api/loops", {"project_id": project, "source": "third.yaml"}).json()
    golden.check("POST /api/loops/{id}/stop", served.post(f"/api/loops/{idle['id']}/stop").json())
    assert {"implementer", "gate", "verify"} <= {one["role"] for one in runs}
    assert served.get(loop)["progress"] == {"passed": 2, "total": 2}
    assert not golden.wrong, "\n".join(golden.wrong)


def test_every_endpoint_status_and_event_of_the_contracts_exists() -> None:
    known = {
        f"{method.upper()} {re.sub(r'{.*?}', '{}', path)}"
        for path, methods in describe().openapi()["paths"].items()
        for method in methods
    }
    wanted = {re.sub(r"{.*?}", "{}", one) for one in SEEDS["endpoints"]}
    assert not wanted - known
    assert [one.value for one in PlanState] == SEEDS["enums"]["PlanState"]
    assert set(SEEDS["enums"]["ActivityEventType"]) <= CATALOGUE.keys()
