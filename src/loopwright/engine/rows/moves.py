"""Every state change, each in one place: the row moves by its table and the event is written with it."""

from datetime import datetime
from typing import Any, TypeVar

from loopwright.core.gates.contradictions import KIND as CONTRADICTION
from loopwright.core.policy import budget, rounds
from loopwright.core.policy.budget import spent_today
from loopwright.core.policy.graph import kept
from loopwright.core.policy.manual_steps import KIND as BY_HAND
from loopwright.core.policy.order import is_met
from loopwright.core.replies.reviews import blocking, said_hash
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import (
    Attempt,
    Leg,
    Loop,
    Outcome,
    Plan,
    Project,
    Review,
    Role,
    Run,
    Task,
)
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.errors import FenceLost, IllegalTransition, StaleVersion
from loopwright.core.values.states import (
    ATTEMPT,
    ENDED_PLAN,
    ENDED_RUN,
    LIVE_ATTEMPT,
    LOOP,
    PLAN,
    QUESTION,
    REVIEW,
    RUN,
    SETTLED_TASK,
    TASK,
    AttemptState,
    LoopState,
    PlanState,
    QuestionState,
    ReviewState,
    RunState,
    TaskState,
    step,
)
from loopwright.engine.rows import healing, lessons
from loopwright.engine.rows.escalations import open_ones
from loopwright.engine.rows.order import follow_order
from loopwright.engine.rows.queue import new_attempt, new_review_run, new_run
from loopwright.engine.rows.reservations import freed
from loopwright.ports import Ids, Tx

_ADDED_AT_THE_END = ("fix", "docs", "evaluation")
"""Origins of tasks that a completed plan gets before its verification: they do not complete it a second time."""
MACHINE = "loopwright"
"""The actor of everything that no user requested."""


T = TypeVar("T")


def need(value: T | None, what: str) -> T:
    """Return the value, or raise: a reference between rows never dangles."""
    if value is None:
        raise StaleVersion(f"{what} is gone")
    return value


def _plan(tx: Tx, row: Task | Attempt | Run) -> Plan:
    """Return the plan of a row: every event names it, and through it the loop and the project."""
    return need(tx.get(Plan, row.plan_id), "the plan")


def move_loop(
    tx: Tx,
    loop: Loop,
    target: LoopState,
    event: str,
    actor: str,
    reason: str = "",
    *,
    resume_at: datetime | None = None,
) -> Loop:
    """Move a loop and record it; questions about its pause are settled when it ends."""
    step("loop", LOOP, loop.id, loop.state, target)
    moved = tx.update(
        Loop,
        loop.id,
        expect={"state": loop.state},
        state=target,
        reason=reason,
        resume_at=resume_at,
        updated_at=tx.now(),
        # Work that starts in a deleted loop restores it.
        deleted_at=None if target is LoopState.RUNNING else loop.deleted_at,
    )
    told: dict[str, Any] = {"until": resume_at.isoformat()} if resume_at else {}
    tx.append(happened(event, actor, loop=moved, reason=reason, **told))
    if loop.state is LoopState.PAUSED:
        for question in tx.find(Question, loop_id=loop.id, kind=budget.ASKED, state=QuestionState.OPEN):
            move_question(tx, question, QuestionState.WITHDRAWN, actor)
    return moved


def move_plan(
    tx: Tx,
    plan: Plan,
    target: PlanState,
    event: str,
    actor: str = MACHINE,
    *,
    about: Any = None,
    **changes: Any,
) -> Plan:
    """Move a plan and record it; `about` goes into the event."""
    step("plan", PLAN, plan.id, plan.status, target)
    if plan.status in ENDED_PLAN and actor == MACHINE:
        # A worker that slept through the end of a plan undoes nothing: only the user does.
        raise IllegalTransition("plan", plan.id, plan.status.value, target.value)
    changes = {"evaluating": False, **changes}
    moved = tx.update(
        Plan, plan.id, expect={"status": plan.status}, status=target, updated_at=tx.now(), **changes
    )
    tx.append(happened(event, actor, plan=moved, **(about or {})))
    if target is PlanState.VERIFIED and moved.failed_tasks:
        withdraw_escalations(tx, actor, plan_id=plan.id)
    if target in ENDED_PLAN:
        for question in tx.find(
            Question, plan_id=plan.id, task_id="", kind=CONTRADICTION, state=QuestionState.OPEN
        ):
            move_question(tx, question, QuestionState.WITHDRAWN, actor)
    return moved


def move_task(
    tx: Tx,
    task: Task,
    target: TaskState,
    event: str,
    actor: str = MACHINE,
    *,
    about: Any = None,
    **changes: Any,
) -> Task:
    """Move a task, keep its plan's counts right, and record it."""
    step("task", TASK, task.id, task.status, target)
    moved = tx.update(
        Task, task.id, expect={"status": task.status}, status=target, updated_at=tx.now(), **changes
    )
    tx.append(happened(event, actor, plan=_plan(tx, task), task=moved, key=task.key, **(about or {})))
    opened = (target not in SETTLED_TASK) - (task.status not in SETTLED_TASK)
    failed = _needs_you(moved) - _needs_you(task)
    if opened or failed:
        plan = need(tx.get(Plan, task.plan_id), "the plan")
        tx.update(Plan, plan.id, open_tasks=plan.open_tasks + opened, failed_tasks=plan.failed_tasks + failed)
    if target in SETTLED_TASK:
        healing.settle(tx, _plan(tx, task), moved, by_machine=actor == MACHINE and not task.taken_by)
    if task.status is TaskState.ERROR:
        withdraw_escalations(tx, actor, task_id=task.id)
    if task.manual and task.status is TaskState.AWAITING_RESPONSE:
        for question in tx.find(Question, task_id=task.id, kind=BY_HAND, state=QuestionState.OPEN):
            move_question(tx, question, QuestionState.WITHDRAWN, actor)
    if met := is_met(moved) - is_met(task):
        for dependent_id in task.dependents:
            dependent = need(tx.get(Task, dependent_id), "a dependent task")
            tx.update(Task, dependent.id, unmet=dependent.unmet - met)
    follow_order(tx, task, moved)
    return moved


def _needs_you(task: Task) -> bool:
    """Return whether a task keeps its plan from ending; a manual step that the user skipped does not."""
    return task.status in (TaskState.ERROR, TaskState.CANCELLED) and not is_met(task)


def move_attempt(
    tx: Tx,
    attempt: Attempt,
    target: AttemptState,
    actor: str = MACHINE,
    *,
    fence: int | None = None,
    about: Any = None,
    **changes: Any,
) -> Attempt:
    """Move an attempt; with a fence, only if no other leg took it over."""
    current = need(tx.get(Attempt, attempt.id), "the attempt")
    if fence is not None and current.fence != fence:
        raise FenceLost(f"{attempt.id} was taken over (fence {current.fence}, not {fence})")
    step("attempt", ATTEMPT, attempt.id, current.state, target)
    now = tx.now()
    # An ended attempt waits for nothing.
    ended = {} if target in LIVE_ATTEMPT else {"ended_at": now, "wait_reason": ""}
    moved = tx.update(
        Attempt,
        attempt.id,
        expect={"fence": current.fence, "state": current.state},
        state=target,
        updated_at=now,
        **{**ended, **changes},
    )
    if "touched" in changes:
        task = need(tx.get(Task, moved.task_id), "the task")
        tx.update(Task, task.id, touched=kept((*task.touched, *moved.touched)))
    event, plan = f"attempt_{target.value.lower()}", _plan(tx, moved)
    tx.append(happened(event, actor, plan=plan, attempt=moved, n=moved.n, **(about or {})))
    if target not in LIVE_ATTEMPT:
        lessons.settle(tx, moved)
    return moved


def change_attempt(tx: Tx, attempt_id: str, fence: int, **changes: Any) -> Attempt:
    """Change facts of an attempt without moving it, under its fence."""
    current = need(tx.get(Attempt, attempt_id), "the attempt")
    if current.fence != fence:
        raise FenceLost(f"{attempt_id} was taken over (fence {current.fence}, not {fence})")
    return tx.update(Attempt, attempt_id, expect={"fence": fence}, updated_at=tx.now(), **changes)


def move_run(tx: Tx, run: Run, target: RunState, **changes: Any) -> Run:
    """Move a run; starting and ending are events, and an end is charged to the plan once."""
    step("run", RUN, run.id, run.state, target)
    now = tx.now()
    times = {"started_at": now} if target is RunState.RUNNING else {}
    if target in ENDED_RUN and "ended_at" not in changes:
        times = {"ended_at": max(now, run.started_at or now)}
    moved = tx.update(Run, run.id, expect={"state": run.state}, state=target, **times, **changes)
    if target is RunState.RUNNING:
        told: dict[str, Any] = {"role": run.role.value, "agent": run.agent, "account": moved.account}
        tx.append(happened("run_started", MACHINE, plan=_plan(tx, moved), run=moved, **told))
    elif target in ENDED_RUN:
        tx.append(
            happened(
                "run_ended",
                MACHINE,
                plan=_plan(tx, moved),
                run=moved,
                role=run.role.value,
                state=target.value,
                exit_code=moved.exit_code,
                ended_by=moved.ended_by,
                output_sha256=moved.output_sha256,
                output_bytes=moved.output_bytes,
                files_sha256=moved.files_sha256,
                cost_micros=moved.cost_micros,
                cost_estimated=moved.cost_estimated,
            )
        )
    elif target is RunState.AWAITING_RESPONSE:
        tx.append(happened("run_awaiting", MACHINE, plan=_plan(tx, moved), run=moved))
    # When its process ended, however it continues from there.
    if run.state is RunState.RUNNING and moved.agent is not None:
        _charge(tx, moved)
        freed(tx, _plan(tx, moved).project_id)
    return moved


def _charge(tx: Tx, run: Run) -> None:
    if run.cost_micros == 0:
        return
    plan = need(tx.get(Plan, run.plan_id), "the plan")
    known, unknown = run.cost_micros or 0, int(run.cost_micros is None)
    tx.update(
        Plan, plan.id, spent_micros=plan.spent_micros + known, unknown_costs=plan.unknown_costs + unknown
    )
    project = need(tx.get(Project, plan.project_id), "the project")
    spent, unknowns = spent_today(project, tx.now())
    tx.update(
        Project,
        project.id,
        spent_on=tx.now().date().isoformat(),
        spent_micros=spent + known,
        unknown_costs=unknowns + unknown,
    )


def next_run(tx: Tx, ids: Ids, attempt: Attempt, plan: Plan, before: Run | None) -> Run:
    """Create the run that continues after another one: with the work, or with its review."""
    if before is None or before.role is not Role.REVIEWER:
        return new_run(tx, ids, attempt, plan)
    run = new_review_run(tx, ids, need(tx.get(Review, before.label), "the review"))
    tx.update(Review, before.label, run_id=run.id)
    return run


def commit_leg(tx: Tx, attempt: Attempt, **changes: Any) -> Leg:
    """Commit to the next leg: from here on only it may change the attempt."""
    current = tx.update(
        Attempt,
        attempt.id,
        expect={"fence": attempt.fence, "leg": attempt.leg},
        fence=attempt.fence + 1,
        leg=attempt.leg + 1,
        updated_at=tx.now(),
        **changes,
    )
    told: dict[str, Any] = {"leg": current.leg, "fence": current.fence}
    tx.append(happened("attempt_leg_started", MACHINE, plan=_plan(tx, current), attempt=current, **told))
    return Leg(subject=current.id, n=current.leg, fence=current.fence, host_id=current.host_id)


def may_be_fixed(plan: Plan) -> bool:
    """Return whether a task may still fix what the complete gate finds."""
    return plan.fix_cycles < plan.policy.fix_cycles and plan.policy.autonomy != "manual"


def begin_verify(tx: Tx, plan: Plan, actor: str = MACHINE) -> Leg:
    """Commit to a verification of the plan, or to its evaluation while a task may still fix its findings."""
    evaluating = actor == MACHINE and may_be_fixed(plan)
    moved = move_plan(
        tx,
        plan,
        PlanState.VERIFYING,
        "plan_evaluating" if evaluating else "plan_verifying",
        actor,
        evaluating=evaluating,
        verify_n=plan.verify_n + 1,
        verify_leg=plan.verify_leg + 1,
        verify_fence=plan.verify_fence + 1,
        verify_run_id=None,
        not_before=None,
    )
    return Leg(subject=plan.id, n=moved.verify_leg, fence=moved.verify_fence)


def complete_task(
    tx: Tx,
    task: Task,
    *,
    outcome: Outcome,
    landed_sha: str | None,
    actor: str = MACHINE,
    reason: str = "",
) -> Task:
    """Mark a task as done; the last one completes the plan."""
    done = move_task(
        tx,
        task,
        TaskState.COMPLETE,
        "task_completed",
        actor,
        about={"outcome": outcome.value, "commit": landed_sha},
        outcome=outcome,
        landed_sha=landed_sha,
        completed_at=tx.now(),
        failure=None,
        reason=reason,
        # The user's own work needs no review by the user.
        reviewed_by=task.taken_by,
        taken_by="",
        taken_dir="",
    )
    note_completion(tx, task)
    return done


def note_completion(tx: Tx, task: Task) -> None:
    """Record that a plan is complete, if this task was the last one."""
    plan = need(tx.get(Plan, task.plan_id), "the plan")
    more = rounds.loops(plan, task)  # only what stops a loop completes it
    if plan.open_tasks == 0 and plan.failed_tasks == 0 and plan.completed_at is None and not more:
        plan = tx.update(Plan, plan.id, completed_at=tx.now())
        if task.origin not in _ADDED_AT_THE_END:
            tx.append(happened("plan_completed", MACHINE, plan=plan))


def cancel_attempt(
    tx: Tx, attempt: Attempt, *, fence: int | None, actor: str = MACHINE, **changes: Any
) -> None:
    """End an attempt at the user's request; the caller moves its task."""
    ended = move_attempt(tx, attempt, AttemptState.CANCELLED, actor, fence=fence, interrupt="", **changes)
    withdraw_questions(tx, ended)
    withdraw_reviews(tx, ended)
    end_open_runs(tx, attempt, RunState.CANCELLED)


def begin_anew(tx: Tx, ids: Ids, task: Task, actor: str = MACHINE) -> Task:
    """Queue a task again whose attempt the user's decision has ended, unless that attempt is still ending."""
    last = tx.get(Attempt, task.attempt_id) if task.attempt_id else None
    going = task.status in (TaskState.RUNNING, TaskState.AWAITING_RESPONSE)
    if last is None or not going or last.state is not AttemptState.CANCELLED:
        return task
    plan = need(tx.get(Plan, task.plan_id), "the plan")
    following = new_attempt(
        tx, ids, plan, task, n=last.n + 1, evidence=last.evidence, healing=last.healing, advice=last.advice
    )
    about: dict[str, Any] = {"n": following.n}
    return move_task(tx, task, TaskState.QUEUED, "task_reopened", actor, about=about, attempt_id=following.id)


def move_question(tx: Tx, question: Question, target: QuestionState, actor: str, **facts: Any) -> Question:
    """Close a question and record it."""
    step("question", QUESTION, question.id, question.state, target)
    closed = tx.update(
        Question,
        question.id,
        expect={"state": question.state},
        state=target,
        answered_by=actor,
        answered_at=tx.now(),
        **facts,
    )
    plan = need(tx.get(Plan, question.plan_id), "the plan")
    event = f"question_{target.value.lower()}"
    tx.append(happened(event, actor, plan=plan, question=question.id, answer=closed.answer))
    return closed


def withdraw_questions(tx: Tx, attempt: Attempt) -> None:
    """Withdraw the questions of an ended attempt; a question that no other attempt waits for is closed."""
    for question in tx.find(Question, id=attempt.questions) if attempt.questions else ():
        if question.state is QuestionState.OPEN:
            left = tuple(one for one in question.asked_by if one != attempt.id)
            if left:
                tx.update(Question, question.id, asked_by=left)
            else:
                move_question(tx, question, QuestionState.WITHDRAWN, MACHINE)


def withdraw_escalations(tx: Tx, actor: str, *, plan_id: str = "", task_id: str = "") -> None:
    """Withdraw questions about failed tasks: the user has decided otherwise."""
    for question in open_ones(tx, plan_id=plan_id, task_id=task_id):
        move_question(tx, question, QuestionState.WITHDRAWN, actor)


def move_review(tx: Tx, review: Review, target: ReviewState, **facts: Any) -> Review:
    """Move a review to its end and record it: findings are claims, so the event has only their number and hash."""
    step("review", REVIEW, review.id, review.state, target)
    ended = tx.update(
        Review, review.id, expect={"state": review.state}, state=target, ended_at=tx.now(), **facts
    )
    told: dict[str, Any] = {
        "review": ended.id,
        "state": target.value,
        "patch_sha256": ended.patch_sha256,
        "findings": len(ended.findings),
        "blocking": len(blocking(ended.findings)),
        "findings_sha256": said_hash(ended.summary, ended.findings),
        "problem": ended.problem[:500],
    }
    run = need(tx.get(Run, ended.run_id), "the reviewer's run")
    tx.append(happened("review_ended", MACHINE, plan=_plan(tx, run), run=run, **told))
    return ended


def withdraw_reviews(tx: Tx, attempt: Attempt) -> None:
    """Withdraw the reviews of an ended attempt."""
    for review in tx.find(Review, attempt_id=attempt.id, state=ReviewState.ASKED):
        move_review(tx, review, ReviewState.WITHDRAWN)


def end_open_runs(tx: Tx, attempt: Attempt, target: RunState, **facts: Any) -> None:
    """End all open runs of an ended attempt."""
    for run in tx.find(Run, attempt_id=attempt.id):
        if run.state not in ENDED_RUN:
            ways = {RunState.RUNNING: "lost", RunState.QUEUED: "not_started"}
            move_run(tx, run, target, ended_by=ways.get(run.state, run.ended_by), **facts)
