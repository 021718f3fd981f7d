"""Times on the clock of this machine."""

from datetime import UTC, datetime

from tests.unit.cli.screens.golden_screens import in_berlin

from loopwright.cli.shell.lines import in_local_time, local_time
from loopwright.core.values.documents import plain

AT = datetime(2026, 3, 1, 23, 30, 5, tzinfo=UTC)


def test_a_screen_has_local_times_and_json_has_utc() -> None:
    with in_berlin():
        assert local_time(AT) == "2026-03-02 00:30:05"
        assert local_time(AT, seconds=False) == "2026-03-02 00:30"
        assert plain(AT) == "2026-03-01T23:30:05+00:00"


def test_the_times_in_a_text_become_local_and_everything_else_stays() -> None:
    said = "parked until 2026-03-01 23:30:05 UTC; day 2026-03-01, by UTC; again at 2026-03-01 23:30 UTC"
    with in_berlin():
        assert (
            in_local_time(said)
            == "parked until 2026-03-02 00:30:05; day 2026-03-01, by UTC; again at 2026-03-02 00:30"
        )
