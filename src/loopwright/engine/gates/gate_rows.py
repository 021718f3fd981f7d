"""The rows of gate runs: begin one, find one that a dead worker left, record what it found."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loopwright.core.gates.flakes import FOLDERS
from loopwright.core.gates.gate_run import JUDGED
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Plan, Role, Run, VerdictRecord
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Verdict
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import RunState
from loopwright.engine.gates.judging import COMPLETE, Judging
from loopwright.engine.rows.moves import MACHINE, move_run
from loopwright.engine.rows.world import World
from loopwright.ports import Exit, Tx

_ROLES = (Role.GATE, Role.BASELINE)


def exit_facts(exit: Exit) -> dict[str, Any]:
    """Return what a run's row keeps of how its process ended."""
    # Both moments from one clock that was read once: their difference is the length of the run.
    started = {} if exit.started_at is None else {"started_at": exit.started_at}
    return {
        **started,
        "exit_code": exit.code,
        "ended_by": exit.ended_by,
        "ended_at": exit.ended_at,
        "output_sha256": exit.output_sha256,
        "output_bytes": exit.output_bytes,
        "files_sha256": exit.files_sha256,
    }


def _goes_on(world: World, run: Run) -> bool:
    """Return whether a gate run can continue: one that never started needs the sandbox that it was made for."""
    now = world.sandbox()
    own = (run.sandbox, run.sandbox_made_with) == (now.level.value, now.made_with)
    return own or world.keepers.look(world.paths.run(run.id)).state != "absent"


async def gate_run(world: World, ask: Judging, key: str) -> Run:
    """Find the gate run of exactly this tree that a dead worker left, or create it."""
    attempt_id = ask.attempt.id if ask.attempt else None
    label = f"{ask.role.value}_{ask.plan.id}" if ask.role in COMPLETE else ask.tree
    # Each task has its own held-out checks, and one tree has to pass all of them.
    about = f"judges {ask.tree} unseen {key[:12]}" if ask.unseen else f"judges {ask.tree}"
    stands_for_the_plan = ask.role in COMPLETE and not ask.unseen
    sandbox = world.sandbox()

    def create(tx: Tx) -> tuple[Run, list[Run]]:
        ask.still_mine(tx)
        open_runs = tx.find(
            Run, plan_id=ask.plan.id, attempt_id=attempt_id, role=ask.role, state=RunState.RUNNING
        )
        same = [
            run
            for run in open_runs
            if run.summary == about and run.host_id == world.me.host_id and _goes_on(world, run)
        ]
        stale = [run for run in open_runs if run not in same[:1]]
        for run in stale:
            move_run(tx, run, RunState.CANCELLED, ended_by="asked", summary="the tree to judge changed")
        if same:
            if stands_for_the_plan:
                # Begun for an earlier verification of the same tree that was broken off: now it is this one's.
                tx.update(Plan, ask.plan.id, verify_run_id=same[0].id)
            return same[0], stale
        run = Run(
            id=world.ids(Kind.RUN),
            plan_id=ask.plan.id,
            task_id=ask.attempt.task_id if ask.attempt else None,
            attempt_id=attempt_id,
            role=ask.role,
            state=RunState.QUEUED,
            label=label,
            summary=about,
            host_id=world.me.host_id,
            boot_id=world.me.boot_id,
            sandbox=sandbox.level.value,
            sandbox_made_with=sandbox.made_with,
            created_at=tx.now(),
        )
        tx.insert(run)
        if stands_for_the_plan:
            tx.update(Plan, ask.plan.id, verify_run_id=run.id)
        return move_run(tx, run, RunState.RUNNING), stale

    run, stale = await world.store.transact(f"{ask.role.value}.start", create)
    await end_all(world, stale)
    return run


def break_off(tx: Tx, attempt: Attempt) -> list[Run]:
    """Close the gate runs of an attempt that was stopped before their end; return them."""
    found = tx.find(Run, attempt_id=attempt.id, role=_ROLES, state=RunState.RUNNING)
    return [
        move_run(tx, run, RunState.CANCELLED, ended_by="asked", summary="the gate was interrupted")
        for run in found
    ]


async def end_all(world: World, runs: Sequence[Run]) -> None:
    """End the processes of gate runs that have ended in the rows, second runs included."""
    for run in runs:
        for directory in (world.paths.run(run.id) / folder for folder in ("", *FOLDERS)):
            if world.keepers.look(directory).state == "alive":
                await world.keepers.end(directory, polite=False)


def record_verdict(
    tx: Tx,
    world: World,
    ask: Judging,
    run: Run,
    key: str,
    verdict: Verdict,
    exit: Exit,
    failure: Failure | None,
) -> VerdictRecord | None:
    ask.still_mine(tx)
    ended = RunState.COMPLETE if verdict.status in JUDGED else RunState.ERROR
    move_run(
        tx,
        run,
        ended,
        verdict=verdict,
        summary=verdict.reason,
        failure=failure,
        **exit_facts(exit),
    )
    tx.append(
        happened(
            "gate_judged",
            MACHINE,
            plan=ask.plan,
            attempt=ask.attempt,
            run=run,
            tree=ask.tree,
            status=verdict.status.value,
            checks=[{"name": c.name, "status": c.status.value} for c in verdict.checks[:50]],
            path=_told_path(world, run),
        )
    )
    # What could not be judged is judged again once it can be.
    if verdict.status not in JUDGED:
        return None
    record = VerdictRecord(
        id=world.ids(Kind.VERDICT),
        plan_id=ask.plan.id,
        tree=ask.tree,
        gate_key=key,
        run_id=run.id,
        verdict=verdict,
        created_at=tx.now(),
    )
    tx.insert(record)
    return record


def _told_path(world: World, run: Run) -> str:
    return str(Path(world.paths.run(run.id)).relative_to(world.paths.root))
