"""The record of each agent and model, as rows prove it."""

from dataclasses import replace
from typing import Any

import pytest
from tests.contracts.store import rows
from tests.integration.server.api import Api

from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.rows.model import Attempt, Plan, Role, Run, Task, VerdictRecord
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.ids import Kind
from loopwright.core.values.policy import Answering, Policy
from loopwright.core.values.states import AttemptState, RunState

OWN, OLD = "a" * 40, "b" * 40


class Work:
    """Rows of one plan."""

    def __init__(self, api: Api, plan: Plan) -> None:
        self.api = api
        self.plan = plan
        self.count = 0

    def insert(self, *made: Any) -> None:
        self.api.write(lambda tx: [tx.insert(one) for one in made])

    def task(self, kind: str = "") -> Task:
        self.count += 1
        made = rows.task(self.plan, key=f"new-{self.count}", type=kind)
        self.insert(made)
        return made

    def attempt(
        self, task: Task, state: AttemptState, *, by: str = "claude", cost: int | None = 0, **changes: Any
    ) -> Attempt:
        """Add an attempt of an agent; of a person if `by` is empty."""
        made = rows.attempt(task, state=state, agent=by or "claude", **changes)
        self.insert(made)
        if by:
            self.run(by, attempt=made, cost=cost)
        return made

    def run(self, by: str, *, attempt: Attempt | None = None, cost: int | None = 0) -> None:
        self.insert(
            Run(
                id=rows.new_id(Kind.RUN),
                plan_id=self.plan.id,
                attempt_id=attempt.id if attempt else None,
                role=Role.IMPLEMENTER if attempt else Role.REVIEWER,
                state=RunState.COMPLETE,
                agent=by,
                model=attempt.model if attempt else None,
                cost_micros=cost,
                created_at=rows.AT,
                started_at=rows.AT,
                ended_at=rows.AT,
            )
        )

    def verdict(self, tree: str, **changes: Any) -> None:
        found = Verdict(status=VerdictStatus.FAILED, **changes)
        self.insert(
            VerdictRecord(
                id=rows.new_id(Kind.VERDICT),
                plan_id=self.plan.id,
                tree=tree,
                gate_key=rows.new_id(Kind.VERDICT),
                run_id="run",
                verdict=found,
                created_at=rows.AT,
            )
        )


@pytest.mark.capability("C094")
def test_the_record_of_an_agent_counts_what_its_attempts_came_to(api: Api) -> None:
    project, loop, plan, _ = api.family()
    work = Work(api, plan)
    landed, rejected = AttemptState.LANDED, AttemptState.REJECTED
    work.attempt(work.task("fix"), landed, cost=50_000)
    slow = work.task("fix")
    work.attempt(slow, rejected, failure=Failure.GATE, cost=None)
    work.attempt(slow, landed, n=2, by="codex", model="o9", cost=7)
    back = work.task()
    work.attempt(back, landed)
    work.attempt(back, landed, n=2)
    work.attempt(work.task(), AttemptState.BROKEN, failure=Failure.CRASH)
    work.attempt(work.task(), landed, by="")
    work.attempt(work.task(), rejected, failure=Failure.REFUSAL, by="codex", model="o9")
    work.run("gemini", cost=3)
    asking = rows.plan(loop, policy=Policy(answer=Answering(role="planner", file="p", fence="json")))
    work.insert(asking)
    other = Work(api, asking)
    other.attempt(other.task(), landed, cost=20_000)

    claude, codex, gemini = api.get("/api/agents", project=project.id)["agents"]
    assert {
        one["taskType"]: (one["tasks"], one["firstPass"], one["attempts"]) for one in claude["types"]
    } == {
        "": (1, 0, 2),
        "fix": (2, 1, 2),
    }
    assert (claude["agent"], claude["tasks"], claude["firstPass"], claude["attempts"]) == ("claude", 3, 1, 4)
    assert round(claude["firstPassRate"], 3) == 0.333
    assert (claude["runs"], claude["costMicros"], claude["unknownCosts"]) == (6, 70_000, 1)
    assert (codex["model"], codex["tasks"], codex["attempts"], codex["refusals"]) == ("o9", 1, 2, 1)
    assert (gemini["tasks"], gemini["firstPassRate"], gemini["costMicros"]) == (0, None, 3)

    shown = api.page("/agents")
    assert '<td>fix</td><td class="num">2</td><td class="num">1</td><td class="num">50 %</td>' in shown
    assert "at least $0.07" in shown
    foreign, *_ = api.family(path="/there", name="there")
    token = api.make_token("there", projects=(foreign.id,))
    assert api.get("/api/agents", token=token)["agents"] == []


def test_only_what_the_witness_or_the_old_checks_rejected_counts_as_caught(api: Api) -> None:
    _, _, plan, _ = api.family()
    work = Work(api, plan)
    rejected = AttemptState.REJECTED
    files = GateFiles(pinned=("check.sh",), pinned_tree=OLD)
    work.attempt(work.task(), rejected, failure=Failure.GATE, candidate_tree=OWN)
    (one,) = api.get("/api/agents")["agents"]
    assert (one["caughtByWitness"], one["caughtByOldChecks"]) == (0, 0), "a failed check is not a trick"
    work.verdict("c" * 40, tampered=True)
    work.attempt(work.task(), rejected, failure=Failure.GATE, candidate_tree="c" * 40)
    work.verdict(OLD)
    work.attempt(work.task(), rejected, failure=Failure.GATE, candidate_tree=OWN, gate_files=files)
    work.attempt(work.task(), rejected, failure=Failure.CONTRADICTION, candidate_tree=OWN)
    # What a person allowed, or was fixed in time, landed.
    work.attempt(work.task(), AttemptState.LANDED, candidate_tree=OWN, gate_files=files)
    broken = replace(files, pinned_tree="d" * 40)
    work.verdict("d" * 40, broken=("test_a",))
    work.attempt(work.task(), rejected, failure=Failure.GATE, candidate_tree=OWN, gate_files=broken)
    (one,) = api.get("/api/agents")["agents"]
    assert (one["caughtByWitness"], one["caughtByOldChecks"]) == (1, 2)
    assert "1 with a manipulated test run, 2 that passed only with changed checks" in api.page("/agents")
