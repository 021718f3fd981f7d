"""What the rows know of what a plan's tasks landed: the verdicts on it, and who looked at it."""

from collections.abc import Iterable

from loopwright.core.plans.coverage import Facts, Looked, Ran
from loopwright.core.rows.model import Attempt, Plan, Review, Role, Run, Task, VerdictRecord
from loopwright.core.values.states import AttemptState, ReviewState, TaskState
from loopwright.engine.people.handover import HUMAN
from loopwright.ports import Tx


def landed_facts(tx: Tx, plan: Plan) -> list[tuple[Task, Facts]]:
    """Return a plan's tasks, each with what is known of what it landed; what did not land proves nothing."""
    attempts: dict[str, list[Attempt]] = {}
    for one in tx.find(Attempt, plan_id=plan.id, state=AttemptState.LANDED, order_by=("created_at",)):
        attempts.setdefault(one.task_id, []).append(one)
    rows = _Rows(tx, plan)
    found = []
    for task in tx.find(Task, plan_id=plan.id, order_by=("position",)):
        attempt = _landed(task, attempts.get(task.id, ()))
        nothing = f"nothing of it has landed, the task is {task.status.value}"
        found.append((task, rows.facts(task, attempt) if attempt else Facts(nothing=nothing)))
    return found


def _landed(task: Task, attempts: Iterable[Attempt]) -> Attempt | None:
    """Return the attempt whose work is on the plan's branch, or that showed that nothing had to be changed."""
    same = [one for one in attempts if one.candidate_sha == task.landed_sha]
    return same[-1] if same and task.status is TaskState.COMPLETE else None


class _Rows:
    """The verdicts and reviews of one plan."""

    def __init__(self, tx: Tx, plan: Plan) -> None:
        self._plan = plan
        self._records = tx.find(VerdictRecord, plan_id=plan.id, order_by=("created_at",))
        self._runs = {run.id: run for run in tx.find(Run, id=[one.run_id for one in self._records])}
        self._gated = next((one for one in self._records if one.run_id == plan.verify_run_id), None)
        self._reviews = {one.id: one for one in tx.find(Review, plan_id=plan.id)}

    def facts(self, task: Task, attempt: Attempt) -> Facts:
        commit = attempt.candidate_sha or attempt.candidate_parent
        pinned = attempt.gate_files.pinned_tree if attempt.gate_files is not None else None
        trees = {attempt.candidate_tree, pinned} - {None}
        ran = []
        for one in self._records:
            whole = self._verifies(one)
            # How a tree was before the next task's work says nothing of who landed it.
            before = self._runs[one.run_id].role is Role.BASELINE
            if before or (not whole and one.tree not in trees):
                continue
            ran.append(
                Ran(
                    verdict_id=one.id,
                    run_id=one.run_id,
                    role=self._runs[one.run_id].role.value,
                    tree=one.tree,
                    commit=self._plan.result_sha if whole else commit,
                    at=one.created_at,
                    verdict=one.verdict,
                )
            )
        return Facts(ran=tuple(ran), looked=self._looks(task, attempt, commit))

    def _verifies(self, record: VerdictRecord) -> bool:
        """Return whether the plan ended with this verdict on all tasks together, or on what was held out from one."""
        gated = self._gated
        if (
            gated is None
            or self._plan.verified_at is None
            or self._runs[record.run_id].role is not Role.VERIFY
        ):
            return False
        return record.tree == gated.tree and record.created_at >= gated.created_at

    def _looks(self, task: Task, attempt: Attempt, commit: str | None) -> tuple[Looked, ...]:
        found = []
        review = self._reviews.get(attempt.review_id or "")
        if review is not None and review.state is ReviewState.CLEAR:
            by = " ".join(filter(None, (review.agent, review.model)))
            at, whole = review.ended_at, review.shown_whole
            found.append(Looked(by=by, review_id=review.id, commit=commit, at=at, whole=whole))
        if task.reviewed_by and attempt.agent != HUMAN:
            found.append(Looked(by=task.reviewed_by, commit=commit))
        return tuple(found)
