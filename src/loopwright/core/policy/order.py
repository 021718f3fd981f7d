"""The order of a source: what comes first holds up what comes after it, as long as it continues without you.

A dependency is waited for until it is complete. A task that only comes first is waited for while it can still continue
by itself. One that failed, was cancelled, or waits for you holds up nothing that only comes after it.
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
    """Return whether a task waits for you for its own reason, not for another task's."""
    return not is_met(task) and (task.status in _WAITS_FOR_YOU or bool(task.taken_by))


def is_stuck(task: Task, get: Get) -> bool:
    """Return whether a task does not continue without you: by itself, or because of what it depends on."""
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
    """Return whether what comes after a task waits for it."""
    return not is_met(task) and not is_stuck(task, get)


def is_early(task: Task, get: Get) -> bool:
    """Return whether it is not yet a task's turn; a task that is out of the way passes on what comes before it."""
    before = [get(one) for one in task.after]
    return any(one.early for one in before) or any(holds_up(one, get) for one in before)
