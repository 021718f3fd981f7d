"""Promises about who works where."""

from tests.simulation.promises.invariants import Problems, Watch, moves, on_commit
from tests.simulation.rows import Change

from loopwright.core.policy.graph import claims, scopes_overlap
from loopwright.core.rows.model import Attempt, Task
from loopwright.core.values.states import LIVE_ATTEMPT, AttemptState, TaskState


@on_commit(Attempt)
def nobody_starts_where_another_one_works(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """No attempt begins while another one of its plan is under way, or parked, on paths that it claims."""
    for change in moves(changes, Attempt, AttemptState.PREPARING):
        if change.after.leg > 1:
            continue  # it had begun, and kept its place while it waited for the budget
        mine = watch.all(Task)[change.after.task_id]
        under_way = [
            watch.all(Task)[one.task_id]
            for one in watch.all(Attempt).values()
            if one.plan_id == mine.plan_id
            and one.state in LIVE_ATTEMPT - {AttemptState.QUEUED}
            and one.task_id != mine.id
        ]
        for other in under_way:
            # One that was cancelled holds nothing: its work goes nowhere.
            if other.status is not TaskState.CANCELLED and scopes_overlap(claims(mine), claims(other)):
                yield f"{name} starts {mine.key} while {other.key} has {claims(other)}"
