"""The types of a receipt, and its content: its text, its decisions, and its verdicts on single trees."""

from loopwright.core.receipts.events import decided
from loopwright.core.receipts.gaps import Gap
from loopwright.core.receipts.model import FinishEntry, Receipt, render
from loopwright.core.receipts.verdicts import held_out_tasks, is_passed

__all__ = [
    "FinishEntry",
    "Gap",
    "Receipt",
    "decided",
    "held_out_tasks",
    "is_passed",
    "render",
]
