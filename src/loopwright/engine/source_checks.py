"""What of a changed source a running plan takes over: nothing that an agent could have decided by writing it there.

An agent that nothing contained could have changed the file as well as a person, and would be judged by what it wrote.
So what its tasks are judged by stays as it was when the plan was made; a new plan of the source takes it over. And what
was written while such an agent ran ticks, removes, opens and adds nothing: only a person decides that.
"""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from loopwright.core.containment import Containment
from loopwright.core.events import happened
from loopwright.core.model import Loop, Plan, Run, Task
from loopwright.core.states import RunState
from loopwright.engine.moves import MACHINE, need
from loopwright.engine.submit import taken_in_by
from loopwright.ports import PlannedTask, Tx

log = logging.getLogger(__name__)

JUDGED: Final = ("acceptance", "scope")
"""What a task is checked by, and the paths at which files of the gate are its own to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What became of a changed item: what is taken over, and what stays as it was."""

    changes: dict[str, Any]
    kept: tuple[str, ...] = ()


def could_be_an_agents(tx: Tx, plan: Plan) -> bool:
    """Say whether something ran for this plan that could have changed its source."""
    return bool(tx.find(Run, plan_id=plan.id, sandbox=Containment.NONE.value, limit=1))


def written_beside_an_agent(tx: Tx, plan: Plan, at: datetime) -> bool:
    """Say whether something ran for this plan at that moment that could have changed its source."""
    runs = tx.find(Run, plan_id=plan.id, sandbox=Containment.NONE.value)
    begun = [run for run in runs if run.state is not RunState.QUEUED]
    return any(
        (run.started_at or run.created_at) <= at and (run.ended_at is None or at <= run.ended_at)
        for run in begun
    )


def followed(tx: Tx, plan: Plan, task: Task, item: PlannedTask, names: Sequence[str]) -> Followed:
    """Compare a task with its item in the source by the fields of these names."""
    said = {name: getattr(item, name) for name in names}
    changes = {name: value for name, value in said.items() if value != getattr(task, name)}
    judged = tuple(name for name in JUDGED if name in changes)
    if not judged or not could_be_an_agents(tx, plan):
        return Followed(changes=changes)
    return Followed(
        changes={name: value for name, value in changes.items() if name not in judged}, kept=judged
    )


def tell_kept(tx: Tx, plan: Plan, task: Task, item: PlannedTask, kept: Sequence[str]) -> None:
    """Say once for each change that the checks stay as they were, why, and how a person gets theirs in."""
    if not kept:
        return
    asked = hashlib.sha256(repr([getattr(item, name) for name in kept]).encode()).hexdigest()
    before = tx.events(plan=plan.id, types=("checks_kept",))
    if any(one.task == task.id and one.payload["asked"] == asked for one in before):
        return
    source = need(tx.get(Loop, plan.loop_id), "the loop").source_path
    reason = (
        f"{' and '.join(kept)} of {task.key} changed in {source} after an agent had run without a sandbox, "
        "which could have written that: what was there when the plan was made holds"
    )
    hint = f"if you changed it: {taken_in_by(plan, source)}"
    log.warning("checks kept", extra={"plan": plan.id, "task": task.key, "fields": list(kept)})
    tx.append(happened("checks_kept", MACHINE, plan=plan, task=task, reason=reason, hint=hint, asked=asked))


def tell_not_taken(tx: Tx, plan: Plan, changes: Sequence[str]) -> None:
    """Say what the source decides now and the plan does not follow, why, and how a person decides it."""
    source = need(tx.get(Loop, plan.loop_id), "the loop").source_path
    reason = (
        f"{source} was changed while an agent ran without a sandbox, which could have written that: "
        f"{'; '.join(changes[:10])}"
    )
    ways = "`loopwright cancel TASK` and `loopwright retry TASK` decide about one task"
    hint = f"if you changed it: {ways}; {taken_in_by(plan, source)}"
    log.warning("edit not taken", extra={"plan": plan.id, "changes": list(changes)})
    tx.append(
        happened("edit_not_taken", MACHINE, plan=plan, reason=reason, hint=hint, changes=list(changes[:50]))
    )
