"""Clean up after an attempt: a workspace is removed only after its work is proven to be kept elsewhere."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from loopwright.core.rows.events import happened
from loopwright.core.rows.model import AUTHORS, Attempt, Plan, Project, Role, Run, Task
from loopwright.core.values.errors import CannotRun, GitFailed, Unrecordable, UserError
from loopwright.core.values.states import AttemptState, RunState
from loopwright.engine.attempt.reviewing import remove_tree
from loopwright.engine.gates.gate_runs import break_off, end_all
from loopwright.engine.rows.moves import MACHINE, need
from loopwright.engine.rows.ref_names import attempt_ref, commit_subject, trailers
from loopwright.engine.rows.world import World
from loopwright.ports import Repository, Tx

log = logging.getLogger(__name__)

_LONGEST: Final = 500
"""The longest reason that is stored, because the column has an index."""


async def tidy_attempt(world: World, project: Project, plan: Plan, attempt: Attempt) -> None:
    """End what still runs, save what is left, and remove the workspace of an ended attempt."""
    if attempt.cleaned_at is not None:
        return
    repository = world.repository(project)
    if attempt.workspace is None:
        await _forget_reviews(world, repository, attempt)
        await _mark(world, plan, attempt, attempt.tip_sha)
        return
    path = Path(attempt.workspace)
    task, runs = await world.store.read(
        lambda tx: (need(tx.get(Task, attempt.task_id), "the task"), tx.find(Run, attempt_id=attempt.id))
    )
    tip = attempt.tip_sha
    try:
        await _end(world, runs)
        # Again, also after an earlier snapshot: a leg that woke up may have continued to work. If no agent
        # ever ran, there is no work, and perhaps only a partial workspace.
        worked = any(one.role in AUTHORS and one.started_at for one in runs)
        if (
            worked
            and attempt.state is not AttemptState.LANDED
            and attempt.base_sha
            and repository.has_workspace(path)
        ):
            worked_by = [one for one in runs if one.role in AUTHORS]
            run = next((one for one in worked_by if one.id == attempt.run_id), worked_by[-1])
            try:
                saved = await repository.snapshot(
                    path,
                    base_sha=attempt.base_sha,
                    ref=attempt_ref(attempt),
                    subject=commit_subject(task),
                    trailers=trailers(attempt, run),
                    at=attempt.updated_at,
                )
                tip = saved.sha
            except Unrecordable:
                await repository.archive(path, world.paths.archive(attempt.id))
        if not await _kept(world, project, plan, attempt, tip):
            raise GitFailed(f"commit {tip} is not proven to be in {plan.branch}")
        await repository.remove_workspace(path)
        world.forget_sessions(world.paths.user(attempt.id))
        for review_id in {one.label for one in runs if one.role is Role.REVIEWER}:
            await remove_tree(world, repository, review_id)
    except (CannotRun, GitFailed, UserError, OSError) as trouble:
        # One attempt that cannot be cleaned up, perhaps because its repository is gone, must not hold up the others.
        log.warning("workspace kept", extra={"attempt": attempt.id, "why": str(trouble)})
        await _quarantine(world, plan, attempt, str(trouble))
        return
    await _mark(world, plan, attempt, tip)


async def _forget_reviews(world: World, repository: Repository, attempt: Attempt) -> None:
    """Remove the trees in which reviewers read the user's own work, which had no workspace."""
    runs = await world.store.read(lambda tx: tx.find(Run, attempt_id=attempt.id, role=Role.REVIEWER))
    await _end(world, runs)
    for label in {run.label for run in runs if run.host_id == world.me.host_id}:
        await remove_tree(world, repository, label)


async def _kept(world: World, project: Project, plan: Plan, attempt: Attempt, tip: str | None) -> bool:
    """Return whether the work is kept: in the branch once landed, else pinned by its ref."""
    if attempt.state is not AttemptState.LANDED or attempt.candidate_sha is None or tip is None:
        return True  # `snapshot` pinned it, or nothing was ever made
    repository = world.repository(project)
    return await repository.proven(tip, await repository.tip(plan.branch))


async def end_cancelled_gates(world: World) -> None:
    """End gates of whole plans that still run here although no leg waits for them."""
    await end_all(world, await world.store.read(lambda tx: cancelled_gates(tx, world)))


def cancelled_gates(tx: Tx, world: World) -> list[Run]:
    """Return the gates of whole plans that were cancelled here."""
    whole = (Role.VERIFY, Role.EVALUATION, Role.FINISH, Role.GATE)
    host = world.me.host_id
    return tx.find(Run, role=whole, attempt_id=None, state=RunState.CANCELLED, host_id=host)


async def _end(world: World, runs: Sequence[Run]) -> None:
    """End whatever is left of the runs of this machine."""
    if here := [run for run in runs if run.host_id == world.me.host_id]:
        await end_all(world, here)
        await world.keepers.sweep(*(run.id for run in here))
        for run in here:
            # What a leg has read is in the rows. Unread output is as the agent wrote it, perhaps with secrets.
            world.forget_noted(world.paths.run(run.id))


async def _mark(world: World, plan: Plan, attempt: Attempt, tip: str | None) -> None:
    def cleaned(tx: Tx) -> None:
        # A gate that a killed worker had begun is not needed if another tree's verdict is already known.
        break_off(tx, attempt)
        row = tx.update(Attempt, attempt.id, cleaned_at=tx.now(), tip_sha=tip)
        tx.append(happened("attempt_cleaned", MACHINE, plan=plan, attempt=row, tip=tip))

    await world.store.transact("attempt.cleaned", cleaned)


async def _quarantine(world: World, plan: Plan, attempt: Attempt, why: str) -> None:
    def quarantined(tx: Tx) -> None:
        break_off(tx, attempt)
        row = tx.update(Attempt, attempt.id, cleaned_at=tx.now(), quarantined=why[:_LONGEST])
        tx.append(
            happened(
                "attempt_quarantined",
                MACHINE,
                plan=plan,
                attempt=row,
                workspace=attempt.workspace,
                reason=why,
            )
        )

    await world.store.transact("attempt.quarantined", quarantined)
