"""What failed before is not held against the work, and what it broke is. Runners that are deceived: `tests/trust`."""

import pytest
from tests.acceptance.cli.program import git
from tests.acceptance.gates.calculator import BROKEN, PYTEST, RIGHT, TESTS, WORKS, Calculator, write
from tests.acceptance.sandbox import task

from loopwright.core.model import Role, Run, VerdictRecord


def commit(calculator: Calculator, **files: str) -> None:
    for name, text in files.items():
        (calculator.repository / name.replace("__", "/").replace("_py", ".py")).write_text(text)
    git(calculator.repository, "add", "-A")
    git(calculator.repository, "commit", "-q", "-m", "more")


def bad(calculator: Calculator) -> list[str]:
    """Return what speaks against the work in its last verdict."""
    verdict = calculator.rows(VerdictRecord)[-1].verdict
    return [check.name for check in verdict.checks if check.status in ("failed", "error")]


def test_a_test_that_failed_before_is_no_fault_of_the_work_and_is_named(calculator: Calculator) -> None:
    commit(calculator, tests__test_old_py="def test_old():\n    assert False\n")
    said = calculator.carry_out([write("calc.py", RIGHT)])
    assert said.code == 4, said.out + said.err
    (attempt,) = calculator.attempts("mul")
    assert attempt.state == "LANDED"
    assert calculator.task("mul").outcome == "verified_with_gaps"
    receipt = calculator.receipt()
    assert receipt["outcome"] == "verified_with_gaps"
    gap = "1 tests fail on the result that had failed before the plan: they check nothing"
    assert gap in receipt["not_checked"]
    assert len(calculator.rows(Run, role=Role.BASELINE)) == 1, "once for the tree, also for the verification"
    again = calculator("receipt", "replay", str(calculator.place / "receipt.json"), "--yes", "--json")
    assert again.code == 0, again.out + again.err
    (whole,) = again.document["replayed"]
    assert (whole["then"], whole["now"], whole["differences"]) == ("passed", "passed", [])


def test_a_new_failure_beside_an_old_one_is_the_works_own(calculator: Calculator) -> None:
    commit(calculator, tests__test_old_py="def test_old():\n    assert False\n")
    said = calculator.carry_out([write("calc.py", BROKEN)], max_attempts=1)
    assert said.code == 1, said.out + said.err
    (attempt,) = calculator.attempts("mul")
    assert attempt.failure == "gate"


def test_what_a_sibling_landed_is_the_baseline_of_the_next(calculator: Calculator) -> None:
    more = TESTS + "\n\ndef test_more():\n    assert add(1, 1) == 2\n"
    calculator.play(
        {
            "tests": [[write("tests/test_calc.py", more), write("made", "x\n")]],
            "mul": [[write("calc.py", RIGHT), write("tests/test_calc.py", TESTS)]],
        }
    )
    tasks = [
        task("tests", "test -s made", scope=["tests/test_calc.py"]),
        task("mul", WORKS, depends_on=["tests"], max_attempts=1),
    ]
    said = calculator.run(calculator.plan("two", tasks, gates=[{"name": "tests", "run": PYTEST}]))
    assert said.code == 1, said.out + said.err
    (attempt,) = calculator.attempts("mul")
    assert attempt.gate_files is not None
    assert attempt.gate_files.weakened[0] == "tests/test_calc.py: test_more was removed"
    assert len(calculator.rows(Run, role=Role.BASELINE)) == 1


@pytest.mark.parametrize(
    ("accepts", "code", "proven"), [(WORKS, 0, True), ("python -B -c 'import calc'", 4, False)]
)
def test_acceptance_has_to_fail_before_the_work_to_prove_it(
    calculator: Calculator, accepts: str, code: int, proven: bool
) -> None:
    calculator.play({"mul": [[write("calc.py", RIGHT)]]})
    gates = [{"name": "compiles", "run": "python -B -m py_compile calc.py"}]
    plan = calculator.plan("red", [task("mul", accepts)], gates=gates, settings={"red_proof": True})
    said = calculator.run(plan)
    assert said.code == code, said.out + said.err
    assert calculator.gate_files()["red_proof"] is proven
    gaps = calculator.receipt()["not_checked"]
    assert (
        "the acceptance of task 'mul' passed before its work too: it proves nothing" in gaps
    ) is not proven


def test_tests_that_crash_before_the_work_and_after_it_are_left_to_a_person(calculator: Calculator) -> None:
    commit(calculator, tests__test_old_py="import os\n\n\ndef test_old():\n    os.kill(os.getpid(), 9)\n")
    said = calculator.carry_out([write("calc.py", RIGHT)])
    assert said.code == 1, said.out + said.err
    (attempt,) = calculator.attempts("mul")
    assert (attempt.state, attempt.failure) == ("REJECTED", "cannot_check")
    assert attempt.detail == "before the work and after it, these did not come to their end: tests"
    assert calculator.task("mul").attempts == 0, "no attempt is used up by it"
