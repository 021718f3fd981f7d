"""`quota` says of each part of an account what it is paid with and what is known of it."""

from datetime import UTC, datetime

from tests.cases import each_case

from loopwright.core.rows.waiting_rows import QuotaKind, QuotaWindow
from loopwright.services.quota import window_in_words

RESET = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@each_case(
    ("window", "said"),
    [
        (QuotaWindow(name="odd"), "odd"),
        (
            QuotaWindow(name="five_hour", kind=QuotaKind.SUBSCRIPTION, used=0.93, resets_at=RESET),
            "five_hour  (subscription)  93% used  resets 2026-01-02 03:04:05 UTC",
        ),
        (
            QuotaWindow(name="seven_day", kind=QuotaKind.WEEKLY, used=1.0, rejected=True),
            "seven_day  (subscription, weekly)  100% used  refused",
        ),
        (QuotaWindow(name="credits", kind=QuotaKind.CREDITS, left="12.50"), "credits  (credits)  12.50 left"),
        (
            QuotaWindow(name="individualLimit", kind=QuotaKind.CREDITS, used=0.85, left="8 of 9 used"),
            "individualLimit  (credits)  85% used  8 of 9 used",
        ),
        (QuotaWindow(name="api_key", kind=QuotaKind.DOLLARS), "api_key  (each call is paid for)"),
    ],
)
def test_each_kind_is_told_in_its_own_words(window: QuotaWindow, said: str) -> None:
    assert window_in_words(window, closed=True) == said
