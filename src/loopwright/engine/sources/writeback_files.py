"""The tracked files of a source as they are on a commit, with the user's changes from their own copy."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from loopwright.core.plans.item_identity import is_same_item
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Loop, Plan, Project
from loopwright.core.values.errors import BadPlan, NotFound
from loopwright.engine.branch.branch import foreign, own_commits
from loopwright.engine.rows.moves import MACHINE
from loopwright.engine.rows.source_marks import SETTLED
from loopwright.engine.rows.world import World
from loopwright.engine.rows.writeback_debts import Untold
from loopwright.ports import Files, Mark, Progress, Repository, Source, Tx


@dataclass(frozen=True, slots=True)
class Tracked:
    """A source that git tracks, and the plan that it became."""

    project: Project
    plan: Plan
    loop: Loop


def folder_of(plan: Plan, loop: Loop) -> str:
    """Return the folder of a tracked source, relative to the repository; empty for its top."""
    path = PurePosixPath(loop.source_path)
    is_folder = any(path in PurePosixPath(book).parents for book in plan.books)
    folder = path if is_folder else path.parent
    return "" if folder == PurePosixPath() else folder.as_posix()


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a source that git tracks, at least in part."""

    committed: Files
    current: Files
    """With the user's changes from their own copy, and with untracked files."""
    theirs: Files
    """Changes of the user that conflict with the branch: the files with the user's changes alone."""
    places: Mapping[str, int]
    """The line of each conflict, as numbered in the user's copy."""
    seen: Files
    """The user's copy, as far as `current` has its changes."""
    copies: Files
    """The user's copy of those in `theirs`."""


async def files_on(
    repository: Repository, source: Source, tracked: Tracked, sha: str, theirs: Files, progress: Progress
) -> Found:
    """Return a source as it is on a commit; `theirs` is the user's own copy."""
    folder = folder_of(tracked.plan, tracked.loop)
    committed = inside(await repository.files_at(sha, tracked.plan.books), folder)
    beside = untracked(tracked.plan, folder, theirs)
    found = {**beside, **committed}
    base_sha = tracked.plan.base_sha
    start = inside(await repository.files_at(base_sha, tracked.plan.books), folder)
    differing = [
        name
        for name, content in theirs.items()
        if name in start and name in committed and content != committed[name]
    ]
    # A reverted change counts from when their copy was last read, not from when the plan began.
    last = inside(await repository.copies(sha, since=base_sha), folder) if differing else {}
    start = {**start, **{name: content for name, content in last.items() if name in start}}
    edited = [name for name in differing if theirs[name] != start[name]]
    as_it_is = Found(committed, found, {}, {}, last, {})
    if not edited:
        return as_it_is
    # Each with the same status, so that Loopwright's own status does not count as a change.
    told = _with_status(source, theirs, progress)
    if told is None:
        return as_it_is
    # A file that cannot be read has no status: it is repaired from the user's version, as far as both merge.
    base, ours = (_with_status(source, side, progress) or side for side in ({**beside, **start}, found))
    merges = {name: await repository.merged_file(base[name], ours[name], told[name]) for name in edited}
    merged = {name: one.content for name, one in merges.items() if one.content is not None}
    left = {name: one.line for name, one in merges.items() if one.content is None}
    current = {**found, **merged}
    if not is_readable(source, current):
        return as_it_is
    places = {name: _line_in(theirs[name], told[name], line) for name, line in left.items()}
    seen = {**last, **{name: theirs[name] for name in merged}}
    beyond = {name: told[name] for name in left}
    return Found(committed, current, beyond, places, seen, {name: theirs[name] for name in left})


def written(source: Source, files: Files, progress: Progress) -> Files:
    """Return the files that change when the status is written into them.

    An item whose title differs from its task's is not the item that was worked on: it is never marked as
    done, and its tick is not removed.
    """
    found = {item.key: item for item in source.parse(files, "the source").tasks}
    items = {
        key: item
        for key, item in progress.items.items()
        if not item.title
        or key not in found
        or Mark.DONE not in (item.mark, found[key].mark)
        or is_same_item(item.title, found[key].title)
    }
    return source.written(files, replace(progress, items=items))


def _with_status(source: Source, files: Files, progress: Progress) -> Files | None:
    try:
        return {**files, **written(source, files, progress)}
    except BadPlan:
        return None


def _line_in(theirs: bytes, told: bytes, line: int) -> int:
    """Return the line in the user's file for a line in the file with our status."""
    lines, words = theirs.splitlines(), told.splitlines()[line - 1 : line]
    places = [at for at, one in enumerate(lines, start=1) if [one] == words]
    return min(places, key=lambda at: abs(at - line), default=min(line, len(lines)))


def in_checkout(source: Source, tracked: Tracked) -> Files:
    """Return the files in the user's own copy; none while they cannot be read, because the user may be editing them."""
    place = Path(tracked.project.path) / tracked.loop.source_path
    try:
        # The output of the source's program is not a file of the commit.
        return {} if source.has_program(place) else source.files(place)
    except (BadPlan, OSError):
        return {}


def untracked(plan: Plan, folder: str, files: Files) -> Files:
    """Return the source files that git does not track."""
    return {name: content for name, content in files.items() if path_of(folder, name) not in plan.books}


def path_of(folder: str, name: str) -> str:
    """Return the path in the repository of a file that a source in this folder names."""
    return posixpath.normpath(posixpath.join(folder, name))


async def settled(
    world: World, repository: Repository, source: Source, tracked: Tracked, tip: str, found: Found
) -> tuple[Files, Files]:
    """Return the files with conflicting changes of the user on the branch: the user's latest version counts there.

    The second value is what is then read from the user's copy. Only Loopwright writes these files on the
    branch, so a conflict is an earlier change of the user, unless another commit changed them. Then the user
    has to decide.
    """
    plan = tracked.plan
    if not found.theirs:
        return found.current, found.seen
    steps = await repository.steps(tip, since=plan.base_sha)
    own = await world.store.read(lambda tx: own_commits(tx, plan))
    others = [one.sha for one in await foreign(repository, plan, steps, own)]
    changed = {
        path
        for step in steps
        if step.sha in others
        for path in await repository.changed(step.parent, step.sha)
    }
    folder = folder_of(plan, tracked.loop)
    held = {name for name in found.theirs if path_of(folder, name) in changed}
    await _tell_conflicts(world, tracked, {name: found.places[name] for name in held})
    current = {**found.current, **{name: one for name, one in found.theirs.items() if name not in held}}
    if not is_readable(source, current):
        return found.current, found.seen
    return current, {
        **found.seen,
        **{name: one for name, one in found.copies.items() if name not in held},
    }


async def _tell_conflicts(world: World, tracked: Tracked, conflicts: Mapping[str, int]) -> None:
    """Report once for each place what the user has to merge by hand."""
    plan, folder = tracked.plan, folder_of(tracked.plan, tracked.loop)
    places = [f"{path_of(folder, name)}:{line}" for name, line in conflicts.items()]

    def unsaid(tx: Tx) -> list[str]:
        said = {event.payload["place"] for event in tx.events(plan=plan.id, types=("source_not_merged",))}
        return [place for place in places if place not in said]

    def say(tx: Tx) -> None:
        for place in unsaid(tx):
            reason = (
                f"{place} was changed beside what the plan branch changed there: your change is taken in as work, "
                "but the branch's copy goes without it"
            )
            hint = f"git asks you about it when you merge {plan.branch}"
            tx.append(
                happened("source_not_merged", MACHINE, plan=plan, place=place, reason=reason, hint=hint)
            )

    if places and await world.store.read(unsaid):
        await world.store.transact("source.not_merged", say)


def is_readable(source: Source, files: Files) -> bool:
    """Return whether a source can be read from these files."""
    try:
        source.parse(files, "the source")
    except BadPlan:
        return False
    return True


def inside(files: Mapping[str, bytes], folder: str) -> Files:
    """Return files by the names that a source in that folder uses."""
    return {posixpath.relpath(path, folder or "."): content for path, content in files.items()}


# Missing status on the branch of an ended plan: a verified tree stays as it is.


async def left_at_end(
    repository: Repository, source: Source, tracked: Tracked, progress: Progress
) -> Untold | None:
    """Return what landed without being marked as done on the branch or in the user's copy; None if either has it."""
    landed = [key for key, item in progress.items.items() if item.mark is Mark.DONE and item.commit]
    if not landed:
        return None
    theirs = in_checkout(source, tracked)
    on_branch = await _on_branch(repository, tracked, theirs)
    left = _left(source, tracked, on_branch, landed) if on_branch else None
    # The user may have written it into their own copy, as asked.
    if left is None or _left(source, tracked, theirs, landed) is None:
        return None
    if not (Path(tracked.project.path) / tracked.loop.source_path).exists():
        return Untold(reason=f"{tracked.loop.source_path} is not there any more", items=left.items, gone=True)
    return left


async def _on_branch(repository: Repository, tracked: Tracked, theirs: Files) -> Files:
    """Return the source as its plan left it; None if that is gone."""
    plan, folder = tracked.plan, folder_of(tracked.plan, tracked.loop)
    try:
        sha = plan.result_sha or await repository.tip(plan.branch)
    except NotFound:
        return {}
    committed = await repository.files_at(sha, plan.books)
    return {**untracked(plan, folder, theirs), **inside(committed, folder)} if committed else {}


def _left(source: Source, tracked: Tracked, files: Files, landed: list[str]) -> Untold | None:
    try:
        tasks = source.parse(files, tracked.loop.source_path).tasks
    except BadPlan as broken:
        return Untold(reason=str(broken), items=tuple(landed))
    still_open = {task.key for task in tasks if task.mark not in SETTLED}
    items = tuple(key for key in landed if key in still_open)
    return Untold(reason="its copy on the plan branch does not say so", items=items) if items else None
