"""Names that appear in the user's repository. Only our own ids are in refs; the user's key is data."""

from loopwright.core.model import Attempt, Run, Task
from loopwright.ports import Trailers


def attempt_ref(attempt: Attempt) -> str:
    """Return where an attempt's work is pinned."""
    return f"refs/loopwright/attempts/{attempt.plan_id}/{attempt.task_id}/{attempt.n}"


def taken_ref(plan_id: str, sha: str) -> str:
    """Return what keeps a commit that was taken off a plan's branch again."""
    return f"refs/loopwright/attempts/{plan_id}/taken/{sha}"


def plan_branch(plan_id: str) -> str:
    """Return the branch that a plan's tasks land on."""
    return f"loopwright/{plan_id}/main"


def hand_branch(task: Task) -> str:
    """Return the branch on which a person does a task by hand."""
    return f"loopwright/{task.plan_id}/{task.id}"


def commit_subject(task: Task) -> str:
    """Return the first line of a task's commits."""
    return " ".join(f"feat({task.key}): {task.title}".split())[:200]


def trailers(attempt: Attempt, run: Run) -> Trailers:
    """Return who a commit belongs to."""
    return Trailers(plan=attempt.plan_id, task=attempt.task_id, attempt=attempt.id, run=run.id)
