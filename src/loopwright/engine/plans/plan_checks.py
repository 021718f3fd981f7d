"""Judge a plan's result with the judging files of the plan's base commit: nothing is laundered over several tasks."""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from loopwright.core.gates.contradictions import (
    ACCEPT,
    KIND,
    OPTIONS,
    allowed_by,
    collapsed,
    contradicted,
    diff_of,
    file_of,
    is_tampered,
    listed,
    plan_question,
)
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Plan, Role, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.ids import Kind
from loopwright.core.values.patches import Patch
from loopwright.core.values.states import AttemptState, QuestionState
from loopwright.engine.branch.changed_gate_files import changes_by
from loopwright.engine.gates.gate_runs import judge_until_known
from loopwright.engine.gates.judging import Judging
from loopwright.engine.integrity.gate_scripts import judges_of
from loopwright.engine.integrity.old_checks import OldChecks, with_old_checks
from loopwright.engine.rows.moves import MACHINE, move_question
from loopwright.engine.rows.questions import of_plan
from loopwright.engine.rows.world import World
from loopwright.ports import Candidate, Repository, Tx

_TOLD: Final = 500
"""So much of a question is told where it is only mentioned."""


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
    known = [one.gate_files for one in landed if one.gate_files is not None]
    decided = [
        (check, by)
        for facts in known
        for check, by in zip(facts.contradicted, facts.allowed_by, strict=False)
        if by
    ]
    # A task may have renamed a test before another one contradicted it: permission is for the file.
    by_file = {file_of(check): by for check, by in reversed(decided)}
    approved = [path for task in tasks for path in task.approved]
    changed = [path for facts in known for path in facts.pinned]
    checks = tuple(one for one in contradicted(found) if one not in dict(decided))
    allowed = {
        one: by_file.get(file_of(one)) or allowed_by(one, plan.policy, approved, changed) for one in checks
    }
    left = collapsed(one for one, by in allowed.items() if not by)
    if not left:
        return replace(verdict, contradicted=checks, allowed_by=tuple(allowed.values()))
    reason = (
        "the result contradicts checks of the plan's base commit without permission:\n"
        f"{listed(left)}\nallow them with `may_change` and run the plan again, or roll back the task that broke them"
    )
    by = tuple(allowed.values())
    return replace(found, status=VerdictStatus.FAILED, reason=reason, contradicted=checks, allowed_by=by)


async def settle(
    world: World,
    repository: Repository,
    ask: Judging,
    passed: Verdict,
    found: Verdict,
    hold: Callable[[Tx, str], None],
) -> Verdict | None:
    """Return the verdict on a result that contradicts checks of the plan's base, as a person decided; None while open.

    `passed` is the complete gate's verdict, and `found` the one with the old files. `hold` lets the plan wait.
    """
    left = tuple(one for one, by in zip(found.contradicted, found.allowed_by, strict=True) if not by)
    key = hashlib.sha256("\n".join((ask.tree, *left)).encode()).hexdigest()
    patch = await repository.patch(ask.plan.base_sha, ask.sha)

    def decide(tx: Tx) -> Verdict | None:
        ask.still_mine(tx)
        asked = of_plan(tx, ask.plan.id)
        decided = [one for one in asked if one.key == key and one.state is QuestionState.ANSWERED]
        if decided and decided[-1].answer == ACCEPT:
            by = f"{decided[-1].answered_by} (question {decided[-1].id})"
            return replace(
                passed,
                contradicted=found.contradicted,
                allowed_by=tuple(one or by for one in found.allowed_by),
            )
        if decided:
            told = f"{decided[-1].answered_by} wants these checks kept: {decided[-1].answer}"
            return replace(found, reason=f"{found.reason}\n{told}")
        open_ones = [one for one in asked if one.state is QuestionState.OPEN]
        for one in open_ones:
            if one.key != key:
                move_question(tx, one, QuestionState.WITHDRAWN, MACHINE)
        if not any(one.key == key for one in open_ones):
            _ask(tx, world, ask, key, left, found, patch)
        hold(tx, "the result contradicts existing checks and waits for your decision: `loopwright answer`")
        return None

    return await world.store.transact("verify.contradiction", decide)


def _ask(
    tx: Tx, world: World, ask: Judging, key: str, left: tuple[str, ...], found: Verdict, patch: Patch
) -> None:
    plan, top = ask.plan, f"{ask.project.subfolder}/" if ask.project.subfolder else ""
    changed = {one.task_id: one.gate_files.pinned for one in _landed(tx, plan) if one.gate_files}
    tasks = [one.key for one in tx.find(Task, plan_id=plan.id, order_by=("position",)) if changed.get(one.id)]
    files = {
        f"{top}{path}" for path in (*map(file_of, left), *(one for each in changed.values() for one in each))
    }
    question = Question(
        id=world.ids(Kind.QUESTION),
        project_id=plan.project_id,
        loop_id=plan.loop_id,
        plan_id=plan.id,
        task_id="",
        run_id="",
        kind=KIND,
        key=key,
        text=plan_question(plan.title, left, found.lost, tasks=tasks, diff=diff_of(patch, files)),
        options=OPTIONS,
        created_at=tx.now(),
    )
    tx.insert(question)
    tx.append(
        happened("question_asked", MACHINE, plan=plan, question=question.id, text=question.text[:_TOLD])
    )


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
    gates = {gate.command for gate in ask.plan.gates}
    again = replace(
        ask,
        role=Role.GATE,
        sha=restored.sha,
        tree=restored.tree,
        commands=commands,
        own=own,
        exempt=facts.exempt,
        rewritten=(*facts.exempt, *facts.pinned),
        may_be_empty=tuple(one for one in own if one.command not in gates),
    )
    _, found = await judge_until_known(world, repository, again, interrupt)
    return found


def _landed(tx: Tx, plan: Plan) -> list[Attempt]:
    return tx.find(Attempt, plan_id=plan.id, state=AttemptState.LANDED)
