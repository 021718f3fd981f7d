"""What is known of the attempts at one task."""

from loopwright.core.policy.earlier_tries import Try, tries
from loopwright.core.rows.model import Attempt, Role, Run
from loopwright.ports import Tx


def tries_before(tx: Tx, attempt: Attempt) -> tuple[Try, ...]:
    """Return what the attempts before this one tried and how each failed, the oldest first."""
    if attempt.n == 1:
        return ()
    attempts = tx.find(Attempt, task_id=attempt.task_id)
    return _tries(tx, [one for one in attempts if one.n <= attempt.n])


def _tries(tx: Tx, attempts: list[Attempt]) -> tuple[Try, ...]:
    runs = tx.find(
        Run, attempt_id=tuple(one.id for one in attempts), role=Role.IMPLEMENTER, order_by=("created_at",)
    )
    return tries(attempts, {run.attempt_id: run.summary for run in runs if run.attempt_id and run.summary})
