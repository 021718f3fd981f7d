"""The evaluation of a track's result: a separate step before its plan is verified.

An agent that did none of the work evaluates it. Its findings become tasks, and it evaluates again, at most
`fix_cycles` times. A user who cancels that task decides that no agent has to evaluate it.
"""

from collections.abc import Sequence

from loopwright.core.replies.doc_sync import ORIGIN as DOCS
from loopwright.core.replies.qa import EVALUATION, TYPE
from loopwright.core.rows.model import Attempt, Plan, Task
from loopwright.core.values.states import AttemptState, PlanState, TaskState
from loopwright.engine.rows.added_tasks import add_task
from loopwright.engine.rows.moves import move_plan
from loopwright.engine.rows.source_marks import marks_of
from loopwright.ports import Ids, PlannedTask, Repository, Tx
from loopwright.prompts import packaged

KEY = "evaluate-execution"


def last_evaluated(tx: Tx, tasks: Sequence[Task]) -> Attempt | None:
    """Return the attempt with which the last evaluation passed; None if no agent's did."""
    mine = [one.id for one in tasks if one.origin == EVALUATION]
    found = (
        tx.find(Attempt, task_id=mine, state=AttemptState.LANDED, order_by=("created_at",)) if mine else []
    )
    return found[-1] if found else None


async def due(repository: Repository, tasks: Sequence[Task], passed: Attempt | None) -> bool:
    """Return whether an agent still has to evaluate the result; `passed` is the last evaluation that did."""
    mine = [one for one in tasks if one.origin == EVALUATION]
    if any(one.status is TaskState.CANCELLED for one in mine):
        return False
    if passed is None or passed.base_sha is None:
        # A user who passed it evaluated it.
        return not mine
    landed = [one.landed_sha for one in tasks if one.landed_sha and one.origin not in (EVALUATION, DOCS)]
    for sha in landed:
        if not await repository.is_ancestor(sha, passed.base_sha):
            return True
    return False


def add_evaluation(tx: Tx, ids: Ids, plan: Plan) -> Task:
    """Give the plan the task that evaluates the result, and let it run."""
    evaluation = plan.policy.evaluation
    assert evaluation is not None, "the plan has evaluators"
    tasks = tx.find(Task, plan_id=plan.id)
    taken = {*marks_of(tx, plan.id), *(one.key for one in tasks)}
    key = next(name for name in (KEY, *(f"{KEY}-{n}" for n in range(2, len(taken) + 3))) if name not in taken)
    done = [one for one in tasks if one.status is TaskState.COMPLETE and not one.origin]
    item = PlannedTask(
        key=key,
        title="Evaluate what the track made",
        description=packaged("parts/executed").fill({"tasks": "\n".join(map(_shown, done))}).strip(),
        acceptance=tuple(dict.fromkeys(command for one in done for command in one.acceptance)),
        type=TYPE,
        agent=evaluation.agent,
        model=evaluation.model,
    )
    reason = f"{key} has to evaluate the execution first"
    about = {"asked": key, "evaluators": list(evaluation.evaluators), "reason": reason}
    plan = move_plan(tx, plan, PlanState.RUNNING, "evaluation_due", about=about, reason="", completed_at=None)
    last = max((one.position for one in tasks), default=-1)
    return add_task(tx, ids, plan, item, position=last + 1, origin=EVALUATION)


def _shown(task: Task) -> str:
    commit = f" ({task.landed_sha[:12]})" if task.landed_sha else ""
    return "\n".join([f"- {task.key}: {task.title}{commit}", *(f"  - {one}" for one in task.criteria)])
