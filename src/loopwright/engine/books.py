"""Telling a source how its plan stands, in its own format: on the plan's branch, or in place.

A source that git tracks is told on the plan branch, by commits of its own: the user's copy stays as it is, and comes
with the merge. One that git does not track is told where it is. Either way the rows are the truth; the files are told
again and again until they agree, so nothing is lost when that is interrupted.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import cast

from loopwright.core.errors import BadPlan, UserError
from loopwright.core.globs import any_covers
from loopwright.core.model import Attempt, Loop, Plan, Project, Task
from loopwright.core.states import LIVE_ATTEMPT, AttemptState, PlanState
from loopwright.engine.branch import tip_of
from loopwright.engine.marks import keep_marks, marks_of
from loopwright.engine.moves import need
from loopwright.engine.progress import progress_of, progress_with
from loopwright.engine.signs import show_sign
from loopwright.engine.world import World, no_source
from loopwright.ports import (
    Candidate,
    Files,
    Mark,
    Progress,
    Repository,
    Source,
    TellingSource,
    Tx,
    WritingSource,
)

log = logging.getLogger(__name__)

_UNDER_WAY = tuple(LIVE_ATTEMPT - {AttemptState.QUEUED})


@dataclass(frozen=True, slots=True)
class _Tracked:
    """A source that git tracks, and the plan that it became."""

    project: Project
    plan: Plan
    loop: Loop


def writes(source: Source) -> bool:
    """Say whether a source's format has a place for its status."""
    return hasattr(source, "written")


def folder_of(plan: Plan, loop: Loop) -> str:
    """Return the folder of a tracked source, relative to the repository; empty for its top."""
    path = PurePosixPath(loop.source_path)
    folder = path.parent if loop.source_path in plan.books else path
    return "" if folder == PurePosixPath() else folder.as_posix()


def touched_books(project: Project, plan: Plan, attempt: Attempt) -> tuple[str, ...]:
    """Return the files of the source that an attempt changed, though only the harness writes there."""
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
    """Return the commit to move the branch to when a candidate lands: itself, or what is told of it on top."""
    if not plan.books or candidate.empty:
        return candidate.sha

    def look(tx: Tx) -> tuple[Loop, Progress]:
        loop = need(tx.get(Loop, plan.loop_id), "the loop")
        return loop, progress_with(tx, plan, task, attempt, candidate.sha)

    loop, progress = await world.store.read(look)
    subject = f"docs(plan): {task.key} is done in {candidate.sha[:7]}"
    tracked = _Tracked(project, plan, loop)
    top, files = await _told_on(world, repository, tracked, candidate.sha, progress, subject)
    if task.phase and _has_ended(world, loop, files, task.phase):
        subject = f"chore(plan): {task.phase} is finished"
        top = await repository.booked(top, {}, subject=subject, plan_id=plan.id, at=progress.at)
    return top


def _has_ended(world: World, loop: Loop, files: Files, phase: str) -> bool:
    """Say whether all of a phase is done, by the files: they know of those that are about to land before this one."""
    source = world.source(loop.source_kind)
    if source is None or not files or not _is_readable(source, files):
        return False
    mine = [task.mark for task in source.parse(files, loop.source_path).tasks if task.phase == phase]
    return bool(mine) and all(mark is Mark.DONE for mark in mine)


async def tell(world: World, plan_id: str) -> str:
    """Bring a source up to date with its plan; return why that could not be done, nothing when it could.

    One that a person has broken is left alone, and told later.
    """
    loaded = await world.store.read(lambda tx: _load(tx, plan_id)) if world.source is not no_source else None
    if loaded is None:
        return ""
    project, loop, plan, progress, rests = loaded
    source = world.source(loop.source_kind)
    if source is None or not writes(source):
        return ""
    place = Path(project.path) / loop.source_path
    try:
        if not plan.books and isinstance(source, TellingSource) and source.speaks(place):
            marks = {key: item.mark.value for key, item in progress.items.items()}
            await world.store.transact("source.told", lambda tx: _note_also(tx, plan.id, marks))
            await asyncio.to_thread(source.told, place, progress)
        elif not plan.books:
            await _tell_in_place(world, cast("WritingSource", source), place, loop, plan, progress)
        elif rests:
            await _tell_on_branch(world, world.repository(project), _Tracked(project, plan, loop), progress)
    except UserError as refused:
        log.warning("source not told", extra={"source": loop.source_path, "why": str(refused)})
        return str(refused)
    await show_sign(world, project, loop, plan, progress)
    return ""


async def tell_on_branch(world: World, repository: Repository, project: Project, plan: Plan) -> str:
    """Bring a tracked source up to date while nothing lands; return the tip of the branch.

    That is when the plan begins, and before the complete gate: so the gate sees the tree that stays.
    """
    if plan.books:
        loop, progress = await world.store.read(
            lambda tx: (need(tx.get(Loop, plan.loop_id), "the loop"), progress_of(tx, plan))
        )
        await _tell_on_branch(world, repository, _Tracked(project, plan, loop), progress)
    return await tip_of(world, repository, plan)


def _load(tx: Tx, plan_id: str) -> tuple[Project, Loop, Plan, Progress, bool] | None:
    plan = tx.get(Plan, plan_id)
    if plan is None:
        return None
    loop = need(tx.get(Loop, plan.loop_id), "the loop")
    if loop.plan_id != plan.id:
        return None  # the source has another plan now
    # While something is on its way, its landing tells; and what was verified stays as it is.
    stuck = plan.status is PlanState.RUNNING and plan.failed_tasks > 0
    rests = stuck and not tx.find(Attempt, plan_id=plan.id, state=_UNDER_WAY, limit=1)
    return need(tx.get(Project, plan.project_id), "the project"), loop, plan, progress_of(tx, plan), rests


async def _tell_in_place(
    world: World, source: WritingSource, place: Path, loop: Loop, plan: Plan, progress: Progress
) -> None:
    seen = source.files(place)
    told = source.written(seen, progress)
    if not told:
        return
    # Before it is written: what stands there after a kill is then known to be ours.
    after = {task.key: task.mark.value for task in source.parse({**seen, **told}, loop.source_path).tasks}
    await world.store.transact("source.told", lambda tx: _note_told(tx, plan.id, after))
    folder = place if place.is_dir() else place.parent
    if world.put_files(folder, told, seen):
        world.own_writes.note(folder, told)


def _note_told(tx: Tx, plan_id: str, told: Mapping[str, str]) -> None:
    known = marks_of(tx, plan_id)
    marks = {key: [(known.get(key) or [mark])[0], mark] for key, mark in told.items()}
    if marks != known:
        keep_marks(tx, plan_id, marks)


def _note_also(tx: Tx, plan_id: str, told: Mapping[str, str]) -> None:
    before = {key: last for key, (_, last) in marks_of(tx, plan_id).items()}
    _note_told(tx, plan_id, {**before, **told})


async def _tell_on_branch(
    world: World, repository: Repository, tracked: _Tracked, progress: Progress
) -> None:
    tip = await tip_of(world, repository, tracked.plan)
    new, _ = await _told_on(world, repository, tracked, tip, progress, "docs(plan): how the plan stands")
    if new != tip and world.may_act():
        # Somebody who moved it meanwhile is told of by the next round.
        await repository.advance(tracked.plan.branch, new=new, old=tip)


async def _told_on(
    world: World, repository: Repository, tracked: _Tracked, sha: str, progress: Progress, subject: str
) -> tuple[str, Files]:
    """Return the commit that tells the progress on top of another, and the files as they are there."""
    plan, loop = tracked.plan, tracked.loop
    source = world.source(loop.source_kind)
    if source is None or not writes(source):
        return sha, {}
    folder = folder_of(plan, loop)
    found = inside(await repository.files_at(sha, plan.books), folder)
    try:
        current = {**found, **await _with_edits(repository, source, tracked, found)}
        told = {**current, **cast("WritingSource", source).written(current, progress)}
    except BadPlan as broken:
        log.warning("source not told", extra={"source": loop.source_path, "why": str(broken)})
        return sha, {}
    changed = {name: content for name, content in told.items() if found.get(name) != content}
    files = {f"{folder}/{name}".lstrip("/"): content for name, content in changed.items()}
    files = {path: content for path, content in files.items() if path in plan.books}
    if not files:
        return sha, told
    booked = await repository.booked(sha, files, subject=subject, plan_id=plan.id, at=progress.at)
    return booked, told


async def _with_edits(
    repository: Repository, source: Source, tracked: _Tracked, found: Files
) -> dict[str, bytes]:
    """Return the files that people have changed in their own copy since the plan began, with those changes.

    Nothing while what they have there cannot be read: they may be in the middle of it, and work goes on meanwhile.
    """
    try:
        theirs = source.files(Path(tracked.project.path) / tracked.loop.source_path)
    except (BadPlan, OSError):
        return {}
    start = await repository.files_at(tracked.plan.base_sha, tracked.plan.books)
    base = inside(start, folder_of(tracked.plan, tracked.loop))
    merged = {}
    for name, content in theirs.items():
        if name in base and name in found and content not in (base[name], found[name]):
            both = await repository.merged_file(base[name], found[name], content)
            if both is not None:
                merged[name] = both
    return merged if _is_readable(source, {**found, **merged}) else {}


def _is_readable(source: Source, files: Files) -> bool:
    try:
        source.parse(files, "the source")
    except BadPlan:
        return False
    return True


def inside(files: Mapping[str, bytes], folder: str) -> Files:
    """Return files by the names that a source in that folder knows them by."""
    start = f"{folder}/" if folder else ""
    return {path.removeprefix(start): content for path, content in files.items()}
