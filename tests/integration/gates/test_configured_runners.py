"""A test runner that only the settings know: its tests are read from what it prints, and it is tried with canaries."""

from pathlib import Path

import pytest
from tests.integration.gates.desks import Desk, command

from loopwright.adapters.gates.commands import CommandGate
from loopwright.config.gates import TEST_RUNNERS
from loopwright.core.values.findings import Witnessed

HONEST = """
for file in ${1:-cases/*.sh}; do
  if grep -q skip "$file"; then echo "ok 1 - $file # SKIP later"
  elif sh "$file"; then echo "ok 1 - $file"
  else echo "not ok 1 - $file"; bad=1; fi
done
exit ${bad:-0}
"""
GREEN = 'for file in ${1:-cases/*.sh}; do echo "ok 1 - $file"; done\n'
SILENT = "exit 0\n"
RUNNER = {
    "command": "run.sh",
    "tests": "tap",
    "file": "cases/{name}.sh",
    "passes": "exit 0",
    "fails": "exit 1",
    "run": "sh run.sh cases/{name}.sh",
}
CASES = {"good.sh": "exit 0", "bad.sh": "exit 1", "left.sh": "skip"}
REPORT = '<testsuite><testcase classname="cases" name="good"/></testsuite>'


def see(desk: Desk, program: str, *, junit: str | None = None, **change: str | None) -> Witnessed | None:
    (desk.tree / "cases").mkdir()
    for name, text in CASES.items():
        (desk.tree / "cases" / name).write_text(text)
    (desk.tree / "run.sh").write_text(program)
    gate = CommandGate(term_grace_s=1.0)
    entry = {key: value for key, value in {**RUNNER, **change}.items() if value is not None}
    desk.run(command("sh run.sh", junit=junit), gate=gate, runners=TEST_RUNNERS.read([entry]))
    seen = gate.witnessed(desk.directory, 1)
    assert seen is not None
    return seen[0]


def left_behind(tree: Path) -> list[str]:
    return sorted(path.name for path in (tree / "cases").iterdir() if path.name not in CASES)


def test_its_tests_are_read_and_its_canaries_leave_nothing_behind(desk: Desk) -> None:
    assert see(desk, HONEST) == Witnessed(
        passed=frozenset({"cases/good.sh"}),
        failed=frozenset({"cases/bad.sh"}),
        skipped=frozenset({"cases/left.sh"}),
        reported=True,
        tried=True,
    )
    assert left_behind(desk.tree) == []


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (GREEN, ["a canary test that has to fail passed"]),
        (SILENT, ["collected", "that has to fail was not run", "that has to pass was not run"]),
    ],
)
def test_a_runner_that_cannot_fail_is_found_out(desk: Desk, program: str, words: list[str]) -> None:
    seen = see(desk, program)
    assert seen is not None
    assert [one[-len(word) :] for one, word in zip(seen.problems, words, strict=True)] == words


def test_a_canary_that_cannot_be_written_is_told(desk: Desk) -> None:
    seen = see(desk, HONEST, file="no/folder/{name}.sh")
    assert seen is not None
    assert all("could not be written" in words for words in seen.problems)
    assert len(seen.problems) == 2


def test_with_a_junit_report_that_names_the_tests_and_the_canaries_are_tried_all_the_same(desk: Desk) -> None:
    seen = see(desk, f"echo '{REPORT}' > report.xml\n{GREEN}", junit="report.xml", tests=None)
    assert seen is not None
    assert (seen.passed, seen.tried) == (frozenset({"cases::good"}), True)
    assert [words[-6:] for words in seen.problems] == ["passed"]
