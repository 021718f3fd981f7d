"""The warning that a cap is nearly used up: said once of each, and shown for as long as it holds."""

from datetime import datetime
from typing import Any, Final

from loopwright.core.policy import budget
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import AGENT_ROLES, Plan, Run, Task
from loopwright.core.values.event_values import RecordedEvent
from loopwright.core.values.states import RunState, TaskState
from loopwright.engine.rows.moves import MACHINE
from loopwright.ports import Tx

_EVENT: Final = "budget_near"
_GOES_ON: Final = frozenset({TaskState.QUEUED, TaskState.RUNNING, TaskState.AWAITING_RESPONSE})


def warn(tx: Tx, plan: Plan, run: Run, these: budget.Caps) -> None:
    """Say of each of these caps that is nearly used up that it is, unless that was said before.

    Whoever adopts a run hears all of it once more, and the next run of a plan finds the same caps.
    """
    near = [cap for cap in these if cap.is_near]
    said = tx.events(plan=plan.id, types=(_EVENT,)) if near else []
    for cap in near:
        if not any(_is_of(one, cap.setting, cap.limit, run, tx.now()) for one in said):
            told: dict[str, Any] = {
                "cap": cap.setting,
                "spent_micros": cap.spent,
                "limit_micros": cap.limit,
            }
            tx.append(happened(_EVENT, MACHINE, plan=plan, run=run, **told))


def _is_of(said: RecordedEvent, setting: str, limit: int, run: Run, now: datetime) -> bool:
    if (said.payload["cap"], said.payload["limit_micros"]) != (setting, limit):
        return False
    # What begins anew with each run, task and day is warned of anew.
    if setting == "max_cost_per_run":
        return said.run == run.id
    if setting == "max_cost_per_task":
        return said.task == run.task_id
    return setting != "max_cost_per_day" or said.at.date() == now.date()


def in_force(tx: Tx, plan: Plan, these: budget.Caps) -> dict[str, str]:
    """Return the warnings of a plan that still hold, by the setting of their cap."""
    found: dict[str, str] = {}
    for said in tx.events(plan=plan.id, types=(_EVENT,)):
        cap = next((one for one in these if one.setting == said.payload["cap"]), None)
        if cap is None or cap.limit != said.payload["limit_micros"] or not _holds(tx, said, cap):
            continue
        spent = max(cap.spent, said.payload["spent_micros"])
        found[cap.setting] = budget.Cap(setting=cap.setting, limit=cap.limit, spent=spent).warning
    return found


def _holds(tx: Tx, said: RecordedEvent, cap: budget.Cap) -> bool:
    """Say whether what was warned of goes on, and is not used up by now."""
    if cap.setting == "max_cost_per_run":
        run = tx.get(Run, said.run or "")
        return run is not None and run.state is RunState.RUNNING
    if cap.setting == "max_cost_per_task":
        task = tx.get(Task, said.task or "")
        spent = sum(one.cost_micros or 0 for one in tx.find(Run, task_id=said.task, role=AGENT_ROLES))
        return task is not None and task.status in _GOES_ON and spent < cap.limit
    today = cap.setting != "max_cost_per_day" or said.at.date() == tx.now().date()
    return today and cap.spent < cap.limit
