"""What people decided about a task, for those who look at it."""

from dataclasses import dataclass
from typing import Any

from loopwright.core.receipts.receipt_overrides import OVERRIDES, in_words, overrides
from loopwright.core.rows.model import Task
from loopwright.engine.rows.moves import MACHINE
from loopwright.ports import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionView:
    """One decision of a person."""

    at: str
    actor: str
    type: str
    words: str
    """What was done and said, on one line."""
    note: str


def decisions_about(tx: Tx, task: Task) -> tuple[DecisionView, ...]:
    """Return what people decided about a task, the oldest first."""
    found: list[dict[str, Any]] = overrides(
        tx.events(plan=task.plan_id, task=task.id, types=tuple(sorted(OVERRIDES))), machine=MACHINE
    )
    return tuple(
        DecisionView(
            at=one["at"], actor=one["actor"], type=one["type"], words=in_words(one), note=one["note"]
        )
        for one in found
    )
