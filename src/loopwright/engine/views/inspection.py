"""What the rows say about a run, for an inspection packet."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loopwright.core.plans.inspection_packets import MOST_EVENTS
from loopwright.core.rows.model import Attempt, Plan, Run, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.documents import document
from loopwright.ports import Tx

_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """One run with everything around it."""

    run: Run
    plan: Plan | None
    task: Task | None
    attempt: Attempt | None
    events: tuple[Mapping[str, Any], ...]
    left_out: int
    questions: tuple[Question, ...]

    @property
    def errors(self) -> tuple[str, ...]:
        """What went wrong, in the order in which it did."""
        told = []
        if self.run.failure is not None:
            told.append(f"run: {self.run.failure.value} {self.run.summary}".strip())
        if self.attempt is not None and self.attempt.detail:
            told.append(f"attempt {self.attempt.n}: {self.attempt.detail}")
        if self.task is not None and self.task.reason:
            told.append(f"task: {self.task.reason}")
        return tuple(told)


def inspected(tx: Tx, run: Run) -> Inspected:
    """Gather what is about one run: its own events, and those of its attempt."""
    found: list[Mapping[str, Any]] = []
    after = 0
    while page := tx.events(after=after, limit=_PAGE, plan=run.plan_id):
        after = page[-1].n
        found += [
            document(one)
            for one in page
            if one.run == run.id or (run.attempt_id and one.attempt == run.attempt_id)
        ]
    asked = tx.find(Question, plan_id=run.plan_id)
    return Inspected(
        run=run,
        plan=tx.get(Plan, run.plan_id),
        task=tx.get(Task, run.task_id) if run.task_id else None,
        attempt=tx.get(Attempt, run.attempt_id) if run.attempt_id else None,
        events=tuple(found[-MOST_EVENTS:]),
        left_out=max(0, len(found) - MOST_EVENTS),
        questions=tuple(one for one in asked if run.id == one.run_id or run.attempt_id in one.asked_by),
    )
