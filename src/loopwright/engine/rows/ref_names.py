"""Names in the user's repository. Refs contain only Loopwright's own ids; the user's key is data."""

from collections.abc import Collection

from loopwright.core.rows.model import Attempt, Plan, Run, Task
from loopwright.core.values.ids import Kind, short_id
from loopwright.ports import PlannedTask, Trailers


def attempt_ref(attempt: Attempt) -> str:
    """Return the ref that pins an attempt's work."""
    return f"refs/loopwright/attempts/{attempt.plan_id}/{attempt.task_id}/{attempt.n}"


def taken_ref(plan_id: str, sha: str) -> str:
    """Return the ref that keeps a commit that was removed from a plan's branch."""
    return f"refs/loopwright/attempts/{plan_id}/taken/{sha}"


def plan_branch(plan_id: str, taken: Collection[str] = ()) -> str:
    """Return the branch that a plan's tasks land on: with the short id, unless another plan has that branch."""
    short = f"loopwright/{short_id(plan_id)}/main"
    return short if short not in taken else f"loopwright/{plan_id}/main"


def beside(plan: Plan, id_: str) -> str:
    """Return the name of another branch of a plan, beside the one that its tasks land on."""
    return f"{plan.branch.rpartition('/')[0]}/{id_}"


def hand_branch(plan: Plan, task: Task) -> str:
    """Return the branch on which the user does a task by hand."""
    return beside(plan, task.id)


def is_hand_branch(name: str) -> bool:
    """Return whether the user does a task by hand on this branch."""
    return name.startswith("loopwright/") and name.rpartition("/")[2].startswith(f"{Kind.TASK.value}_")


def commit_subject(task: Task | PlannedTask) -> str:
    """Return the first line of a task's commits."""
    return " ".join(f"feat({task.key}): {task.title}".split())[:200]


def trailers(attempt: Attempt, run: Run) -> Trailers:
    """Return the trailers that name a commit's plan and task."""
    return Trailers(plan=attempt.plan_id, task=attempt.task_id, attempt=attempt.id, run=run.id)
