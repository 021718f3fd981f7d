"""Which changes of a source a running plan follows: never checks that an agent could have rewritten.

An agent that nothing contained could have changed the file like a user, and would be checked by what it
wrote. So the checks of its tasks stay as they were when the plan was made; a new plan of the source takes new
ones.
"""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from loopwright.core.plans.evaluating import alone
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Loop, Plan, Run, Task
from loopwright.core.values.containment import Containment
from loopwright.engine.intake.submit import taken_in_by
from loopwright.engine.rows.added_tasks import task_row
from loopwright.engine.rows.moves import MACHINE, need
from loopwright.ports import PlannedTask, Tx

log = logging.getLogger(__name__)

JUDGED: Final = ("acceptance", "held_out", "scope")
"""The checks of a task, and the judging files that it may change."""
WORDS: Final = (
    "title",
    "description",
    "criteria",
    "section",
    *JUDGED,
    "priority",
    "agent",
    "model",
    "type",
    "complexity",
    "prove",
    "max_attempts",
)
"""Other fields of a task in the source, without its state and its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """The result for a changed item: what is followed, and what stays."""

    changes: dict[str, Any]
    kept: tuple[str, ...] = ()
    against: str = ""
    """The objection to the change, if that is why something stays; otherwise an agent could have written it."""


def could_be_an_agents(tx: Tx, plan: Plan) -> bool:
    """Return whether something ran for this plan that could have changed its source."""
    return bool(tx.find(Run, plan_id=plan.id, sandbox=Containment.NONE.value, limit=1))


def followed(tx: Tx, plan: Plan, task: Task, item: PlannedTask, names: Sequence[str]) -> Followed:
    """Compare a task with its item in the source by these fields."""
    said = {name: _said(plan, task, item, name) for name in names}
    changes = {name: value for name, value in said.items() if value != getattr(task, name)}
    judged = tuple(name for name in JUDGED if name in changes)
    if judged and could_be_an_agents(tx, plan):
        return _without(changes, judged)
    against = alone(item) if "acceptance" in changes else ()
    if against:
        return _without(changes, ("acceptance",), against="; ".join(one.text for one in against))
    return Followed(changes=changes)


def _said(plan: Plan, task: Task, item: PlannedTask, name: str) -> Any:
    if name == "complexity":
        # If the source does not set it, it follows from the words, as when the plan was made.
        return task_row(task.id, plan, item, position=task.position, now=task.created_at).complexity
    if name == "max_attempts":
        # A retry gave it more than its file says; that is kept.
        said = item.max_attempts or task.max_attempts
        return max(said, task.max_attempts) if task.attempts else said
    if name in ("acceptance", "held_out") and task.manual:
        return ()
    return getattr(item, name)


def _without(changes: Mapping[str, Any], kept: tuple[str, ...], *, against: str = "") -> Followed:
    rest = {name: value for name, value in changes.items() if name not in kept}
    return Followed(changes=rest, kept=kept, against=against)


def tell_kept(tx: Tx, plan: Plan, task: Task, item: PlannedTask, new: Followed) -> None:
    """Report once for each change that the checks stay, why, and how the user can apply the new ones."""
    kept = new.kept
    if not kept:
        return
    asked = hashlib.sha256(repr([getattr(item, name) for name in kept]).encode()).hexdigest()
    before = tx.events(plan=plan.id, types=("checks_kept",))
    if any(one.task == task.id and one.payload["asked"] == asked for one in before):
        return
    source = need(tx.get(Loop, plan.loop_id), "the loop").source_path
    changed = f"{' and '.join(kept)} of {task.key} changed in {source}"
    if new.against:
        reason, hint = f"{changed}, and {new.against}: the old ones hold", "name a check that can fail"
    else:
        reason = (
            f"{changed} after an agent had run without a sandbox, which could have written that: "
            "what was there when the plan was made holds"
        )
        hint = f"if you changed it: {taken_in_by(plan, source)}"
    log.warning("checks kept", extra={"plan": plan.id, "task": task.key, "fields": list(kept)})
    tx.append(happened("checks_kept", MACHINE, plan=plan, task=task, reason=reason, hint=hint, asked=asked))
