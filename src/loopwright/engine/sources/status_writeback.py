"""Write the status of a plan back to its source, in the source's own format: on the plan branch, or in place.

If git tracks the source, Loopwright writes to the plan branch, in separate commits. The user's copy gets the status
with the merge. Otherwise it writes to the file in place. If git tracks only some files, each goes where it belongs.
The rows are the truth. Loopwright writes the files until they agree, so an interrupted write loses nothing.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path, PurePosixPath

from loopwright.core.rows.model import Attempt, Loop, Plan, Project, Task
from loopwright.core.values.errors import (
    BadPlan,
    LoopwrightError,
    NotFound,
    NotTold,
    Refused,
    StaleVersion,
    StoreUnavailable,
)
from loopwright.core.values.globs import any_covers
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import ENDED_PLAN, LIVE_ATTEMPT, AttemptState, LoopState, PlanState
from loopwright.engine.branch.branch import foreign, landed_commits, own_commits, tip_of
from loopwright.engine.intake.progress import progress_of, progress_with
from loopwright.engine.rows.moves import need
from loopwright.engine.rows.source_marks import edited, keep_marks, marks_of
from loopwright.engine.rows.world import World, no_source
from loopwright.engine.rows.writeback_debts import Untold, is_settled, note_outcome, still_owed
from loopwright.engine.sources.source_heartbeats import show_sign
from loopwright.engine.sources.writeback_files import (
    Tracked,
    files_on,
    folder_of,
    in_checkout,
    is_readable,
    left_at_end,
    path_of,
    settled,
    untracked,
    written,
)
from loopwright.ports import (
    Candidate,
    Files,
    Mark,
    PlannedWork,
    Progress,
    Repository,
    Source,
    Tx,
)

log = logging.getLogger(__name__)

_UNDER_WAY = tuple(LIVE_ATTEMPT - {AttemptState.QUEUED})


def touched_books(project: Project, plan: Plan, attempt: Attempt) -> tuple[str, ...]:
    """Return the source files that an attempt changed, though only Loopwright writes them."""
    touched = [(PurePosixPath(project.subfolder) / path).as_posix() for path in attempt.touched]
    return tuple(path for path in plan.books if any_covers(touched, path))


async def booked(
    world: World,
    repository: Repository,
    project: Project,
    plan: Plan,
    task: Task,
    attempt: Attempt,
    candidate: Candidate,
) -> str:
    """Return the commit to move the branch to when a candidate lands: itself, or its status write-back on top."""
    if not plan.books or candidate.empty:
        return candidate.sha

    def look(tx: Tx) -> tuple[Loop, Progress]:
        loop = need(tx.get(Loop, plan.loop_id), "the loop")
        return loop, progress_with(tx, plan, task, attempt, candidate.sha)

    loop, progress = await world.store.read(look)
    subject = f"docs(plan): {task.key} is done in {candidate.sha[:7]}"
    tracked = Tracked(project, plan, loop)
    alone = replace(progress, phases=False)
    try:
        top, files = await _told_on(world, repository, tracked, candidate.sha, alone, subject)
    except BadPlan as broken:
        await _owe(world, tracked, progress, broken)
        return candidate.sha
    source = world.source(loop.source_kind)
    # The files include tasks that are about to land before this one, and so whether its phase has ended with it.
    if source is None or not files or not _has_ended(source.parse(files, loop.source_path), task.phase):
        return top
    ended = written(source, files, progress)
    return await _with_files(
        repository, tracked, top, ended, f"chore(plan): {task.phase} is finished", progress.at, {}
    )


def _has_ended(work: PlannedWork, phase: str) -> bool:
    marks = [one.mark for one in work.tasks if phase and one.phase == phase]
    return bool(marks) and all(mark in (Mark.DONE, Mark.SKIPPED) for mark in marks)


async def tell(world: World, plan_id: str) -> Untold | None:
    """Write a plan's status to its source; return why that could not be done, None if it was.

    A source that the user has broken is not touched, and git may refuse as well: the caller keeps the debt,
    and calls again.
    """
    loaded = await world.store.read(lambda tx: _load(tx, plan_id)) if world.source is not no_source else None
    if loaded is None:
        return None
    project, loop, plan, progress, rests = loaded
    source = world.source(loop.source_kind)
    if source is None or not source.has_status:
        return None
    place = Path(project.path) / loop.source_path
    if not Path(project.path).is_dir():
        # Moved, or on another machine only.
        reason = "the folder of its project is missing: if it comes back, Loopwright writes the plan's status into it"
        return Untold(reason=reason, gone=True)
    if not plan.books and plan.status in ENDED_PLAN and not place.exists():
        reason = (
            f"{loop.source_path} is missing: if it comes back, Loopwright writes how the plan ended into it"
        )
        return Untold(reason=reason, gone=True)
    behind: tuple[str, ...] = ()
    left: Untold | None = None
    try:
        if not plan.books and source.has_program(place):
            marks = {key: item.mark.value for key, item in progress.items.items()}
            behind = await world.store.transact("source.told", lambda tx: _note_also(tx, plan.id, marks))
            if not await asyncio.to_thread(source.write_to_program, place, progress):
                raise Refused("its program is not there any more", code="source_program_missing")
        elif not plan.books:
            await _tell_in_place(world, source, place, loop, plan, progress)
        else:
            tracked, repository = Tracked(project, plan, loop), world.repository(project)
            if rests and progress.rests:
                await _tell_on_branch(world, repository, tracked, progress)
            elif rests:
                await _tell_if_ours(world, repository, tracked, progress)
            await _tell_beside(world, repository, source, tracked, progress)
            if plan.status in ENDED_PLAN:
                left = await left_at_end(repository, source, tracked, progress)
            elif not rests:
                left = await _still_owed(world, repository, source, tracked, progress)
    except (StoreUnavailable, StaleVersion):
        raise
    except (LoopwrightError, OSError) as refused:
        log.warning("status not written back", extra={"source": loop.source_path, "why": str(refused)})
        items = refused.items if isinstance(refused, NotTold) else behind
        items = items or await world.store.read(lambda tx: _behind(tx, plan.id, progress))
        return Untold(reason=str(refused), items=items)
    await show_sign(world, project, loop, plan, progress)
    return left


async def tell_on_branch(world: World, repository: Repository, project: Project, plan: Plan) -> str:
    """Update a tracked source while nothing lands; return the tip of the branch.

    This is done when the plan begins, and before the complete gate, so the gate sees the final tree.
    """
    if plan.books:
        loop, progress = await world.store.read(
            lambda tx: (need(tx.get(Loop, plan.loop_id), "the loop"), progress_of(tx, plan))
        )
        tracked = Tracked(project, plan, loop)
        progress = replace(progress, final=plan.status is PlanState.VERIFYING)
        try:
            await _tell_on_branch(world, repository, tracked, progress)
        except BadPlan as broken:
            await _owe(world, tracked, progress, broken)
    return await tip_of(world, repository, plan)


def _load(tx: Tx, plan_id: str) -> tuple[Project, Loop, Plan, Progress, bool] | None:
    plan = tx.get(Plan, plan_id)
    if plan is None:
        return None
    loop = need(tx.get(Loop, plan.loop_id), "the loop")
    if loop.plan_id != plan.id:
        return None  # the source has another plan now
    # While something is about to land, that landing writes status; and a verified tree stays as it is. A tree that
    # the complete gate refused, or could not check, must not keep saying that all is done.
    running = plan.status is PlanState.RUNNING
    unverified = running and plan.completed_at is not None and loop.state is not LoopState.RUNNING
    stuck = running and plan.failed_tasks > 0
    rests = (stuck or unverified or plan.status is PlanState.FAILED) and not tx.find(
        Attempt, plan_id=plan.id, state=_UNDER_WAY, limit=1
    )
    project = need(tx.get(Project, plan.project_id), "the project")
    return project, loop, plan, progress_of(tx, plan, loop), rests


async def _tell_in_place(
    world: World, source: Source, place: Path, loop: Loop, plan: Plan, progress: Progress
) -> None:
    seen = source.files(place)
    told = written(source, seen, progress)
    theirs = await _theirs(world, source, loop, plan, seen, progress) if told else frozenset()
    if plan.status in ENDED_PLAN and theirs:
        # The user's edits since the end are new work, and stay as they are.
        items = {key: item for key, item in progress.items.items() if key not in theirs}
        told = written(source, seen, replace(progress, items=items))
    await _put(world, source, place, loop, plan, seen, told, theirs)


async def _theirs(
    world: World, source: Source, loop: Loop, plan: Plan, seen: Files, progress: Progress
) -> frozenset[str]:
    """Return the items that the user added or marked, and that the plan has not followed yet."""
    items = source.parse(seen, loop.source_path).tasks
    states = {key: item.mark for key, item in progress.items.items()}
    found = await world.store.read(lambda tx: edited(items, marks_of(tx, plan.id), states))
    return frozenset(item.key for item in found)


async def _tell_beside(
    world: World, repository: Repository, source: Source, tracked: Tracked, progress: Progress
) -> None:
    """Write the untracked files of a source in place, if git tracks its other files.

    Their status matches the branch: a checkpoint counts what the plan there says.
    """
    plan, loop = tracked.plan, tracked.loop
    place = Path(tracked.project.path) / loop.source_path
    seen = in_checkout(source, tracked)
    beside = untracked(plan, folder_of(plan, loop), seen)
    if beside:
        # Not `tip_of`: reading a finished or missing branch must not restore it.
        known = plan.result_sha if plan.status in ENDED_PLAN else None
        if plan.executed_at is None:
            known = plan.base_sha
        sha = known or await repository.tip(plan.branch)
        found = await files_on(repository, source, tracked, sha, seen, progress)
        told = written(source, found.current, progress)
        mine = {name: content for name, content in told.items() if name in beside}
        theirs = await _theirs(world, source, loop, plan, seen, progress)
        await _put(world, source, place, loop, plan, seen, mine, theirs)


async def _put(
    world: World,
    source: Source,
    place: Path,
    loop: Loop,
    plan: Plan,
    seen: Files,
    told: Files,
    theirs: frozenset[str],
) -> None:
    if not told:
        return
    if theirs and plan.status not in ENDED_PLAN:
        # The user's edits are followed first: writing now would make them look like Loopwright's own.
        if loop.state is LoopState.RUNNING:
            return
        hint = f"`loopwright resume {short_id(plan.id)}` takes it in"
        raise Refused(
            "you changed it, and the plan does not follow that while it rests",
            code="source_changed",
            hint=hint,
        )
    # Before it is written: after a kill, the content is then known to be Loopwright's.
    after = {task.key: task.mark.value for task in source.parse({**seen, **told}, loop.source_path).tasks}
    mine = {key: mark for key, mark in after.items() if key not in theirs}
    await world.store.transact("source.told", lambda tx: _note_told(tx, plan.id, mine, apart=theirs))
    folder = place if place.is_dir() else place.parent
    if not world.put_files(folder, told, seen):
        raise Refused(
            "another program saved it at this moment",
            code="source_being_saved",
            hint="Loopwright tries again by itself",
        )
    world.own_writes.note(folder, told)


def _note_told(tx: Tx, plan_id: str, told: Mapping[str, str], *, apart: frozenset[str] = frozenset()) -> None:
    """Record the marks that are about to be written; items in `apart` are the user's, and keep their known marks."""
    known = marks_of(tx, plan_id)
    marks = {key: [(known.get(key) or [mark])[0], mark] for key, mark in told.items()}
    marks |= {key: known[key] for key in apart if key in known}
    if marks != known:
        keep_marks(tx, plan_id, marks)


def _note_also(tx: Tx, plan_id: str, told: Mapping[str, str]) -> tuple[str, ...]:
    """Record what a program is about to be told; return the items whose status changed since the last time."""
    before = {key: last for key, (_, last) in marks_of(tx, plan_id).items()}
    _note_told(tx, plan_id, {**before, **told})
    return tuple(key for key, mark in told.items() if before.get(key) != mark)


def _behind(tx: Tx, plan_id: str, progress: Progress) -> tuple[str, ...]:
    known = marks_of(tx, plan_id)
    return tuple(
        key for key, item in progress.items.items() if key in known and known[key][1] != item.mark.value
    )


async def _owe(world: World, tracked: Tracked, progress: Progress, broken: BadPlan) -> None:
    """Record a debt for a branch that could not be updated; landings still land."""
    plan = tracked.plan
    log.warning("status not written back", extra={"source": tracked.loop.source_path, "why": str(broken)})

    def note(tx: Tx) -> None:
        left = Untold(reason=str(broken), items=_behind(tx, plan.id, progress))
        if not is_settled(tx, plan.id, left):
            note_outcome(tx, plan.id, left)

    await world.store.transact("source.debt", note)


async def _still_owed(
    world: World, repository: Repository, source: Source, tracked: Tracked, progress: Progress
) -> Untold | None:
    """Return the debt of a branch that continues: the next landing writes again, once the source can be read there."""
    owed = await world.store.read(lambda tx: still_owed(tx, tracked.plan.id))
    if owed is None or tracked.plan.executed_at is None:
        return owed
    sha = await repository.tip(tracked.plan.branch)
    found = await files_on(repository, source, tracked, sha, in_checkout(source, tracked), progress)
    return None if is_readable(source, found.current) else owed


async def _tell_on_branch(world: World, repository: Repository, tracked: Tracked, progress: Progress) -> None:
    tip = await tip_of(world, repository, tracked.plan)
    subject = "docs(plan): update the status"
    new, _ = await _told_on(world, repository, tracked, tip, progress, subject, rests=True)
    if new != tip and world.may_act():
        # The next round reports a change that was made in the meantime.
        await repository.advance(tracked.plan.branch, new=new, old=tip)


async def _tell_if_ours(world: World, repository: Repository, tracked: Tracked, progress: Progress) -> None:
    """Write to the branch of a plan that was not verified, if it is unchanged; the user's changes of it stay."""
    plan = tracked.plan
    try:
        tip = await repository.tip(plan.branch)
    except NotFound:
        return
    steps = await repository.steps(tip, since=plan.base_sha)
    own, landed = await world.store.read(lambda tx: (own_commits(tx, plan), landed_commits(tx, plan)))
    if not set(landed) <= {step.sha for step in steps} or await foreign(repository, plan, steps, own):
        return
    subject = "docs(plan): the plan is not verified"
    new, _ = await _told_on(world, repository, tracked, tip, progress, subject, rests=True)
    if new != tip and world.may_act():
        await repository.advance(plan.branch, new=new, old=tip)


async def _told_on(
    world: World,
    repository: Repository,
    tracked: Tracked,
    sha: str,
    progress: Progress,
    subject: str,
    *,
    rests: bool = False,
) -> tuple[str, Files]:
    """Return the commit with the progress on top of another, and its files.

    `rests` is whether the other is the tip, and nothing lands. Raises `BadPlan` if the source cannot be read
    there.
    """
    loop = tracked.loop
    source = world.source(loop.source_kind)
    if source is None or not source.has_status:
        return sha, {}
    found = await files_on(repository, source, tracked, sha, in_checkout(source, tracked), progress)
    # Tasks that land together are marked commit by commit: until then, anything that collides with a mark waits.
    current, seen = found.current, found.seen
    if rests:
        current, seen = await settled(world, repository, source, tracked, sha, found)
    told = {**current, **written(source, current, progress)}
    changed = {name: content for name, content in told.items() if found.committed.get(name) != content}
    return await _with_files(repository, tracked, sha, changed, subject, progress.at, seen), told


async def _with_files(
    repository: Repository,
    tracked: Tracked,
    sha: str,
    changed: Files,
    subject: str,
    at: datetime,
    seen: Files,
) -> str:
    """Return a commit with these source files on top of another: the other itself if none is tracked."""
    plan, folder = tracked.plan, folder_of(tracked.plan, tracked.loop)
    files = {path_of(folder, name): content for name, content in changed.items()}
    files = {path: content for path, content in files.items() if path in plan.books}
    if not files:
        return sha
    copies = {path_of(folder, name): content for name, content in seen.items()}
    return await repository.booked(sha, files, subject=subject, plan_id=plan.id, at=at, copies=copies)
