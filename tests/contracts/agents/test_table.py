"""The table in the documentation is of these adapters and these behaviours, and tells nothing that was not seen."""

import json
from pathlib import Path

from tests.contracts.agents.subjects import SUBJECTS
from tests.contracts.agents.table import as_table

FILE = Path(__file__).parents[3] / "docs/agents.json"


def test_the_table_is_of_the_present_suite_and_everything_in_it_is_kept() -> None:
    kept = {(subject.name, name): True for subject in SUBJECTS for name in subject.behaviours()}
    assert json.loads(FILE.read_text(encoding="utf-8")) == as_table(kept), "run `make agents-table`"
