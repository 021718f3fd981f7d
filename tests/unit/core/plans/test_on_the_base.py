"""How a plan's checks end on the commit that it starts from, and what follows from that."""

from dataclasses import dataclass, replace
from typing import Any

from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.core.gates.verdicts import command_checks, judge
from loopwright.core.gates.witnesses import NO_END, NOTHING
from loopwright.core.plans.base_checks import (
    Condition,
    OnBase,
    acceptance_findings,
    conditions,
    gate_findings,
    is_broken,
    is_green,
    missing_files,
    told_by_gates,
)
from loopwright.core.plans.evaluating import Weight
from loopwright.core.values.findings import CommandResult, Verdict, VerdictStatus, Witnessed
from loopwright.core.values.policy import GateCommand


@dataclass(frozen=True)
class _Task:
    key: str
    acceptance: tuple[GateCommand, ...] = ()
    scope: tuple[str, ...] = ()
    title: str = "x"
    description: str = ""
    depends_on: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()


def ended(code: int | None, *, tail: str = "", timed_out: bool = False) -> CommandResult:
    return CommandResult(
        name="tests",
        command="make test",
        exit_code=code,
        duration_s=1.0,
        output_sha256="",
        output_bytes=0,
        tail=tail,
        timed_out=timed_out,
    )


PIP = "ERROR: No matching distribution for x\n\n[notice] A new release of pip is available\n[notice] To update, run pip"
GATE = GateCommand(name="tests", command="make test", timeout_s=5)


def on_base(result: CommandResult, seen: Witnessed | None = None, denial: str | None = None) -> OnBase:
    checks = command_checks(1, result, (), timeout_s=GATE.timeout_s)
    (found,) = conditions((GATE,), judge(checks, (result,)), (seen,), denial)
    return found


@each_case(
    ("result", "seen", "condition", "words"),
    [
        (ended(0), None, Condition.GREEN, ""),
        (ended(0), Witnessed(passed=frozenset({"a"})), Condition.GREEN, ""),
        (ended(1, tail="ruff\n3 errors\n"), None, Condition.RED, "exit code 1: 3 errors"),
        (ended(1, tail=PIP), None, Condition.RED, "exit code 1: ERROR: No matching distribution for x"),
        (ended(1, tail="lost\n\n[notice] new\nWARNING: old"), None, Condition.RED, "exit code 1: lost"),
        (ended(1, tail="WARNING: old"), None, Condition.RED, "exit code 1: WARNING: old"),
        (ended(1), Witnessed(failed=frozenset({"b", "a"})), Condition.RED, "2 tests fail there: a, b"),
        (
            ended(1),
            Witnessed(failed=frozenset({"a.py", "b"}), unloaded=frozenset({"a.py"})),
            Condition.RED,
            "1 test file cannot be loaded there: a.py; 1 test fails there: b",
        ),
        (
            ended(1),
            Witnessed(failed=frozenset({"a.py"}), unloaded=frozenset({"a.py"})),
            Condition.RED,
            "1 test file cannot be loaded there: a.py; no test runs there",
        ),
        (ended(127, tail="sh: x: not found"), None, Condition.BROKEN, "command not found"),
        (ended(126), None, Condition.BROKEN, "executable"),
        (ended(-11), None, Condition.BROKEN, "signal 11"),
        (ended(-15, timed_out=True), None, Condition.BROKEN, "within its limit of 5 s"),
        (ended(2), Witnessed(problems=(NO_END,)), Condition.BROKEN, NO_END),
        (ended(5), Witnessed(problems=(NOTHING,)), Condition.EMPTY, NOTHING),
        (ended(0), Witnessed(problems=(NOTHING,)), Condition.EMPTY, NOTHING),
    ],
)
def test_how_a_command_ended(
    result: CommandResult, seen: Witnessed | None, condition: Condition, words: str
) -> None:
    found = on_base(result, seen)
    assert found.condition is condition
    assert words in found.why
    assert is_green([found]) == (condition is Condition.GREEN)
    assert is_broken([found]) == (condition is Condition.BROKEN)


def test_what_a_sandbox_refused_and_a_gate_that_was_lost_are_broken_too() -> None:
    assert on_base(ended(1), denial="it may not write to /etc").why == "it may not write to /etc"
    lost = Verdict(status=VerdictStatus.INCONCLUSIVE, reason="the gate's process was lost")
    (found,) = conditions((GATE,), lost, ())
    assert (found.condition, found.why) == (Condition.BROKEN, "the gate's process was lost")


def gate(condition: Condition, *, failed: tuple[str, ...] = (), name: str = "tests") -> OnBase:
    return OnBase(name=name, command=name, condition=condition, why="because", failed=failed)


@each_case(
    ("command", "why"),
    [
        ("pytest tests/test_a.py", "1 test fails there: tests/test_a.py::test_it"),
        ("pytest -q tests/test_new.py", "tests/test_new.py does not exist there"),
        ("pytest tests/test_b.py", None),
        ("pytest", None),
        ("sh bin/new.sh", None),
    ],
)
def test_acceptance_that_must_fail_on_the_base_is_not_run_there(command: str, why: str | None) -> None:
    gates = (gate(Condition.RED, failed=("tests/test_a.py::test_it",)),)
    there = ("tests/test_a.py", "tests/test_b.py")
    found = told_by_gates(GateCommand(name="own", command=command), gates, there)
    assert (found.condition, found.why) == (Condition.RED, why) if found else why is None


def test_only_what_cannot_run_refuses_a_plan() -> None:
    found = gate_findings(
        [gate(one) for one in Condition] + [gate(Condition.RED, failed=("t",))],
        [_Task("a", scope=("a.py",))],
        setup=(),
        elsewhere=False,
    )
    assert [(one.weight, one.text.partition(",")[0].partition(":")[0]) for one in found] == [
        (Weight.TOLD, "the gate tests fails on the base"),
        (Weight.POINTLESS, "the gate tests finds no tests on the base"),
        (Weight.POINTLESS, "the gate tests cannot run on the base"),
        (Weight.TOLD, "the gate tests is red on the base"),
    ]
    elsewhere = gate_findings([gate(Condition.BROKEN)], [], setup=(), elsewhere=True)
    assert [one.weight for one in elsewhere] == [Weight.TOLD], "another machine may well have it"


@each_case(
    ("scope", "refused"),
    [((), False), (("tests/test_a.py",), False), (("src/*",), False), (("src",), False), (("a.py",), True)],
)
def test_no_tests_yet_are_no_fault_where_a_task_may_bring_some(scope: tuple[str, ...], refused: bool) -> None:
    (found,) = gate_findings([gate(Condition.EMPTY)], [_Task("a", scope=scope)], setup=(), elsewhere=False)
    assert (found.weight is Weight.POINTLESS) is refused


def test_a_setup_command_that_fails_is_an_error(wording: Wording) -> None:
    ends = [gate(Condition.RED, name="setup"), gate(Condition.RED)]
    found = gate_findings(ends, [], setup=("setup",), elsewhere=False)
    assert [one.weight for one in found] == [Weight.POINTLESS, Weight.TOLD]
    wording(found[0].text)
    both, _ = gate_findings(ends, [], setup=("dependencies", "setup"), elsewhere=False)
    wording(both.text)
    wording(both.text)


def test_acceptance_that_passes_before_the_work_is_told_task_by_task(wording: Wording) -> None:
    def command(text: str) -> GateCommand:
        return GateCommand(name=text, command=text)

    tasks = [
        _Task("all", (command("green"),)),
        _Task("some", (command("green"), command("red"))),
        _Task("none", (command("red"), command("not tried"))),
        *(_Task(f"more{n}", (command("green"),)) for n in range(25)),
    ]
    ran = {"green": gate(Condition.GREEN, name="green"), "red": gate(Condition.RED, name="red")}
    told = [one.text for one in acceptance_findings(tasks, ran)]
    wording(told[0])
    wording(told[1])
    wording(told[-1])
    assert len(told) == 21


@each_case(
    ("command", "tail", "missing"),
    [
        (
            "pytest -q tests/test_x.py",
            "ERROR: file or directory not found: tests/test_x.py\n",
            "tests/test_x.py",
        ),
        ("pytest tests/test_x.py::test_a", "ERROR: not found: tests/test_x.py::test_a\n", "tests/test_x.py"),
        ("make test", "pytest -q unit\nERROR: file or directory not found: unit\n", "unit"),
        ("python ci/x.py", "python: can't open file '/tree/ci/x.py': [Errno 2] No such file", "ci/x.py"),
        ("sh ./check.sh", "sh: 0: cannot open ./check.sh: No such file\n", "check.sh"),
        ("bash check.sh", "bash: check.sh: No such file or directory\n", "check.sh"),
        ("./ci/check.sh", "/bin/sh: 1: ./ci/check.sh: not found\n", "ci/check.sh"),
        ("./check.sh", "bash: line 1: ./check.sh: No such file or directory\n", "check.sh"),
        ("grep -q a notes.txt", "grep: notes.txt: No such file or directory\n", "notes.txt"),
        ("node --test a.test.js", "Could not find '/tree/a.test.js'\n", "a.test.js"),
        (
            "python -m unittest tests.test_x",
            "ModuleNotFoundError: No module named 'tests.test_x'\n",
            "tests/test_x.py",
        ),
        ("pytest tests/test_a.py", "FAILED tests/test_a.py::t - FileNotFoundError: No such file: 'x'\n", ""),
        ("pytest tests/", "E   FileNotFoundError: No such file or directory: 'tests/data'\n", ""),
        ("pytest -q", "E   ModuleNotFoundError: No module named 'one'\n", ""),
    ],
)
def test_a_file_that_a_command_names_and_cannot_find(command: str, tail: str, missing: str) -> None:
    assert missing_files(command, tail) == ((missing,) if missing else ())


def test_a_gate_that_names_a_missing_file_is_refused_unless_a_task_is_to_create_it() -> None:
    path = "tests/test_x.py"
    lost = replace(gate(Condition.EMPTY), missing=(path,))

    def weight(**more: Any) -> tuple[Weight, str]:
        (found,) = gate_findings([lost], [_Task("a"), _Task("b", **more)], setup=(), elsewhere=True)
        return found.weight, found.text

    words = f"the gate tests names {path}, which the base commit does not have"
    assert weight() == (
        Weight.POINTLESS,
        f"{words} and no task is to create; fix the path, or name it in the scope of the task that creates it",
    )
    for more in ({"scope": ("tests/**",)}, {"description": f"Write {path}."}, {"title": f"Add {path}"}):
        assert weight(**more)[0] is Weight.TOLD, more


def test_acceptance_may_name_a_file_that_a_task_may_create() -> None:
    own = (GateCommand(name="own", command="own"),)
    ran = {"own": replace(gate(Condition.RED, name="own"), missing=("tests/test_x.py",))}

    def told(*tasks: _Task) -> list[Weight]:
        return [one.weight for one in acceptance_findings(tasks, ran)]

    assert told(_Task("a", own)) == told(_Task("a", own, scope=("tests/",))) == []
    assert told(_Task("a", own, scope=("src/",)), _Task("b", scope=("tests/test_x.py",))) == []
    assert told(_Task("a", own, scope=("src/",))) == [Weight.POINTLESS]
