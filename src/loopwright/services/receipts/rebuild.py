"""Trees that were judged and landed nowhere, built again from what a receipt says and its repository has.

The receipt has the hash of each, so a tree that is built again is proven to be the same, or not.
"""

import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from loopwright.adapters.git import GitRepository
from loopwright.core.receipts.model import Receipt, TaskFacts
from loopwright.core.values.errors import LoopwrightError
from loopwright.engine.branch.changed_gate_files import changes_by
from loopwright.engine.integrity.gate_scripts import Judges, inside
from loopwright.engine.integrity.old_checks import with_old_checks
from loopwright.ports import Candidate, Repository


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """A tree that is in no commit: what a task landed, with some files as they were before its work."""

    tree: str
    """Its hash, as the receipt has it."""
    build: Callable[[Repository], Awaitable[Candidate | None]]


def pinned(receipt: Receipt, task: TaskFacts) -> Laid | None:
    """Return the tree with the gate's files as they were before a task; None when it needed no such tree."""
    facts = task.gate_files
    tree = facts.pinned_tree

    async def build(repository: Repository) -> Candidate | None:
        made = await _landed(repository, task)
        found = await with_old_checks(repository, _judges(receipt, task), made)
        return found.restored

    return Laid(tree=tree, build=build) if tree else None


def without_work(receipt: Receipt, task: TaskFacts) -> Laid | None:
    """Return the tree from before a task with the tests that it brought; None when it brought none."""
    facts, subfolder = task.gate_files, receipt.project.subfolder
    brought = frozenset(facts.red_tests)

    async def build(repository: Repository) -> Candidate | None:
        made = await _landed(repository, task)
        named = {change.path: inside(subfolder, change.path) for change in made.changes}
        rest = [change for change in made.changes if named[change.path] not in brought]
        return await repository.laid_over(made, restore=rest, texts={})

    return Laid(tree=facts.red_tree, build=build) if facts.red_tree and brought else None


async def built(laid: Laid, repository: Repository) -> str | None:
    """Build a tree again; return the commit that has it, None if the result differs."""
    made = await laid.build(repository)
    return made.sha if made is not None and made.tree == laid.tree else None


async def why_not(laid: Laid, where: Path) -> str:
    """Return what keeps a tree from being built again in this repository; empty when nothing does."""
    with tempfile.TemporaryDirectory(prefix="loopwright-replay-") as scratch:
        repository = GitRepository(where, project_id="replay", home=Path(scratch))
        try:
            made = await built(laid, repository)
        except LoopwrightError as trouble:
            return f"the tree on which it was judged cannot be built again here: {trouble}"
    return (
        ""
        if made
        else f"the tree on which it was judged ({laid.tree[:10]}) did not come of building it again"
    )


async def _landed(repository: Repository, task: TaskFacts) -> Candidate:
    parent, sha, tree = task.parent_sha or "", task.landed_sha or "", task.tree or ""
    changes = await changes_by(repository, sha, parent=parent)
    return Candidate(parent=parent, sha=sha, tree=tree, empty=False, changes=changes)


def _judges(receipt: Receipt, task: TaskFacts) -> Judges:
    plan = receipt.plan
    return Judges(
        subfolder=receipt.project.subfolder,
        gates=plan.gates,
        acceptance=task.acceptance,
        setup=plan.setup,
        patterns=plan.policy.gate_files,
        may_change=(*plan.policy.may_change, *task.approved),
    )
