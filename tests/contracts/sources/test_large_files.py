"""A thousand items in one file: read, judged and written back within a second of one processor."""

from pathlib import Path

from bench.cases.sources import LIMIT_S, case
from bench.measure import Setting


def test_a_thousand_items_take_less_than_a_second(tmp_path: Path) -> None:
    measured = list(case(Setting(folder=tmp_path, quick=True, repeats=1)))
    assert measured
    assert [one.name for one in measured if min(one.values) >= LIMIT_S] == []
