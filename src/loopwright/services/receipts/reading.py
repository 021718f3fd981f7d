"""Read what a receipt says: its text, its overrides, its sandboxes, and its verdicts on single trees."""

from loopwright.core.receipts.receipt_facts import unseen_asked, verdict_on
from loopwright.core.receipts.receipt_overrides import decided
from loopwright.core.receipts.receipt_sandboxes import sandboxes
from loopwright.core.receipts.receipts import render

__all__ = ["decided", "render", "sandboxes", "unseen_asked", "verdict_on"]
