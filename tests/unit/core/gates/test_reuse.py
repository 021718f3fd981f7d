"""Which records of a gate run answer for another one."""

from tests.cases import each_case

from loopwright.core.gates.verdict_reuse import (
    is_reusable,
    is_reusable_command,
    names_all,
    narrowed_to,
    narrows,
    shows,
)
from loopwright.core.values.findings import CommandResult, Rerun, Verdict, VerdictStatus, Witnessed
from loopwright.core.values.policy import GateCommand

GATE = "python -m pytest -q tests"


@each_case(
    "command, gate, expected",
    [
        ("python -m pytest -q tests/test_a.py", GATE, True),
        ("python -m pytest -q tests/test_a.py::test_one", GATE, True),
        ("python -m pytest -q tests/test_a.py", "python -m pytest -q", True),
        ("go test ./pkg", "go test ./...", True),
        ("python3 -m pytest -q tests/test_a.py", GATE, False),
        ("python -m pytest -q --runslow tests/test_a.py", GATE, False),
        ("python -m pytest tests/test_a.py", GATE, False),
        ("python -m pytest -q -k a/b tests", GATE, False),
        ("python -m pytest -q -k a/b", "python -m pytest -q -k", False),
        ("python -m pytest -q tests/test_a.py && make lint", GATE, False),
        ("python -m pytest -q tests/test_a.py", f"{GATE}; true", False),
        ("X=1 python -m pytest -q tests/test_a.py", GATE, False),
        ("test -s out", "true", False),
        ("python -m pytest 'tests", GATE, False),
        ("", GATE, False),
    ],
)
def test_a_command_narrows_a_gate_when_it_only_adds_paths(command: str, gate: str, expected: bool) -> None:
    assert narrows(command, gate) is expected


def saw(*passed: str, **more: object) -> Witnessed:
    return Witnessed(**{"passed": frozenset(passed), "failed": frozenset(), "skipped": frozenset(), **more})


@each_case(
    "now, then, expected",
    [
        (saw("a", "b"), saw("a"), True),
        (saw("b"), saw("a"), False),
        (saw("a"), saw(), False),
        (saw("a"), saw("a", skipped=frozenset({"c"})), False),
        (saw("a"), saw("a", deselected=frozenset({"c"})), False),
        (saw("a", problems=("it cannot be believed",)), saw("a"), False),
        (saw("a", reported=True), saw("a"), False),
        (None, saw("a"), False),
        (saw("a"), None, False),
    ],
)
def test_a_gate_shows_a_narrower_command_when_all_its_tests_passed_there(
    now: Witnessed | None, then: Witnessed | None, expected: bool
) -> None:
    gate = GateCommand(name="tests", command=GATE)
    narrow = GateCommand(name="own", command=f"{GATE}/test_a.py")
    assert shows(gate, now, narrow, then) is expected
    assert not shows(gate, now, GateCommand(name="own", command=narrow.command, junit="x.xml"), then)


def result(**more: object) -> CommandResult:
    given = {"name": "t", "command": "t", "exit_code": 0, "duration_s": 1.0}
    return CommandResult(**{**given, "output_sha256": "", "output_bytes": 0, **more})


@each_case(
    "verdict, expected",
    [
        (Verdict(status=VerdictStatus.PASSED, commands=(result(),)), True),
        (Verdict(status=VerdictStatus.PASSED, commands=(result(flaky=("t",)),)), False),
        (Verdict(status=VerdictStatus.PASSED, reruns=(Rerun(folder="again-alone", alone=True),)), False),
        (Verdict(status=VerdictStatus.FAILED, commands=(result(exit_code=1),)), False),
        (Verdict(status=VerdictStatus.INCONCLUSIVE), False),
    ],
)
def test_only_what_passed_at_once_is_reused(verdict: Verdict, expected: bool) -> None:
    assert is_reusable(verdict) is expected


def test_a_command_that_reads_whom_it_runs_for_is_not_reused() -> None:
    assert is_reusable_command("make test")
    assert not is_reusable_command('test -n "$LOOPWRIGHT_TASK"')


@each_case(
    "command, gate, paths",
    [
        ("pytest -q tests/test_a.py ./tests/b/", "pytest -q tests", ("tests/test_a.py", "tests/b")),
        ("pytest -q tests/test_a.py::test_one", "pytest -q", ("tests/test_a.py::test_one",)),
        ("node --test tests/a.mjs", "node --test tests/", ("tests/a.mjs",)),
        ("go test ./pkg/", "go test ./...", ("pkg",)),
        ("go test -race -count=1 ./pkg/", "go test -race -count=1 ./...", ("pkg",)),
        ("go test -count ./pkg/", "go test -count ./...", ()),
        ("pytest -q tests/test_a.py", "pytest -q other/", ()),
        ("node --test tests/", "node --test tests/a.mjs", ()),
        ("pytest -q tests/test_a.py", "pytest -q tests/test_a.py", ()),
        ("pytest -q -k a tests/test_a.py", "pytest -q tests", ()),
    ],
)
def test_a_narrower_command_is_told_by_its_paths_below_those_of_the_gate(
    command: str, gate: str, paths: tuple[str, ...]
) -> None:
    assert narrowed_to(command, gate) == paths


@each_case(
    "command, files, expected",
    [
        ("pytest -q tests/test_a.py", ["tests/test_a.py"], True),
        ("pytest -q tests/test_a.py::test_one", ["tests/test_a.py"], True),
        ("pytest -q tests/a", ["tests/a/conftest.py", "tests/a/test_b.py"], True),
        ("pytest -q tests/test_a.py", ["tests/test_a.py", "tests/test_b.py"], False),
        ("pytest -q tests/test_a.py", [], True),
        ("make check", [], False),
    ],
)
def test_a_command_names_all_files_below_its_paths(command: str, files: list[str], expected: bool) -> None:
    assert names_all(command, [GateCommand(name="tests", command="pytest -q")], files) is expected
