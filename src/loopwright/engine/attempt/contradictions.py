"""Work that contradicts existing checks: the agent's one turn, then a permission, a reviewer or a person decides."""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopwright.core.gates.contradictions import (
    ACCEPT,
    KIND,
    OPTIONS,
    REJECT,
    allowed_by,
    collapsed,
    diff_of,
    file_of,
    listed,
    question,
)
from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.policy.retry import Failed
from loopwright.core.replies.questions import Asking
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Leg, Review, Run, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.errors import FenceLost
from loopwright.core.values.failures import Failure
from loopwright.core.values.patches import Patch
from loopwright.core.values.states import AttemptState, QuestionState, ReviewState, RunState, TaskState
from loopwright.engine.attempt.reviewing import OVER, ask_reviewer, author_of, send_back
from loopwright.engine.memory.interrupts import Interrupted
from loopwright.engine.people.handover import HUMAN
from loopwright.engine.rows.moves import (
    MACHINE,
    change_attempt,
    commit_leg,
    fail_attempt,
    move_attempt,
    move_task,
    need,
)
from loopwright.engine.rows.questions import of_attempt, open_of, wait_for_answers
from loopwright.engine.rows.queue import new_run
from loopwright.ports import Candidate, Tx

if TYPE_CHECKING:
    from loopwright.engine.attempt.landing_line import Landing


async def settle(
    landing: "Landing",
    candidate: Candidate,
    facts: GateFiles,
    checks: tuple[str, ...],
    removed: Collection[str],
    judged: dict[str, Any],
) -> GateFiles | None:
    """Return the facts with who allowed each contradicted check; None while that is not decided, or was refused."""
    patch = await landing.repository.patch(candidate.parent, candidate.sha)

    def decide(tx: Tx) -> GateFiles | None:
        current = change_attempt(tx, landing.attempt.id, landing.fence)
        if current.state is not AttemptState.CHECKING:
            raise FenceLost(f"{current.id} was carried on by a second run of the same leg")
        if current.interrupt:
            raise Interrupted
        return _decide(tx, landing, current, candidate, patch, facts, checks, removed, judged)

    return await landing.world.store.transact("attempt.contradiction", decide)


def _decide(
    tx: Tx,
    landing: "Landing",
    attempt: Attempt,
    candidate: Candidate,
    patch: Patch,
    facts: GateFiles,
    checks: tuple[str, ...],
    removed: Collection[str],
    judged: dict[str, Any],
) -> GateFiles | None:
    plan, task = landing.plan, landing.task
    allowed = {one: allowed_by(one, plan.policy, task.approved, facts.pinned) for one in checks}
    left = tuple(one for one, by in allowed.items() if not by)

    def with_allowed(by: str) -> GateFiles:
        named = tuple(allowed[one] or by for one in checks)
        gone = tuple(one for one in checks if one in removed)
        why = _reason(tx, attempt)
        return replace(facts, contradicted=checks, allowed_by=named, removed=gone, reason=why)

    if not left:
        return with_allowed("")
    if (answer := _answer(tx, task, patch, left)) is not None:
        if answer.answer == ACCEPT:
            return with_allowed(f"{answer.answered_by} (question {answer.id})")
        _refuse(
            tx, landing, attempt, answer, left, {**judged, "gate_files": replace(facts, contradicted=left)}
        )
        return None
    found = replace(facts, contradicted=left)
    if attempt.agent != HUMAN and not has_had_its_turn(attempt):
        _give_turn(tx, landing, attempt, found)
        return None
    if plan.policy.review.mode != "off" or plan.policy.review.agent:
        same = tx.find(
            Review, task_id=task.id, patch_sha256=patch.sha256, state=OVER, order_by=("-created_at",)
        )
        known = [one for one in same if set(left) <= set(one.contradicted)]
        if not known:
            tx.update(Attempt, attempt.id, gate_files=found)
            ask_reviewer(tx, landing, attempt, candidate, patch, (), left)
            return None
        if known[0].state is ReviewState.BLOCKING:
            send_back(tx, landing, attempt, known[0], judged)
            return None
        if known[0].state is ReviewState.CLEAR and known[0].shown_whole:
            return with_allowed(f"reviewer {known[0].agent} (review {known[0].id})")
    _ask(tx, landing, attempt, patch, found, removed, judged)
    return None


def has_had_its_turn(attempt: Attempt) -> bool:
    """Return whether the agent was told which checks its work contradicts."""
    facts = attempt.gate_files
    return facts is not None and bool(facts.contradicted) and not any(facts.allowed_by)


def _give_turn(tx: Tx, landing: "Landing", attempt: Attempt, facts: GateFiles) -> None:
    moved = move_attempt(
        tx,
        attempt,
        AttemptState.WORKING,
        fence=landing.fence,
        about={"contradicted": len(facts.contradicted)},
        run_id=new_run(tx, landing.world.ids, attempt, landing.plan).id,
        gate_files=facts,
    )
    told: dict[str, Any] = {"checks": list(facts.contradicted[:20]), "count": len(facts.contradicted)}
    tx.append(happened("checks_contradicted", MACHINE, plan=landing.plan, attempt=moved, **told))


def _ask(
    tx: Tx,
    landing: "Landing",
    attempt: Attempt,
    patch: Patch,
    facts: GateFiles,
    removed: Collection[str],
    judged: dict[str, Any],
) -> None:
    run = author_of(tx, attempt)
    top = f"{landing.project.subfolder}/" if landing.project.subfolder else ""
    files = {f"{top}{path}" for path in (*map(file_of, facts.contradicted), *facts.pinned)}
    diff = diff_of(patch, files)
    text = question(landing.task.key, facts.contradicted, removed, reason=_reason(tx, attempt), diff=diff)
    asked = Asking(kind=KIND, text=text, options=OPTIONS, key=_key(patch, facts.contradicted))
    wait_for_answers(
        tx,
        landing.world.ids,
        landing.plan,
        attempt,
        run,
        (asked,),
        fence=landing.fence,
        gate_files=facts,
        verdict_id=judged["verdict_id"],
    )


def _key(patch: Patch, checks: tuple[str, ...]) -> str:
    """Return what a person's decision is about: this change and these checks, nothing else."""
    return hashlib.sha256("\n".join((patch.sha256, *checks)).encode()).hexdigest()


def _answer(tx: Tx, task: Task, patch: Patch, checks: tuple[str, ...]) -> Question | None:
    """Return what a person decided about this change and these checks, in this attempt or an earlier one."""
    known = tx.find(
        Question,
        task_id=task.id,
        kind=KIND,
        key=_key(patch, checks),
        state=QuestionState.ANSWERED,
        order_by=("-answered_at",),
        limit=1,
    )
    return known[0] if known else None


def _refuse(
    tx: Tx,
    landing: "Landing",
    attempt: Attempt,
    answer: Question,
    checks: tuple[str, ...],
    judged: dict[str, Any],
) -> None:
    names = collapsed(checks)
    words = (answer.answer or "").removeprefix(REJECT).lstrip(": ")
    said = f"\nThey said: {words}" if words else ""
    fail_attempt(
        tx,
        landing.world.ids,
        attempt,
        Failed(
            failure=Failure.CONTRADICTION, detail=f"a person wants these checks kept: {', '.join(names[:5])}"
        ),
        fence=landing.fence,
        counts=True,
        chance=landing.world.chance(),
        evidence=f"A person wants these checks kept as they are:\n{listed(names)}{said}",
        **judged,
    )


def _reason(tx: Tx, attempt: Attempt) -> str:
    """Return the agent's reason: its last message in the turn that it was given for that."""
    run: Run = author_of(tx, attempt)
    return run.summary if has_had_its_turn(attempt) and run.state is RunState.COMPLETE else ""


def undecided(tx: Tx, waiting: Iterable[Attempt]) -> frozenset[str]:
    """Return the parked attempts that wait for a person's decision about the checks that they contradict."""
    asked = [one for one in waiting if one.questions and has_had_its_turn(one)]
    return frozenset(one.id for one in asked if any(each.kind == KIND for each in open_of(tx, one)))


def decided(tx: Tx, waiting: Iterable[Attempt]) -> frozenset[str]:
    """Return the parked attempts for which a person has decided about the checks that they contradict."""
    asked = [one for one in waiting if one.questions and has_had_its_turn(one)]
    return frozenset(one.id for one in asked if not open_of(tx, one) and is_decided(tx, one))


def is_decided(tx: Tx, attempt: Attempt) -> bool:
    """Return whether a parked attempt waited for a person's decision about the checks that it contradicts."""
    asked = of_attempt(tx, attempt)
    run = tx.get(Run, attempt.run_id) if attempt.run_id else None
    # A run that is newer than the question was parked for another reason.
    return bool(asked) and asked[-1].kind == KIND and (run is None or run.created_at <= asked[-1].created_at)


def judge_again(tx: Tx, attempt: Attempt) -> Leg:
    """Send an attempt back to its judgement after a person decided about the checks that it contradicts."""
    task = need(tx.get(Task, attempt.task_id), "the task")
    if task.status is TaskState.AWAITING_RESPONSE:
        move_task(tx, task, TaskState.RUNNING, "task_resumed")
    moved = move_attempt(tx, attempt, AttemptState.CHECKING, wake_at=None, wait_reason="", envelope_id=None)
    return commit_leg(tx, moved)
