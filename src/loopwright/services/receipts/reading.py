"""Read what a receipt says: its text, its overrides, its sandboxes, and its verdicts on single trees."""

from loopwright.core.receipts.build import render
from loopwright.core.receipts.decisions import decided
from loopwright.core.receipts.sandboxes import sandboxes
from loopwright.core.receipts.verdicts import unseen_asked, verdict_on

__all__ = ["decided", "render", "sandboxes", "unseen_asked", "verdict_on"]
