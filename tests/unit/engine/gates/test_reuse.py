"""gate:all on a tree that was judged before is answered from that run, except where a person asks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.cases import each_case
from tests.doubles import GATE, Home, Oracle, planned
from tests.unit.engine.gates.test_evaluation import OWN, ran
from tests.unit.engine.gates.test_unseen import verify

from loopwright.core.gates.verdicts import gate_key
from loopwright.core.rows.model import Leg, Role, Run, VerdictRecord
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import PlanState, RunState

PASSED = Verdict(status=VerdictStatus.PASSED, commands=(ran(OWN, 0), ran(GATE, 0)))
FLAKY = replace(PASSED, commands=(ran(OWN, 0), replace(ran(GATE, 1), flaky=("a",))))


class Reusing(Oracle):
    """A gate whose earlier runs can all be used again."""

    def __init__(self) -> None:
        super().__init__()
        self.reused: list[Path] = []

    def reuse(self, request: Any, source: Path, shown: Any, at: Any, /) -> bool:
        self.reused.append(source)
        return not shown


async def judged(verdict: Verdict, **run: Any) -> tuple[Home, Reusing, Leg]:
    """Return a home whose only task landed with this verdict on its tree, its gate, and the leg of gate:all."""
    gate = Reusing()
    home = await Home(gate=gate).launch()
    home.submit(planned("a", acceptance=(OWN,)))
    [leg] = await home.turn()
    home.hand.land(leg)
    plan = home.plan()
    tip = await home.repository.tip(plan.branch)
    tree = await home.repository.tree_of(tip)

    def insert(tx: Any) -> None:
        now = tx.now()
        same = {"host_id": home.world.me.host_id, "sandbox": home.world.sandbox().level.value}
        row = {"id": home.world.ids(Kind.RUN), "plan_id": plan.id, "role": Role.GATE, **same, **run}
        tx.insert(Run(state=RunState.COMPLETE, created_at=now, **row))
        key = gate_key((OWN, GATE))
        record = {"plan_id": plan.id, "tree": tree, "gate_key": key, "run_id": row["id"]}
        tx.insert(VerdictRecord(id=home.world.ids(Kind.VERDICT), verdict=verdict, created_at=now, **record))

    home.store.transact_sync("test", insert)
    [leg] = await home.turn()
    return home, gate, leg


def whole(home: Home) -> list[Run]:
    return home.all(Run, role=Role.VERIFY)


async def test_gate_all_is_answered_from_the_run_that_judged_the_same_tree() -> None:
    home, gate, leg = await judged(PASSED)
    await verify(home, leg)
    assert home.plan().status is PlanState.VERIFIED
    [run] = whole(home)
    [source] = home.all(Run, role=Role.GATE)
    assert run.reused_run_id == source.id
    assert gate.reused == [home.world.paths.run(source.id)]
    assert home.plan().verify_run_id == run.id


@each_case(
    "verdict, run",
    [
        (FLAKY, {}),
        (PASSED, {"host_id": "another"}),
        (PASSED, {"sandbox": "another"}),
        (PASSED, {"role": Role.BASELINE}),
    ],
)
async def test_it_runs_where_the_earlier_run_was_flaky_or_took_place_elsewhere(
    verdict: Verdict, run: dict[str, Any]
) -> None:
    home, gate, leg = await judged(verdict, **run)
    await verify(home, leg)
    assert gate.reused == []
    assert [one.reused_run_id for one in whole(home)] == [None]


async def test_it_runs_when_a_person_asks() -> None:
    home, gate, leg = await judged(PASSED)
    gate.answer = Verdict(status=VerdictStatus.FAILED)
    await verify(home, leg)
    assert home.plan().status is PlanState.FAILED
    gate.answer, gate.reused = PASSED, []
    home.clock.advance(60)
    await home.command("reverify", home.plan().id)
    [leg] = await home.turn()
    await verify(home, leg)
    assert home.plan().status is PlanState.VERIFIED
    assert gate.reused == []
