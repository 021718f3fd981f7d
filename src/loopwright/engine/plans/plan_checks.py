"""Judge a plan's result with the judging files of the plan's base commit: nothing is laundered over several tasks."""

import asyncio
from dataclasses import replace

from loopwright.core.gates.contradictions import (
    allowed_by,
    collapsed,
    contradicted,
    file_of,
    is_tampered,
    listed,
)
from loopwright.core.rows.model import Attempt, Plan, Role, Task
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.states import AttemptState
from loopwright.engine.branch.foreign_files import changes_by
from loopwright.engine.gates.gate_runs import judge_until_known
from loopwright.engine.gates.judging import Judging
from loopwright.engine.integrity.gate_scripts import judges_of
from loopwright.engine.integrity.old_checks import OldChecks, with_old_checks
from loopwright.engine.rows.world import World
from loopwright.ports import Candidate, Repository, Tx


async def judged_by_base(
    world: World,
    repository: Repository,
    ask: Judging,
    tasks: list[Task],
    verdict: Verdict,
    interrupt: asyncio.Event,
) -> Verdict:
    """Return the verdict on a plan's result after its old checks ran too: failed if it contradicts one unallowed.

    `ask` and `verdict` are the complete gate's. If the plan changed no judging file, that run is this one.
    """
    project, plan = ask.project, ask.plan
    landed = await world.store.read(lambda tx: _landed(tx, plan))
    found = verdict
    if any(one.gate_files is not None and one.gate_files.pinned for one in landed):
        old = await with_old_checks(
            repository, judges_of(project, plan, *tasks), await _made(repository, plan, ask)
        )
        if old.restored is not None:
            tree = old.restored.tree
            if tree == await repository.tree_of(plan.base_sha):
                return verdict  # the plan changed nothing but judging files
            if any(one.gate_files is not None and one.gate_files.pinned_tree == tree for one in landed):
                return verdict  # a task landed from exactly this tree: what it contradicts was decided then
            found = await _judged(world, repository, ask, old, old.restored, interrupt)
        if is_tampered(found) or (found.status is VerdictStatus.INCONCLUSIVE and not found.as_before):
            return found
    # A task may have renamed a test before another one contradicted it: permission is for the file.
    allowed = {
        file_of(check)
        for one in landed
        if one.gate_files is not None
        for check, by in zip(one.gate_files.contradicted, one.gate_files.allowed_by, strict=False)
        if by
    }
    approved = [path for task in tasks for path in task.approved]
    left = collapsed(
        one
        for one in contradicted(found)
        if file_of(one) not in allowed and not allowed_by(one, plan.policy, approved)
    )
    if not left:
        return verdict
    reason = (
        "the result contradicts checks of the plan's base commit without permission:\n"
        f"{listed(left)}\nallow them with `may_change` and run the plan again, or roll back the task that broke them"
    )
    return replace(found, status=VerdictStatus.FAILED, reason=reason)


async def _made(repository: Repository, plan: Plan, ask: Judging) -> Candidate:
    """Return all that the plan changed, as one change of its base commit."""
    return Candidate(
        parent=plan.base_sha,
        sha=ask.sha,
        tree=ask.tree,
        empty=False,
        changes=await changes_by(repository, ask.sha, parent=plan.base_sha),
    )


async def _judged(
    world: World,
    repository: Repository,
    ask: Judging,
    old: OldChecks,
    restored: Candidate,
    interrupt: asyncio.Event,
) -> Verdict:
    facts = old.facts
    commands, own = (
        tuple(one for one in each if one.command not in facts.pinned_without)
        for each in (ask.commands, ask.own)
    )
    if not commands:
        return Verdict(status=VerdictStatus.PASSED)
    again = replace(
        ask,
        role=Role.GATE,
        sha=restored.sha,
        tree=restored.tree,
        commands=commands,
        own=own,
        exempt=facts.exempt,
        rewritten=(*facts.exempt, *facts.pinned),
    )
    _, found = await judge_until_known(world, repository, again, interrupt)
    return found


def _landed(tx: Tx, plan: Plan) -> list[Attempt]:
    return tx.find(Attempt, plan_id=plan.id, state=AttemptState.LANDED)
