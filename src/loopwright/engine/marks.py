"""How the items of a plan's source were marked when it was last seen, and when it was last told."""

from collections.abc import Mapping
from typing import Any

from loopwright.core.model import SourceMarks
from loopwright.ports import Tx


def marks_of(tx: Tx, plan_id: str) -> Mapping[str, Any]:
    """Return both marks of each item, by its key."""
    found = tx.get(SourceMarks, plan_id)
    return found.marks if found is not None else {}


def keep_marks(tx: Tx, plan_id: str, marks: Mapping[str, Any]) -> None:
    """Note both marks of each item."""
    if tx.get(SourceMarks, plan_id) is None:
        tx.insert(SourceMarks(id=plan_id, marks=marks))
    else:
        tx.update(SourceMarks, plan_id, marks=marks)
