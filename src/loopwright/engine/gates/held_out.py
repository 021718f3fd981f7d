"""Run the complete gate with the held-out checks of all tasks: the result has to pass them too."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from loopwright.core.gates.gates import with_setup
from loopwright.core.gates.held_out import Unseen, broken_in, held_commands, unseen_of
from loopwright.core.gates.verdicts import combine, gate_key
from loopwright.core.rows.model import Plan, Run, Task, VerdictRecord
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.engine.gates.gate_runs import judge
from loopwright.engine.gates.judging import Judging
from loopwright.engine.rows.moves import need
from loopwright.engine.rows.world import World
from loopwright.ports import Repository, Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """The results of the complete gate on a tree."""

    verdict: Verdict
    """The verdict that counts: on the visible commands, or on held-out checks if those failed."""
    record: VerdictRecord | None = None
    """The record of the first of these."""
    unseen: tuple[str, ...] = ()
    """The runs of held-out checks."""
    is_excused: bool = False
    """Whether something is left open although it passed."""
    broken: tuple[Unseen, ...] = ()
    """The held-out checks that failed."""
    told: str = ""
    """Its checks and their tasks, by name."""
    evidence: str = ""
    """All that an agent may learn about it."""


async def judge_whole(
    world: World, repository: Repository, ask: Judging, tasks: Sequence[Task], interrupt: asyncio.Event
) -> Whole:
    """Run the complete gate, and if it passes, the held-out checks of these tasks."""
    record, verdict = await judge(world, repository, ask, interrupt)
    excused = verdict.is_excused
    if verdict.status is not VerdictStatus.PASSED:
        return Whole(verdict=verdict, record=record, is_excused=excused)
    broken: list[tuple[Unseen, Verdict]] = []
    runs: list[str] = []
    for one in unseen_of(tasks):
        held, found = await _judged(world, repository, ask, one, interrupt)
        runs += [held.run_id] if held is not None else []
        if found.status is VerdictStatus.FAILED:
            broken.append((one, found))
        elif found.status is not VerdictStatus.PASSED:
            return Whole(verdict=found, record=record)
        excused = excused or found.is_excused
    if not broken:
        return Whole(verdict=verdict, record=record, unseen=tuple(runs), is_excused=excused)
    told, evidence = broken_in(broken)
    failed = combine(found for _, found in broken)
    return Whole(
        verdict=replace(failed, reason=f"held-out checks do not pass on the result: {told}"),
        record=record,
        unseen=tuple(runs),
        broken=tuple(one for one, _ in broken),
        told=told,
        evidence=evidence,
    )


async def _judged(
    world: World, repository: Repository, ask: Judging, one: Unseen, interrupt: asyncio.Event
) -> tuple[VerdictRecord | None, Verdict]:
    """Run one task's held-out checks. They have no baseline, because no earlier tree had their files."""
    commands = held_commands(one.held)
    key = gate_key(with_setup(ask.plan, commands))
    known = await world.store.read(lambda tx: _known(tx, ask, key))
    if known is not None:
        return known, known.verdict
    unseen = replace(
        ask, commands=commands, unseen=True, files=one.files, before=None, exempt=(), rewritten=()
    )
    return await judge(world, repository, unseen, interrupt)


def _known(tx: Tx, ask: Judging, key: str) -> VerdictRecord | None:
    """Return the verdict on this exact tree that counts: a pass, or the result from before a crash."""
    plan = need(tx.get(Plan, ask.plan.id), "the plan")
    begun = tx.get(Run, plan.verify_run_id) if plan.verify_run_id else None
    records = tx.find(VerdictRecord, plan_id=plan.id, tree=ask.tree, gate_key=key, order_by=("created_at",))
    counting = [
        one
        for one in records
        if one.verdict.status is VerdictStatus.PASSED
        or (begun is not None and one.created_at >= begun.created_at)
    ]
    return counting[-1] if counting else None
