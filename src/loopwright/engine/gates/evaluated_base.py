"""A baseline from the plan's evaluation: the gates need not run on the base commit again."""

from dataclasses import dataclass

from loopwright.core.gates.gates import Commands
from loopwright.core.gates.verdicts import gate_key
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Plan, Role, Run, VerdictRecord
from loopwright.core.values.containment import MadeWith
from loopwright.core.values.findings import Verdict
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import RunState
from loopwright.engine.gates.gate_runs import exit_facts
from loopwright.engine.rows.moves import MACHINE, move_run
from loopwright.ports import Exit, Ids, Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBase:
    """A gate run on the tree that a plan starts from; its files are beside those of the plan's own runs."""

    run_id: str
    tree: str
    commands: Commands
    verdict: Verdict
    exit: Exit
    sandbox: str
    sandbox_made_with: MadeWith | None = None
    host_id: str
    boot_id: str
    red: tuple[str, ...] = ()
    """Acceptance commands that failed on that tree."""


def take_over(tx: Tx, ids: Ids, plan: Plan, known: KnownBase) -> None:
    """Make it a run of the plan, with its verdict: the first attempt uses it as its baseline."""
    began = known.exit.started_at or known.exit.ended_at
    run = Run(
        id=known.run_id,
        plan_id=plan.id,
        role=Role.BASELINE,
        state=RunState.QUEUED,
        label=known.tree,
        sandbox=known.sandbox,
        sandbox_made_with=known.sandbox_made_with,
        host_id=known.host_id,
        boot_id=known.boot_id,
        created_at=began,
    )
    tx.insert(run)
    run = move_run(tx, run, RunState.RUNNING, summary="taken over from the evaluation of the plan")
    move_run(tx, run, RunState.COMPLETE, verdict=known.verdict, **exit_facts(known.exit))
    tx.append(
        happened(
            "gate_judged",
            MACHINE,
            plan=plan,
            run=run,
            tree=known.tree,
            status=known.verdict.status.value,
            checks=[{"name": one.name, "status": one.status.value} for one in known.verdict.checks[:50]],
            path=f"runs/{known.run_id}",
        )
    )
    tx.insert(
        VerdictRecord(
            id=ids(Kind.VERDICT),
            plan_id=plan.id,
            tree=known.tree,
            gate_key=gate_key(known.commands),
            run_id=known.run_id,
            verdict=known.verdict,
            created_at=tx.now(),
        )
    )
