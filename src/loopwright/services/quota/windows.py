"""Accounts and their quota windows in words."""

from datetime import datetime

from loopwright.core.policy.quotas import label, standing
from loopwright.core.rows.waiting_rows import QuotaKind, QuotaWindow

__all__ = ["label", "standing", "window_in_words"]

_KINDS = {
    QuotaKind.SUBSCRIPTION: "  (subscription)",
    QuotaKind.WEEKLY: "  (subscription, weekly)",
    QuotaKind.CREDITS: "  (credits)",
    QuotaKind.DOLLARS: "  (each call is paid for)",
    QuotaKind.UNKNOWN: "",
}


def window_in_words(window: QuotaWindow, *, closed: bool = False) -> str:
    """Return what is known of one part of a quota; that it refused a run only while its account is closed."""
    used = "" if window.used is None else f"  {window.used:.0%} used"
    left = f"  {window.left}" if window.left else ""
    of = f"  of {window.model}" if window.model and window.model != window.name else ""
    if window.kind is QuotaKind.CREDITS and left and not window.left.endswith("used"):
        left += " left"
    refused = "  refused" if window.rejected and closed else ""
    return f"{window.name}{of}{_KINDS[window.kind]}{used}{left}{_resets(window.resets_at)}{refused}"


def _resets(at: datetime | None) -> str:
    return f"  resets {at:%Y-%m-%d %H:%M:%S} UTC" if at else ""
