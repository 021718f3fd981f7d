"""Create attempts and runs that wait for their turn."""

from dataclasses import replace

from loopwright.core.policy import fallback
from loopwright.core.rows.model import Attempt, Plan, Review, Role, Run, Task
from loopwright.core.values.healing import CONSULTS, HealStep
from loopwright.core.values.ids import Kind
from loopwright.core.values.permissions import Access
from loopwright.core.values.states import AttemptState, RunState
from loopwright.ports import Ids, Tx


def new_run(tx: Tx, ids: Ids, attempt: Attempt, plan: Plan) -> Run:
    """Create the queued run of an attempt, for an agent that works or one that answers."""
    answer = plan.policy.answer
    consults = attempt.healing in CONSULTS
    role = Role(answer.role) if answer else Role.INVESTIGATOR if consults else Role.IMPLEMENTER
    mode = Access.READ_ONLY.value if answer or consults else plan.policy.permission_mode
    return _queued(tx, ids, attempt, attempt.id, role=role, permission_mode=mode)


def new_review_run(tx: Tx, ids: Ids, review: Review) -> Run:
    """Create the next queued run of a review."""
    mode = Access.READ_ONLY.value
    return _queued(
        tx, ids, review, review.attempt_id, role=Role.REVIEWER, permission_mode=mode, label=review.id
    )


def _queued(
    tx: Tx,
    ids: Ids,
    of: Attempt | Review,
    attempt_id: str,
    *,
    role: Role,
    permission_mode: str,
    label: str = "",
) -> Run:
    run = Run(
        id=ids(Kind.RUN),
        plan_id=of.plan_id,
        task_id=of.task_id,
        attempt_id=attempt_id,
        role=role,
        state=RunState.QUEUED,
        label=label,
        agent=of.agent,
        model=of.model,
        permission_mode=permission_mode,
        created_at=tx.now(),
    )
    tx.insert(run)
    return run


def new_attempt(
    tx: Tx,
    ids: Ids,
    plan: Plan,
    task: Task,
    *,
    n: int,
    evidence: str = "",
    stands_in: str = "",
    healing: HealStep | None = None,
    advice: str = "",
) -> Attempt:
    """Create a queued attempt with its queued run."""
    now = tx.now()
    agent, model = fallback.meant(task, plan.policy)
    if healing in CONSULTS and plan.policy.heal.investigator is not None:
        agent, model = fallback.named(plan.policy.heal.investigator)
    attempt = Attempt(
        id=ids(Kind.ATTEMPT),
        plan_id=plan.id,
        task_id=task.id,
        n=n,
        state=AttemptState.QUEUED,
        agent=agent,
        model=model,
        note=task.note,
        evidence=evidence,
        stands_in=stands_in,
        healing=healing,
        advice=advice,
        created_at=now,
        updated_at=now,
    )
    attempt = replace(attempt, run_id=new_run(tx, ids, attempt, plan).id)
    tx.insert(attempt)
    return attempt
