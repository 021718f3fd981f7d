"""The table in the documentation is of these behaviours, and of what is expected of them."""

import json
from pathlib import Path

from tests.trust.table import PARTS, STAGES, as_table

FILE = Path(__file__).parents[2] / "docs/reference/trust.json"


def test_the_table_is_of_the_present_suite() -> None:
    expected = {
        key: {"ends": list(one.ends), "outcome": one.outcome}
        for stage in STAGES.values()
        for key, one in stage.behaviours.items()
    }
    assert json.loads(FILE.read_text(encoding="utf-8")) == as_table(expected), "run `make trust-table`"


def test_no_two_behaviours_or_stages_have_the_same_name() -> None:
    assert len(STAGES) == sum(map(len, PARTS)), "one would take the place of the other"
    keys = [key for stage in STAGES.values() for key in stage.behaviours]
    assert sorted(keys) == sorted(set(keys)), "one would take the place of the other in the table"
