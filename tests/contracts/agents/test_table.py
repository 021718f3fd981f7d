"""The table in the documentation is of these adapters and these behaviours, and tells nothing that was not seen."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.contracts.agents.subjects import SUBJECTS
from tests.contracts.agents.table import as_table
from tests.tables_plugin import AGENTS

FILE = Path(__file__).parents[3] / "docs/reference/agents.json"


def test_the_table_is_of_the_present_suite_and_everything_in_it_is_kept() -> None:
    kept = {(subject.name, name): True for subject in SUBJECTS for name in subject.behaviours()}
    assert json.loads(FILE.read_text(encoding="utf-8")) == as_table(kept), "run `make agents-table`"


def test_a_part_of_the_suite_makes_no_table(tmp_path: Path) -> None:
    suite = [
        "-m",
        "pytest",
        str(Path(__file__).with_name("test_conformance.py")),
        "-k",
        "scripted-auth",
        "-n",
        "0",
    ]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, *suite, AGENTS.option, str(tmp_path / "table.json")],
        cwd=FILE.parents[1],
        env=env,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 4, done.stdout
    assert "needs the whole suite: nothing was seen of" in done.stderr
    assert not (tmp_path / "table.json").exists()
