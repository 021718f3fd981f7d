"""The order of a source: an item holds up those after it, as long as it continues without the user.

A dependency is waited for until it is complete. A task that only comes first is waited for while it can still
continue by itself. A task that failed, was cancelled, or waits for the user holds up nothing that only comes
after it.
"""

from collections.abc import Callable

from loopwright.core.rows.model import Task
from loopwright.core.values.states import TaskState

Get = Callable[[str], Task]
"""Returns a task of the plan by its id."""

_WAITS_FOR_YOU = frozenset({TaskState.ERROR, TaskState.CANCELLED, TaskState.AWAITING_RESPONSE})


def is_met(task: Task) -> bool:
    """Return whether a task that depends on this one may start: it is complete, or a manual step that you skipped."""
    return task.status is TaskState.COMPLETE or (task.manual and task.status is TaskState.CANCELLED)


def rests(task: Task) -> bool:
    """Return whether a task waits for the user for its own reason, not for another task's."""
    return not is_met(task) and (task.status in _WAITS_FOR_YOU or bool(task.taken_by))


def is_stuck(task: Task, get: Get) -> bool:
    """Return whether a task needs the user to continue: for itself, or because of its dependencies."""
    todo, seen = [task], {task.id}
    while todo:
        one = todo.pop()
        if rests(one):
            return True
        if one.status in (TaskState.CREATED, TaskState.QUEUED):
            new = [each for each in one.depends_on if each not in seen]
            seen.update(new)
            todo += [each for each in map(get, new) if not is_met(each)]
    return False


def holds_up(task: Task, get: Get) -> bool:
    """Return whether tasks that come later in the source wait for this one."""
    return not is_met(task) and not is_stuck(task, get)


def is_early(task: Task, get: Get) -> bool:
    """Return whether it is not yet a task's turn; skipped tasks pass on what comes before them."""
    before = [get(one) for one in task.after]
    return any(one.early for one in before) or any(holds_up(one, get) for one in before)
