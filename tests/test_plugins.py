"""The suite's own plugins: capability marks, and tests that need the machine for themselves."""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.capabilities_plugin import load_rows, marked_in
from tests.cases import each_case
from tests.order_plugin import pytest_collection_modifyitems

from loopwright.core.orchestrator.self_check import CLAUSES

ROOT = Path(__file__).resolve().parent.parent


TRAPS = {name: sentence for group in load_rows("trap").values() for name, sentence in group.items()}


ROWS = "db1a1d2159e4bd8681d94bc0b30dbe19d4dc81f20332901bda07bd91c1160127"
"""The digest of the rows of the mission's checklist, with their ids."""


CLAUSE_ROWS = "e6c852a0ccc70b5f1529487f23a73e25e4f3b593afcc2e0f41623b3dcf5fe1ec"
"""The digest of the clauses, with their ids."""


def run_pytest(folder: Path, source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the tests in `source` in a process of their own, with this project's plugins."""
    (folder / "test_sample.py").write_text(source, encoding="utf-8")
    (folder / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n    capability(*rows): x\n    trap(*names): x\n    serial: x\n"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-p", "tests.capabilities_plugin", "-p", "tests.serial_plugin"]
    unneeded = [word for name in ("anyio", "hypothesispytest", "randomly") for word in ("-p", f"no:{name}")]
    return subprocess.run(
        [*command, *unneeded, "-p", "no:cacheprovider", "--rootdir", str(folder), *arguments, str(folder)],
        cwd=folder,
        env=env | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_rows_are_numbered_without_gaps_and_have_titles_of_their_own() -> None:
    rows = {row: title for group in load_rows().values() for row, title in group.items()}
    assert list(rows) == [f"C{n:03}" for n in range(1, 121)]
    assert len(set(rows.values())) == len(rows)
    assert all(title and not title.endswith(".") for title in rows.values())


def test_the_table_shows_which_row_is_proven_by_which_test(tmp_path: Path) -> None:
    source = """
import pytest

@pytest.mark.capability("C025", "C027")
@pytest.mark.parametrize("n", [1, 2])
def test_it_runs(n):
    raise AssertionError("printing the table runs no test")
"""
    done = run_pytest(tmp_path, source, "--capabilities")
    assert done.returncode == 0, done.stdout + done.stderr
    proven = r"^C025  proven   Really invoke .*\n        test_sample.py::test_it_runs\nC026  not yet"
    assert re.search(proven, done.stdout, re.MULTILINE)
    assert "2 of 120 capabilities are proven by tests" in done.stdout
    assert f"0 of {len(TRAPS)} traps are watched by tests" in done.stdout


def _marked(mark: str) -> set[str]:
    found: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        if f"mark.{mark}" in (text := path.read_text(encoding="utf-8")):
            found.update(row for _, row in marked_in(text, mark))
    return found


def test_every_trap_is_watched_by_a_test() -> None:
    assert sorted(TRAPS.keys() - _marked("trap")) == [], "no test would fail if these happened here"
    assert all(sentence and not sentence.endswith(".") for sentence in TRAPS.values())


def test_every_clause_of_the_contracts_that_agents_check_themselves_has_a_test() -> None:
    rows = {name: sentence for group in load_rows("clause").values() for name, sentence in group.items()}
    assert list(rows) == [f"X{n:02}" for n in range(1, len(rows) + 1)]
    assert sorted(rows.keys() - _marked("clause")) == [], "no test would fail if these did not hold"
    text = "\n".join(f"{name} {sentence}" for name, sentence in rows.items())
    assert hashlib.sha256(text.encode()).hexdigest() == CLAUSE_ROWS, "a reworded clause could claim less"


def test_the_clauses_before_the_end_are_those_that_the_controller_checks() -> None:
    assert list(load_rows("clause")["Controller: before it ends"].values()) == list(CLAUSES)


def test_only_tests_with_a_name_of_a_row_count_as_marked() -> None:
    source = """
@pytest.mark.trap("a", "b")
async def test_one(): ...

@pytest.mark.trap("c")
def helper(): ...

@pytest.mark.capability("d")
def test_two(): ...
"""
    assert list(marked_in(source, "trap")) == [("test_one", "a"), ("test_one", "b")]


def test_a_mark_with_an_unknown_row_fails_the_collection(tmp_path: Path) -> None:
    source = "import pytest\n\n@pytest.mark.capability('C999')\ndef test_it_runs():\n    pass\n"
    for arguments in (("-n", "1"), ("--capabilities",)):
        done = run_pytest(tmp_path, source, *arguments)
        assert done.returncode not in (0, 5), arguments
        assert "there is no capability 'C999'" in done.stdout + done.stderr, arguments


def test_a_mark_without_a_row_fails_the_collection(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, "import pytest\n\n@pytest.mark.capability()\ndef test_it_runs():\n    pass\n")
    assert done.returncode not in (0, 5)
    assert "names no row" in done.stdout + done.stderr


class Marked:
    """As much of a test as its place in the order depends on."""

    def __init__(self, name: str, *marks: pytest.MarkDecorator) -> None:
        self.name = name
        self._marks = {mark.name: mark.mark for mark in marks}

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self._marks.get(name)


def test_who_looks_at_what_another_carries_out_comes_last() -> None:
    look = pytest.mark.shares("stage")
    items = [
        Marked("quick"),
        Marked("first look", look),
        Marked("second look", look, pytest.mark.timeout(900)),
        Marked("long", pytest.mark.timeout(900)),
        Marked("alone", pytest.mark.serial),
    ]
    pytest_collection_modifyitems(items)  # type: ignore[arg-type]
    assert [item.name for item in items] == ["alone", "first look", "long", "quick", "second look"]


def test_a_serial_test_has_the_machine_for_itself(tmp_path: Path) -> None:
    """Each test notes who else is running; a serial one must see nobody, although two workers are busy."""
    source = """
import os, pathlib, time
import pytest

here = pathlib.Path(__file__).parent / "running"

@pytest.fixture(autouse=True)
def present(request):
    here.mkdir(exist_ok=True)
    mine = here / request.node.name
    mine.touch()
    yield
    mine.unlink()

@pytest.mark.parametrize("n", range(12))
def test_shared(n):
    time.sleep(0.01)

@pytest.mark.serial
@pytest.mark.parametrize("n", range(4))
def test_alone(n, request):
    for _ in range(10):
        assert os.listdir(here) == [request.node.name]
        time.sleep(0.005)
"""
    done = run_pytest(tmp_path, source, "-n", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "16 passed" in done.stdout


def test_every_case_runs_and_those_that_fail_are_reported_together(tmp_path: Path) -> None:
    ran = []

    @each_case(("n", "twice"), [(1, 2), (2, 5), pytest.param(3, 7, id="three")])
    def doubled(n: int, twice: int, tmp_path: Path) -> None:
        ran.append(tmp_path)
        assert n * 2 == twice

    with pytest.raises(ExceptionGroup, match="2 of 3 cases failed") as failed:
        doubled(tmp_path=tmp_path)
    assert [error.__notes__ for error in failed.value.exceptions] == [
        ["in the case (2, 5)"],
        ["in the case three"],
    ]
    assert len(set(ran)) == 3, "each has a folder of its own"


def test_the_texts_of_the_capabilities_are_those_of_the_missions_checklist() -> None:
    """A reworded row could claim less than was asked for. Whoever changes the checklist changes the digest too."""
    rows = [f"{row} {text}" for group in load_rows().values() for row, text in group.items()]
    assert hashlib.sha256("\n".join(rows).encode()).hexdigest() == ROWS
