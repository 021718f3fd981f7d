"""What failed before is not held against the work, and what it broke is. Runners that are deceived: `tests/trust`."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.acceptance.cli.program import git
from tests.acceptance.gates.calculator import BROKEN, PYTEST, RIGHT, TESTS, WORKS, Calculator, write
from tests.acceptance.sandbox import task
from tests.loaded import Said

from loopwright.core.rows.model import Plan, Role, Run, VerdictRecord


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
    assert calculator.task("mul").outcome == "verified"
    receipt = calculator.receipt()
    assert receipt["outcome"] == "verified_with_gaps"
    (gap,) = receipt["gaps"]
    assert (gap["code"], "tests/test_old.py::test_old" in gap["cause"]) == ("known_failures", True)
    assert len(calculator.rows(Run, role=Role.BASELINE)) == 1, "once for the tree, also for the verification"
    again = calculator("receipt", "replay", str(calculator.place / "receipt.json"), "--yes", "--json")
    assert again.code == 0, again.out + again.err
    (whole,) = again.document["replayed"]
    assert (whole["then"], whole["now"], whole["differences"]) == ("passed", "passed", [])


@pytest.mark.more
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
        task("tests", "test -s made"),
        task("mul", WORKS, depends_on=["tests"], max_attempts=1),
    ]
    said = calculator.run(calculator.plan("two", tasks, gates=[{"name": "tests", "run": PYTEST}]))
    assert said.code == 3, said.out + said.err
    (attempt,) = calculator.attempts("mul")
    assert attempt.gate_files is not None
    assert attempt.gate_files.contradicted == ("tests/test_calc.py::test_more",), (
        "a third of the tests is gone"
    )
    assert len(calculator.rows(Run, role=Role.BASELINE)) == 1


RED = f"""# Calculator

- [ ] Task 1: Multiply
  - Acceptance: `{WORKS}`
- [ ] Task 2: Import
  - Acceptance: `python -B -c 'import calc'`
- [ ] Task 3: Subtract
  - Prove: yes
  - Acceptance: `{PYTEST} tests/test_sub.py`
- [ ] Task 4: Divide
  - Prove: yes
  - Acceptance: `{PYTEST} tests/test_div.py`
- [ ] Task 5: Tell
  - Acceptance: `grep -q told told.txt`
"""
HOLLOW = "def test_div():\n    assert True\n"


@pytest.mark.more
@pytest.mark.capability("C038")
def test_acceptance_has_to_fail_before_the_work_to_prove_it(calculator: Calculator) -> None:
    settings = '[[gates]]\nname = "compiles"\nrun = "python -B -m py_compile calc.py"\n'
    (calculator.repository / "plan.md").write_text(RED)
    (calculator.repository / "loopwright.toml").write_text(settings)
    commit(calculator)
    subtracts = write("sub.py", "def sub(a, b):\n    return a - b\n")
    tested = write(
        "tests/test_sub.py", "from sub import sub\n\n\ndef test_sub():\n    assert sub(3, 2) == 1\n"
    )
    calculator.play(
        {
            "1": [[write("calc.py", RIGHT)]],
            "2": [[write("other.py", "")]],
            "3": [[{"expect_prompt": "there they must fail", "otherwise": [{"exit": 3}]}, subtracts, tested]],
            "4": [[write("div.py", ""), write("tests/test_div.py", HOLLOW)]],
            "5": [[write("told.txt", "told\n")]],
        }
    )
    said = calculator("run", "plan.md", timeout=200)
    assert said.code == 4, said.out + said.err
    facts = {task["key"]: task["attempts"][0]["gate_files"] for task in calculator.receipt()["tasks"]}
    assert {key: one["red_proof"] for key, one in facts.items()} == {
        "1": None,
        "2": None,
        "3": True,
        "4": False,
        "5": None,
    }, "a test that the work brings along is tried without the work"
    assert facts["3"]["red_tests"] == ["tests/test_sub.py"]
    receipt = calculator.receipt()
    (gap,) = receipt["gaps"]
    assert (gap["code"], gap["task"]) == ("not_shown", "4")
    assert {one["task"] for one in receipt["notes"] if one["code"] == "not_demonstrated"} == {"1", "2", "5"}
    told = calculator.git("show", f"{calculator.row(Plan).branch}:plan.md")
    assert "TDD: red without the work (with tests/test_sub.py), green with it" in told
    assert "TDD: green without the work too: not demonstrated" in told


SHOWN = "from calc import neg\n\n\ndef test_neg():\n    assert neg(2) == -2\n"
NEG = "\n\ndef neg(a):\n    return -a\n"


@pytest.mark.capability("C038")
def test_a_fix_has_to_show_that_something_was_broken_and_other_work_only_what_its_acceptance_is_worth(
    calculator: Calculator,
) -> None:
    calculator.play(
        {
            "hollow": [[write("other.py", "")]],
            "shown": [[write("calc.py", f"{RIGHT}{NEG}"), write("tests/test_neg.py", SHOWN)]],
            "plain": [[write("plain.py", "")]],
            "behind": [[write("sums.txt", "4\n"), write("ci/check_sums.sh", "grep -q 4 sums.txt\n")]],
        }
    )
    (calculator.repository / "Makefile").write_text("sums:\n\tsh ci/check_sums.sh\n")
    (calculator.repository / "ci" / "check_sums.sh").write_text("true\n")
    commit(calculator)
    tasks = [
        task("behind", "make -s sums", type="bug", scope=["ci/", "sums.txt"], depends_on=["shown"]),
        task("plain", "test -e plain.py"),
        task("hollow", "python -B -c 'import calc'", type="fix", depends_on=["plain"]),
        {"id": "shown", "title": "Numbers are negated", "type": "bug", "depends_on": ["hollow"]},
    ]
    said = calculator.run(calculator.plan("fixes", tasks, gates=[{"name": "tests", "run": PYTEST}]))
    assert said.code == 4, said.out + said.err
    receipt = calculator.receipt()
    told = {one["key"]: (one["outcome"], one["attempts"][0]["gate_files"]) for one in receipt["tasks"]}
    assert [told[key][0] for key in ("plain", "hollow", "shown")] == [
        "verified",
        "verified_with_gaps",
        "verified",
    ]
    assert [told[key][1]["red_proof"] for key in ("plain", "hollow", "shown")] == [None, False, True]
    behind = told["behind"][1]
    assert (behind["red_proof"], behind["red_tests"]) == (True, ["ci/check_sums.sh"]), (
        "what checks it is known behind the Makefile too"
    )
    assert [one["task"] for one in receipt["gaps"]] == ["hollow"]
    file = str(calculator.place / "receipt.json")
    again = calculator("receipt", "replay", file, "--yes", "--json", "--task", "hollow", "--task", "shown")
    assert again.code == 0, again.out + again.err
    ran = {one["what"]: (one["sha"], one["now"]) for one in again.document["replayed"]}
    parent = next(one["parent_sha"] for one in receipt["tasks"] if one["key"] == "hollow")
    assert ran["what checks task hollow, without its work"] == (parent, "passed")
    assert ran["what checks task shown, without its work"] == (told["shown"][1]["red_tree"], "failed")
    assert again.document["not_replayed"] == []
    assert told["shown"][1]["red_tests"] == ["tests/test_neg.py"], (
        "it has no acceptance: the gates run its test"
    )
    runs = {
        key: len(calculator.rows(Run, task_id=calculator.task(key).id, role=Role.BASELINE)) for key in told
    }
    assert runs == {"plain": 1, "hollow": 1, "shown": 1, "behind": 1}, (
        "the first is also how the plan's base was"
    )


@pytest.mark.capability("C038")
@pytest.mark.more
def test_a_fix_that_cannot_show_what_was_broken_counts_with_gaps_and_says_why(calculator: Calculator) -> None:
    calculator.play(
        {
            "unknown": [[write("a.txt", "a\n")]],
            "nothing": [[write("b.txt", "b\n")]],
            "words": [[write("c.txt", "c\n")]],
            "new": [[write("d.txt", "d\n")]],
        }
    )
    tasks = [
        task("unknown", "test -e a.txt || kill -9 $PPID", type="bug"),
        {"id": "nothing", "title": "The sum", "type": "fix", "depends_on": ["unknown"]},
        {"id": "words", "title": "Fix a typo", "depends_on": ["nothing"]},
        {"id": "new", "title": "A new file", "depends_on": ["words"]},
    ]
    said = calculator.run(
        calculator.plan(
            "fixes",
            tasks,
            gates=[{"name": "tests", "run": PYTEST}],
            settings={"max_call_retries": 0},
        )
    )
    assert said.code == 4, said.out + said.err
    receipt = calculator.receipt()
    outcomes = {one["key"]: one["outcome"] for one in receipt["tasks"]}
    assert outcomes == {
        "unknown": "verified_with_gaps",
        "nothing": "verified_with_gaps",
        "words": "verified",
        "new": "verified",
    }
    gaps = [(one["code"], one["task"]) for one in receipt["gaps"]]
    assert gaps == [("not_shown", "unknown"), ("not_shown", "nothing")]


@pytest.mark.more
def test_tests_that_crash_before_the_work_and_after_it_are_left_to_a_person(calculator: Calculator) -> None:
    commit(calculator, tests__test_old_py="import os\n\n\ndef test_old():\n    os.kill(os.getpid(), 9)\n")
    said = calculator.carry_out([write("calc.py", RIGHT)])
    assert said.code == 1, said.out + said.err
    (attempt,) = calculator.attempts("mul")
    assert (attempt.state, attempt.failure) == ("REJECTED", "cannot_check")
    assert attempt.detail == "before the work and after it, these did not come to their end: tests"
    assert calculator.task("mul").attempts == 0, "no attempt is used up by it"


EXTRA = """import pytest

extra = pytest.importorskip("extra", exc_type=ImportError)


def test_one():
    assert extra.ONE == 1
"""
NEW = "from calc import add\n\n\ndef test_new():\n    assert add(30, 4) == 34\n"
STYLE = "grep -qx tidy style.txt"


def with_red_style(calculator: Calculator, *attempts: list[Mapping[str, Any]], own: tuple[str, ...]) -> Said:
    """Let the task be judged by a gate, too, in which no tests can be seen and that fails on the base."""
    (calculator.repository / "style.txt").write_text("untidy\n")
    commit(calculator)
    calculator.play({"mul": list(attempts)})
    plan = calculator.plan("style", [task("mul", WORKS, *own)], gates=[{"name": "style", "run": STYLE}])
    return calculator.run(plan)


@pytest.mark.more
def test_a_gate_without_visible_tests_that_failed_before_is_not_the_agents_fault(
    calculator: Calculator,
) -> None:
    said = with_red_style(calculator, [write("calc.py", RIGHT)], own=())
    assert said.code == 1, said.out + said.err
    (attempt,) = calculator.attempts("mul")
    assert (attempt.state, attempt.failure) == ("REJECTED", "cannot_check")
    base = calculator.row(Plan).base_sha
    assert f"this fails on commit {base[:12]}, which the work started from" in attempt.detail
    assert f"style ({STYLE})" in attempt.detail
    assert calculator.task("mul").attempts == 0, "no attempt is used up by it"
    assert len(calculator.rows(Run, role=Role.BASELINE)) == 1
    shown = calculator("show", "mul")
    assert base[:12] in shown.out, shown.out


def test_a_gate_that_the_task_is_to_mend_is_held_against_it_until_it_does(calculator: Calculator) -> None:
    mended = [write("calc.py", RIGHT), write("style.txt", "tidy\n")]
    said = with_red_style(calculator, [write("calc.py", RIGHT)], mended, own=(STYLE,))
    assert said.code == 0, said.out + said.err
    assert [one.failure for one in calculator.attempts("mul")] == ["gate", None]
    assert calculator.rows(Run, role=Role.BASELINE) == [], "nothing was asked of the base"


def test_a_test_that_only_the_acceptance_runs_may_not_be_left_out(calculator: Calculator) -> None:
    commit(calculator, extra_py="ONE = 1\n", tests__test_extra_py=EXTRA)
    calculator.play({"swallows": [[write("calc.py", RIGHT), write("extra.py", "import no_such_module\n")]]})
    compiles = [{"name": "compiles", "run": "python -B -m py_compile calc.py"}]
    tasks = [task("swallows", f"{PYTEST} tests", max_attempts=1)]
    said = calculator.run(calculator.plan("own", tasks, gates=compiles))
    assert said.code == 1, said.out + said.err
    (attempt,) = calculator.attempts("swallows")
    left = "1 test that passed without the work is skipped with it: tests/test_extra.py::test_one"
    assert (attempt.failure, attempt.detail) == ("gate", f"swallows is right: {left}")


def test_tests_written_first_do_not_hold_up_the_work_on_another_task(calculator: Calculator) -> None:
    names = ("one", "two", "three")
    commit(
        calculator,
        **{
            f"tests__test_{name}_py": f"from {name} import value\ndef test_{name}():\n    assert value == 1\n"
            for name in names
        },
    )
    calculator.play({name: [[write(f"{name}.py", "value = 1\n")]] for name in names})
    tasks = [task(name, f"python -B -c 'import {name}'", max_attempts=1) for name in names]
    plan = calculator.plan("first", tasks, gates=[{"name": "tests", "run": PYTEST}])
    checked = calculator("plan", "check", str(plan))
    told = "3 test files cannot be loaded there: tests/test_one.py, tests/test_three.py, tests/test_two.py"
    assert told in checked.out, checked.out + checked.err
    said = calculator.run(plan)
    assert [calculator.attempts(name)[0].state for name in names] == ["LANDED"] * 3, said.out + said.err
    assert calculator.rows(VerdictRecord)[-1].verdict.status == "passed"


def test_a_gate_that_names_a_missing_file_is_refused_before_anything_is_paid(calculator: Calculator) -> None:
    calculator.play({"mul": [[write("calc.py", RIGHT)]]})
    gates = [{"name": "tests", "run": f"{PYTEST} tests/test_none.py"}]
    plan = calculator.plan("lost", [task("mul", WORKS)], gates=gates)
    words = "the gate tests names tests/test_none.py, which the base commit does not have and no task is to create"
    checked = calculator("plan", "check", str(plan))
    assert checked.code == 2
    assert words in " ".join(checked.out.split()), checked.out
    refused = calculator.run(plan)
    assert refused.code == 2
    assert words in " ".join(refused.err.split()), refused.err
    assert calculator.journal() == []
