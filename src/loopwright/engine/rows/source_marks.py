"""The marks of a plan's source items: those last read from it, and those last written to it."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from loopwright.core.rows.source_rows import SourceMarks
from loopwright.core.values.states import PlanState
from loopwright.ports import Mark, PlannedTask, Tx

TAKEN_IN: Final = (PlanState.DRAFT, PlanState.DISPATCHING, PlanState.RUNNING)
"""In these states, the user's changes to a plan's source are followed."""
SETTLED: Final = (Mark.DONE, Mark.SKIPPED)
"""Items that do not become tasks: they need no work."""


def is_new(mark: Mark, known: Iterable[str] | None) -> bool:
    """Return whether an item without a task gets one: it is new, or it was settled and is open again."""
    return mark not in SETTLED and (known is None or set(known) <= {one.value for one in SETTLED})


def is_theirs(mark: Mark, known: Iterable[str] | None, now: Mark) -> bool:
    """Return whether the user set an item's mark that Loopwright has not seen; `now` is its task's status."""
    return mark.value not in {*(known or (Mark.OPEN.value,)), now.value, Mark.RUNNING.value}


def edited(
    items: Iterable[PlannedTask], known: Mapping[str, Any], states: Mapping[str, Mark]
) -> tuple[PlannedTask, ...]:
    """Return the items that the user added, opened again or marked since Loopwright last read the source.

    `known` has both marks of each item, `states` the states of the tasks, by key.
    """
    return tuple(
        item
        for item in items
        if (
            is_theirs(item.mark, known.get(item.key), states[item.key])
            if item.key in states
            else is_new(item.mark, known.get(item.key))
        )
    )


def marks_of(tx: Tx, plan_id: str) -> Mapping[str, Any]:
    """Return both marks of each item, by its key."""
    found = tx.get(SourceMarks, plan_id)
    return found.marks if found is not None else {}


def keep_marks(tx: Tx, plan_id: str, marks: Mapping[str, Any]) -> None:
    """Store both marks of each item."""
    if tx.get(SourceMarks, plan_id) is None:
        tx.insert(SourceMarks(id=plan_id, marks=marks))
    else:
        tx.update(SourceMarks, plan_id, marks=marks)
