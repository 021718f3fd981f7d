"""Conflicts with work that landed first: what the next attempt is told, so that it can combine both.

Nothing is ever chosen here: a conflict is not resolved by taking a side. The next attempt starts from what landed, with
both changes before its eyes, so it is what resolves them.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from loopwright.core.gates.verdicts import evidence, keep_start
from loopwright.core.rows.model import Attempt, Plan, Task
from loopwright.core.values.errors import MergeConflict
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.engine.gates.gate_runs import judge
from loopwright.engine.gates.judging import Judging
from loopwright.engine.processes.redaction import without_secrets
from loopwright.engine.rows.moves import need
from loopwright.engine.rows.world import World
from loopwright.ports import Repository, Step, Tx

_COMMITS: Final = 20
_FILES: Final = 20
_THEIRS: Final = 6_000
_OWN: Final = 6_000
_PLACES: Final = 3_000
_NAMES: Final = 2_000
_FOUND: Final = 4_000


async def told_of_conflict(
    world: World, repository: Repository, plan: Plan, attempt: Attempt, tip: str, conflict: MergeConflict
) -> str:
    """Return the evidence of a textual conflict: what landed at these places, and what the attempt did there."""
    base, mine = need(attempt.base_sha, "a base"), need(attempt.tip_sha, "a snapshot")
    landed = await _landed(repository, tip, base)
    there = [one for one in landed if set(one.paths) & set(conflict.paths)] or landed
    parts = [
        f"It changes the same places as work that landed since it began: {_named(conflict.paths)}",
        await _listed(world, there),
        "What landed there since the attempt began:\n"
        + await repository.difference(base, tip, paths=conflict.paths, limit=_THEIRS),
        await _own(repository, base, mine),
        "The places that collide, as git sees them (the first side is what landed, the second the attempt):\n"
        + conflict.detail[:_PLACES],
        "Your workspace has what landed. Do the task again on top of it, so that both hold; drop neither side.",
    ]
    return _clean(world, plan, attempt, parts)


async def told_of_red(
    world: World, repository: Repository, ask: Judging, verdict: Verdict, interrupt: asyncio.Event
) -> tuple[bool, str]:
    """Return whether an attempt that fails its checks passes them alone, and return the evidence.

    Only what others landed since it began can make that difference, so nothing is asked where nothing landed.
    """
    attempt = need(ask.attempt, "an attempt")
    base, mine = need(attempt.base_sha, "a base"), need(attempt.tip_sha, "a snapshot")
    if base == ask.before or ask.before is None:
        return False, evidence(verdict)
    landed = await _landed(repository, ask.before, base)
    alone = by_itself(ask, sha=mine, tree=await repository.tree_of(mine), before=base)
    _, found = await judge(world, repository, alone, interrupt)
    passes = found.status is VerdictStatus.PASSED
    parts = [evidence(verdict, limit=_FOUND)]
    if passes:
        alone_it_passes = "Alone, on the commit that it began with, the attempt passes every check."
        parts.insert(0, f"{alone_it_passes} Together with what landed since then it does not:")
    parts.append(await _listed(world, landed))
    if passes:
        parts.append(await _own(repository, base, mine))
        parts.append("Your workspace has what landed. Do the task again on top of it, so that both hold.")
    return passes, _clean(world, ask.plan, attempt, parts)


def by_itself(ask: Judging, *, sha: str, tree: str, before: str) -> Judging:
    """Return the same question about an attempt without what landed since it began."""
    return replace(ask, sha=sha, tree=tree, before=before)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Landed:
    """A commit that landed in the meantime, and what it changed."""

    step: Step
    paths: tuple[str, ...]


async def _landed(repository: Repository, tip: str, base: str) -> list[_Landed]:
    """Return the newest commits since `base`, the oldest of them first."""
    steps = await repository.steps(tip, since=base, most=_COMMITS)
    return [
        _Landed(step=one, paths=await repository.changed(one.parent, one.sha))
        for one in reversed(steps)
        if one.parent
    ]


async def _listed(world: World, landed: Sequence[_Landed]) -> str:
    """Name what landed: whose it is, the commit, and the files."""
    ids = [task_id for one in landed for task_id in one.step.tasks]

    def landings(tx: Tx) -> dict[str | None, Task]:
        tasks = {task.id: task for task in tx.find(Task, id=ids)} if ids else {}
        # A trailer is easily written: that a commit is a task's landing is what the row of its attempt says.
        return (
            {one.candidate_sha: tasks[one.task_id] for one in tx.find(Attempt, task_id=list(tasks))}
            if tasks
            else {}
        )

    known = await world.store.read(landings)
    lines = ["Landed since the attempt began:"]
    for one in landed:
        task = known.get(one.step.sha)
        whose = f"task {task.key} ({task.title})" if task else "a commit that is not of this plan"
        lines.append(f"- {whose}, commit {one.step.sha[:12]}: {_named(one.paths)}")
    return keep_start("\n".join(lines), _NAMES)


async def _own(repository: Repository, base: str, mine: str) -> str:
    changed = await repository.difference(base, mine, limit=_OWN)
    whole = f"`git diff {base} {mine}` shows all of it"
    return f"What the attempt itself changed ({whole}; it is kept, but not in your tree):\n{changed}"


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _FILES} more" if len(paths) > _FILES else ""
    return ", ".join(paths[:_FILES]) + more


def _clean(world: World, plan: Plan, attempt: Attempt, parts: Sequence[str]) -> str:
    """Join the parts without secrets: a diff may contain what an agent wrote into a file."""
    return without_secrets(world, plan, attempt, "\n\n".join(part.rstrip() for part in parts))
