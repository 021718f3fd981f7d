"""Pause a loop that reached a cost limit, ask the user about it, and resume it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from loopwright.core.policy import budget
from loopwright.core.policy.budget import CAPS, Over
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Loop, Plan, Project, Run
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.errors import Refused
from loopwright.core.values.ids import Kind
from loopwright.core.values.policy import too_long
from loopwright.core.values.states import (
    ENDED_PLAN,
    LIVE_ATTEMPT,
    AttemptState,
    LoopState,
    QuestionState,
)
from loopwright.core.values.wording import dollars
from loopwright.engine.rows import questions
from loopwright.engine.rows.moves import MACHINE, move_loop, move_question, need
from loopwright.engine.rows.reservations import freed
from loopwright.ports import Ids, Tx


def pause_and_ask(tx: Tx, ids: Ids, plan: Plan, over: Over, run: Run | None = None) -> Loop:
    """Pause the loop of a plan that may spend no more, and ask the user; return the updated loop.

    A loop whose limit ends by itself resumes then, unless the plan must not wait for limits.
    """
    loop = need(tx.get(Loop, plan.loop_id), "the loop")
    if loop.state is not LoopState.RUNNING:
        return loop
    if over.until is not None and not _waits(tx, plan, over):
        over = replace(over, until=None)
    _ask(tx, ids, plan, over, run)
    reason = over.reason(plan.id)
    return move_loop(tx, loop, LoopState.PAUSED, "loop_paused", MACHINE, reason, resume_at=over.until)


def _waits(tx: Tx, plan: Plan, over: Over) -> bool:
    now = tx.now()
    return plan.policy.wait_for_limits and not too_long(plan.policy, since=now, until=over.until, now=now)


def _ask(tx: Tx, ids: Ids, plan: Plan, over: Over, run: Run | None) -> None:
    question = Question(
        id=ids(Kind.QUESTION),
        project_id=plan.project_id,
        loop_id=plan.loop_id,
        plan_id=plan.id,
        task_id=(run.task_id or "") if run else "",
        run_id=run.id if run else "",
        kind=budget.ASKED,
        key=over.setting,
        text=over.why,
        options=over.options,
        deadline=over.until,
        created_at=tx.now(),
    )
    tx.insert(question)
    tx.append(
        happened("question_asked", MACHINE, plan=plan, run=run, question=question.id, text=question.text)
    )


def meant(tx: Tx, question: Question, answer: str, actor: str) -> tuple[str, Mapping[str, Any]]:
    """Take the user's answer about a budget; return the command that it means, with its arguments."""
    plan = need(tx.get(Plan, question.plan_id), "the plan")
    found = budget.meaning(answer, question.options, limit=getattr(plan.policy, question.key, None))
    if found is None:
        hint = f"one of {', '.join(question.options)}; the amount may be another"
        raise Refused(f"{answer!r} is not an answer to this question", code="answer_not_offered", hint=hint)
    verb, limits = found
    move_question(tx, question, QuestionState.ANSWERED, actor, answer=answer)
    return verb, dict(zip((question.key,), limits, strict=False))


def set_limits(tx: Tx, plan: Plan, limits: Mapping[str, Any], actor: str) -> None:
    """Give a plan other limits. A new limit accepts the spending so far, known or not."""
    said = [f"{name} {_amount(limits[name])}" for name in CAPS if name in limits]
    tx.append(happened("limits_set", actor, plan=plan, changes=said))
    tx.update(Plan, plan.id, policy=replace(plan.policy, **limits))
    tx.update(Project, plan.project_id, unknown_costs=0)
    told = {plan.id}
    if "max_cost_per_loop" in limits:
        told |= {one.id for one in tx.find(Plan, loop_id=plan.loop_id)}
    if "max_cost_per_project" in limits:
        told |= {one.id for one in tx.find(Plan, project_id=plan.project_id)}
    for one in tx.find(Plan, id=told):
        if one.unknown_costs:
            tx.update(Plan, one.id, unknown_costs=0)
    freed(tx, plan.project_id)


def _amount(limit: int | None) -> str:
    return "none" if limit is None else dollars(limit)


def go_on_by_itself(tx: Tx, loop: Loop) -> None:
    """End a pause whose time has come."""
    plan = need(tx.get(Plan, loop.plan_id or ""), "the plan")
    for question in tx.find(Question, loop_id=loop.id, kind=budget.ASKED, state=QuestionState.OPEN):
        move_question(tx, question, QuestionState.EXPIRED, MACHINE)
    if plan.status in ENDED_PLAN:
        tx.update(Loop, loop.id, resume_at=None)
    else:
        go_on(tx, plan, loop, MACHINE)


def go_on(tx: Tx, plan: Plan, loop: Loop, actor: str) -> None:
    """Let a loop run, and everything in it that only waited for that."""
    if loop.state is not LoopState.RUNNING:
        move_loop(tx, loop, LoopState.RUNNING, "loop_started", actor)
    parked = tx.find(Attempt, plan_id=plan.id, state=AttemptState.WAITING, wake_at=None)
    # What waits for an answer continues when it has one.
    for attempt in (one for one in parked if not questions.open_of(tx, one)):
        tx.update(Attempt, attempt.id, wake_at=tx.now(), updated_at=tx.now())
    for attempt in live(tx, plan):
        tx.update(Attempt, attempt.id, interrupt="", wait_reason="")


def live(tx: Tx, plan: Plan) -> list[Attempt]:
    """Return the attempts that a leg drives; a cancelled one cannot be paused or resumed."""
    states = LIVE_ATTEMPT - {AttemptState.QUEUED, AttemptState.WAITING}
    found = tx.find(Attempt, plan_id=plan.id, state=states)
    return [attempt for attempt in found if attempt.interrupt != "cancel"]
