"""What is known about the attempts at one task."""

from collections.abc import Sequence

from loopwright.core.healing.diagnosis import ASKS, Diagnosis, Seen, diagnose, signature, vote
from loopwright.core.healing.earlier_tries import Try, failed_tries, tries
from loopwright.core.rows.healing_rows import AttemptFailure
from loopwright.core.rows.model import Attempt, Plan, Role, Run, Task
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.ids import Kind, short_id
from loopwright.ports import Ids, Tx


def tries_before(tx: Tx, attempt: Attempt) -> tuple[Try, ...]:
    """Return what the attempts before this one tried and how each failed, the oldest first."""
    if attempt.n == 1:
        return ()
    attempts = [one for one in tx.find(Attempt, task_id=attempt.task_id) if one.n <= attempt.n]
    return tries(attempts, _said(_runs(tx, attempts, Role.IMPLEMENTER)))


def diagnosis_of(tx: Tx, task: Task) -> Diagnosis | None:
    """Return why a task most likely failed; None if that is known, or nothing failed."""
    if task.failure in ASKS:
        return None
    attempts = tx.find(Attempt, task_id=task.id)
    if not attempts:
        return None
    verdicts = _verdicts(_runs(tx, attempts, Role.GATE))
    ids = {one.n: one.id for one in attempts}
    found = failed_tries(attempts, _said(_runs(tx, attempts, Role.IMPLEMENTER)))
    return diagnose(
        [Seen(tried=one, verdict=verdicts.get(ids[one.n])) for one in found],
        name=short_id(task.id),
        title=task.title,
    )


def note_failure(tx: Tx, ids: Ids, plan: Plan, attempt: Attempt) -> AttemptFailure | None:
    """Record how an attempt failed, masked; do nothing if it did not fail by itself."""
    found = failed_tries([attempt], _said(_runs(tx, [attempt], Role.IMPLEMENTER)))
    if not found:
        return None
    seen = Seen(tried=found[0], verdict=_verdicts(_runs(tx, [attempt], Role.GATE)).get(attempt.id))
    signed = signature(seen)
    row = AttemptFailure(
        id=ids(Kind.FAILURE),
        project_id=plan.project_id,
        plan_id=plan.id,
        task_id=attempt.task_id,
        attempt_id=attempt.id,
        n=attempt.n,
        failure=seen.tried.failure,
        cause=vote(seen),
        signature=signed.id,
        step=signed.step,
        test=signed.test,
        file=signed.file,
        error=signed.error,
        created_at=tx.now(),
    )
    tx.insert(row)
    return row


def _runs(tx: Tx, attempts: Sequence[Attempt], role: Role) -> list[Run]:
    return tx.find(Run, attempt_id=[one.id for one in attempts], role=role, order_by=("created_at",))


def _said(runs: Sequence[Run]) -> dict[str, str]:
    return {run.attempt_id: run.summary for run in runs if run.attempt_id and run.summary}


def _verdicts(runs: Sequence[Run]) -> dict[str, Verdict]:
    """Return the gate's verdict on each attempt: the newest failure, else the newest verdict."""
    found = [(run.attempt_id, run.verdict) for run in runs if run.attempt_id and run.verdict is not None]
    failed = [(of, one) for of, one in found if one.status is VerdictStatus.FAILED]
    return {**dict(found), **dict(failed)}
