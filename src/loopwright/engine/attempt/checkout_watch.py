"""Detect changes of the user's checkout while an agent ran, keep the evidence, and name the likely author.

The user may work in the checkout at the same time, and nothing shows who wrote a file. So an agent is blamed
for a change only if nothing kept it out of the checkout and its own transcript names that folder. All other
changes are reported.
"""

import asyncio
import hashlib
import json
import logging
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from loopwright.core.receipts.events import WHOSE
from loopwright.core.rows.events import RecordedEvent, happened
from loopwright.core.rows.model import Attempt, Plan, Project, Run
from loopwright.core.values.containment import Containment
from loopwright.core.values.errors import BranchRewritten, GitFailed, RepositoryGone
from loopwright.engine.branch.branch import hold, look, take_back
from loopwright.engine.rows.legs import Rows
from loopwright.engine.rows.moves import MACHINE, need
from loopwright.engine.rows.plan_states_text import UNDO
from loopwright.engine.rows.ref_names import taken_ref
from loopwright.engine.rows.world import World
from loopwright.ports import FINGERPRINT, Repository, RunSpec, Tripwire, Tx

log = logging.getLogger(__name__)

_SHOWN: Final = 5
_MOST: Final = 50


async def watch(world: World, repository: Repository, run: Run, spec: RunSpec) -> tuple[Tripwire, RunSpec]:
    """Take the fingerprint of the checkout, or find the one from when the run began.

    It is stored with the run's files, so that a worker that adopts the run misses no earlier change.
    """
    kept = world.paths.run(run.id) / FINGERPRINT
    if kept.is_file():
        return Tripwire(**json.loads(kept.read_text(encoding="utf-8"))), spec
    taken = await repository.tripwire()
    return taken, replace(spec, files={**spec.files, FINGERPRINT: json.dumps(asdict(taken))})


async def look_again(
    world: World,
    repository: Repository,
    before: Tripwire,
    rows: Rows,
    run: Run,
    *,
    again: bool,
) -> str:
    """Compare the checkout with its fingerprint and record differences; return why the attempt is invalid, if it is.

    If this run continues an earlier run's work (`again`), that run may already have been at fault.
    """
    strayed = await _compare(world, repository, before, rows, run)
    if not strayed and again:
        strayed = await world.store.read(lambda tx: _earlier(tx, rows.attempt))
    return strayed


def _earlier(tx: Tx, attempt: Attempt) -> str:
    events = tx.events(plan=attempt.plan_id, task=attempt.task_id, types=("checkout_changed",))
    found = [one for one in events if one.attempt == attempt.id and one.payload.get("whose") == "agent"]
    return _told(found[-1].payload["changes"], found[-1].payload["undo"]) if found else ""


async def _compare(world: World, repository: Repository, before: Tripwire, rows: Rows, run: Run) -> str:
    project, plan = rows.project, rows.plan
    try:
        after = await repository.tripwire()
    except RepositoryGone as gone:
        await _tell(world, rows, run, await _whose(world, project, run), (str(gone),))
        raise
    before, after = world.own_writes.spare(Path(project.path), before, after)
    strays = (*repository.stray(before, after), *await _unpinned(repository, plan))
    moves = await _moved(world, repository, plan, run)
    if not strays and not moves:
        return ""
    whose = await _whose(world, project, run)
    moved = []
    if whose == "agent":
        moved = [await _taken_back(world, repository, plan, move) for move in reversed(moves)]
    elif moves and moves[-1].rewritten:
        await hold(world, plan, moves[-1].words)
    # The user's changes of the branch have their own event.
    strays = (*strays, *(words for words, _ in moved))
    if not strays:
        return ""
    patch = world.paths.kept_patches() / f"{run.id}.patch"
    kept = await repository.stray_patch(patch, before, after)
    undo = undoing(before, after, checkout=project.path, patch=patch if kept else None)
    undo += tuple(f"git -C {shlex.quote(project.path)} {step}" for _, step in moved if step)
    named = "; ".join(strays[:_SHOWN]) + (" …" if len(strays) > _SHOWN else "")
    why = f"{named} ({WHOSE[whose]}" + (f"; kept in {patch})" if kept else ")")
    log.warning("your checkout changed while an agent was running", extra={"why": why})

    await _tell(world, rows, run, whose, strays, patch=patch if kept else None, undo=undo)
    return _told(strays, undo) if whose == "agent" else ""


async def _tell(
    world: World,
    rows: Rows,
    run: Run,
    whose: str,
    strays: Sequence[str],
    *,
    patch: Path | None = None,
    undo: Sequence[str] = (),
) -> None:
    content = await asyncio.to_thread(patch.read_bytes) if patch else b""

    def record(tx: Tx) -> None:
        tx.append(
            happened(
                "checkout_changed",
                MACHINE,
                plan=rows.plan,
                attempt=rows.attempt,
                run=run,
                changes=list(strays[:_MOST]),
                whose=whose,
                patch=str(patch.relative_to(world.paths.root)) if patch else None,
                patch_sha256=hashlib.sha256(content).hexdigest() if patch else None,
                undo=list(undo[:_MOST]),
            )
        )

    await world.store.transact("checkout.changed", record)


def _told(changes: Sequence[str], undo: Sequence[str]) -> str:
    named = "; ".join(changes[:_SHOWN]) + (" …" if len(changes) > _SHOWN else "")
    steps = (UNDO, *undo[:_MOST]) if undo else ()
    return "\n".join((f"It changed your checkout: {named}.", *steps))


async def _unpinned(repository: Repository, plan: Plan) -> tuple[str, ...]:
    """Restore deleted refs that keep the plan's work. They are Loopwright's own, so it does not ask."""
    try:
        return await repository.repin(plan.id, near=plan.base_sha)
    except GitFailed as trouble:
        return (f"what kept the work of attempts was taken away, and cannot be put back: {trouble}",)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    """A change of the plan branch that Loopwright did not make."""

    words: str
    was: str
    """Where Loopwright left it."""
    tip: str
    """Where it was found."""
    rewritten: bool = False


async def _moved(world: World, repository: Repository, plan: Plan, run: Run) -> list[_Move]:
    """Return changes of the plan branch that Loopwright did not make while a run was active, the oldest first."""
    rewrites = []
    try:
        await look(world, repository, plan)
    except BranchRewritten as found:
        rewrites = [_Move(words=str(found), was=found.left, tip=found.found, rewritten=True)]
    since = run.started_at or run.created_at
    events = await world.store.read(lambda tx: _moves(tx, plan, since))
    moves = [
        _Move(
            words=f"commits on the plan's branch that no task made: {', '.join(event.payload['commits'])}",
            was=event.payload["was"],
            tip=event.payload["tip"],
        )
        for event in events
        if event.at >= since
    ]
    return [*moves, *rewrites]


async def _taken_back(world: World, repository: Repository, plan: Plan, move: _Move) -> tuple[str, str]:
    """Reset the plan branch to Loopwright's last commit; return what to report, and what the user can do if that fails.

    The branch belongs to Loopwright, and commits that an agent puts there were not checked. The removed
    commits are still pinned, because they may be the user's. The branch stays if work has landed on top, or
    if it is checked out.
    """
    kept = taken_ref(plan.id, move.tip)
    if await take_back(world, repository, plan, was=move.was, tip=move.tip, keep=kept):
        words = "the plan's branch was rewritten" if move.rewritten else move.words
        return f"{words}; it is at {move.was[:10]} again, and what was there is kept as {kept}", ""
    if move.rewritten:
        await hold(world, plan, move.words)
        return move.words, ""
    return move.words, f"update-ref refs/heads/{plan.branch} {move.was} {move.tip}"


def _moves(tx: Tx, plan: Plan, since: datetime) -> list[RecordedEvent]:
    # Read only if there is a move: a plan has ever more events, and this runs for each run.
    moved_at = need(tx.get(Plan, plan.id), "the plan").branch_moved_at
    return tx.events(plan=plan.id, types=("branch_moved",)) if moved_at and moved_at >= since else []


async def _whose(world: World, project: Project, run: Run) -> str:
    """Return the likely author of a change."""
    if run.sandbox not in (None, Containment.NONE.value):
        return "contained"
    names = {project.path, str(Path(project.path).resolve())}
    spelled = {*names, *(json.dumps(name)[1:-1] for name in names)}
    # The home may be inside the checkout, and every agent names its workspace.
    own = {str(world.paths.root), str(world.paths.root.resolve())}
    async for line in world.keepers.follow(world.paths.run(run.id)):
        text = line.text
        for folder in own:
            text = text.replace(folder, "")
        if any(name in text for name in spelled):
            return "agent"
    return "unknown"


def undoing(before: Tripwire, after: Tripwire, *, checkout: str, patch: Path | None) -> tuple[str, ...]:
    """Return the commands that restore the user's refs and files; the user runs them, never Loopwright."""
    git = f"git -C {shlex.quote(checkout)}"
    steps = []
    for name in sorted(before.refs.keys() | after.refs.keys()):
        old, new = before.refs.get(name), after.refs.get(name)
        if old == new:
            continue
        # With the expected old value, so that no newer commit is lost.
        ref = shlex.quote(name)
        steps.append(
            f"{git} update-ref -d {ref} {new}"
            if old is None
            else f"{git} update-ref {ref} {old} {new or '0' * len(old)}"
        )
    if patch is not None:
        paths = before.status.keys() | after.status.keys()
        changed = sorted(one for one in paths if before.status.get(one) != after.status.get(one))
        # The patch also has what the user had changed by then: restoring it by a command would lose that.
        theirs = [one for one in changed if one in before.status]
        kept = shlex.quote(str(patch))
        if len(theirs) < len(changed):
            spared = "".join(f" --exclude={shlex.quote(one)}" for one in theirs)
            steps.append(f"{git} apply --reverse{spared} {kept}")
        steps += [f"# by hand, because it had your changes before: {one} (see {kept})" for one in theirs]
    return tuple(steps)
