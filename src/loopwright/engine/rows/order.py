"""Keep `Task.early` right: it changes when a task ends, fails, waits for the user, or is taken over."""

from collections.abc import Iterable

from loopwright.core.policy.order import holds_up, is_early, is_met, rests
from loopwright.core.rows.model import Task
from loopwright.ports import Tx


def follow_order(tx: Tx, before: Task, after: Task) -> None:
    """Release the tasks that may start now that a task has changed, and hold up those that may not."""
    if (is_met(before), rests(before)) == (is_met(after), rests(after)):
        return
    changed = [after]
    if rests(before) or rests(after):
        changed += _dependents(tx, after)
    _recount(tx, (one for task in changed for one in task.followers))


def count_order(tx: Tx, plan_id: str) -> None:
    """Compute `early` for a whole plan: after its tasks were written or reordered."""
    tasks = {task.id: task for task in tx.find(Task, plan_id=plan_id)}
    left = {task.id: len(task.after) for task in tasks.values()}
    order = [task_id for task_id, count in left.items() if not count]
    for task_id in order:
        task = tasks[task_id]
        early = is_early(task, tasks.__getitem__)
        if task.early != early:
            tasks[task_id] = tx.update(Task, task_id, early=early)
        for follower in task.followers:
            left[follower] -= 1
            if not left[follower]:
                order.append(follower)


def holding_up(tasks: dict[str, Task], task: Task) -> list[Task]:
    """Return the tasks that a task waits for because they come first in the order of the source."""
    if not task.early:
        return []
    todo, seen, found = list(task.after), set(task.after), []
    while todo:
        one = tasks[todo.pop(0)]
        if holds_up(one, tasks.__getitem__):
            found.append(one)
        else:
            new = [each for each in one.after if each not in seen]
            seen.update(new)
            todo += new
    return found


def _recount(tx: Tx, ids: Iterable[str]) -> None:
    def get(task_id: str) -> Task:
        task = tx.get(Task, task_id)
        assert task is not None, "a task of the order is a row"
        return task

    todo = list(dict.fromkeys(ids))
    while todo:
        task = get(todo.pop(0))
        early = is_early(task, get)
        if early != task.early:
            tx.update(Task, task.id, early=early)
            todo += [one for one in task.followers if one not in todo]


def _dependents(tx: Tx, task: Task) -> list[Task]:
    """Return the tasks that depend on one, directly or through others."""
    found: dict[str, Task] = {}
    todo = [task]
    while todo:
        new = [one for one in todo.pop().dependents if one not in found]
        rows = tx.find(Task, id=new) if new else []
        found.update({row.id: row for row in rows})
        todo += rows
    return list(found.values())
