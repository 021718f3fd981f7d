"""A plan's outcome follows from its final tree; gaps have a cause and a remedy, notes change nothing."""

import pytest
from tests.acceptance.cli.program import git
from tests.acceptance.gates.calculator import PYTEST, Calculator, write
from tests.acceptance.sandbox import task

from loopwright.core.rows.model import Plan, Role, Run

NAMES = ("sub", "div")
TEST = "def test_{0}():\n    from {0} import {0}\n\n    assert {0}(6, 3) == {1}\n"
WORK = {
    "sub": [[write("sub.py", "def sub(a, b):\n    return a - b\n")]],
    "div": [[write("div.py", "def div(a, b):\n    return a // b\n")]],
}


def backlog(calculator: Calculator, **tests: str) -> list[object]:
    """Commit tests that fail, and return the tasks that are to make them pass."""
    written = {"sub": TEST.format("sub", 3), "div": TEST.format("div", 2), **tests}
    for name, text in written.items():
        (calculator.repository / "tests" / f"test_{name}.py").write_text(text)
    git(calculator.repository, "add", "-A")
    git(calculator.repository, "commit", "-q", "-m", "a backlog of tests")
    calculator.play(WORK)
    return [task(name, f"{PYTEST} tests/test_{name}.py", type="fix") for name in NAMES]


def test_a_test_first_backlog_ends_verified_and_needs_no_run_without_the_work(calculator: Calculator) -> None:
    tasks = backlog(calculator)
    said = calculator.run(calculator.plan("backlog", tasks, gates=[{"name": "tests", "run": PYTEST}]))
    assert said.code == 0, said.out + said.err
    assert calculator.row(Plan).outcome == "verified"
    assert {calculator.task(name).outcome for name in NAMES} == {"verified"}
    receipt = calculator.receipt()
    assert (receipt["outcome"], receipt["gaps"]) == ("verified", [])
    seen = [one["attempts"][0]["gate_files"]["red_seen"] for one in receipt["tasks"]]
    assert seen == [[f"tests/test_{name}.py::test_{name}"] for name in NAMES], "the baseline shows both fixes"
    assert len(calculator.rows(Run, role=Role.BASELINE)) == 1, "no check ran again without the work"
    noted = [one for one in receipt["notes"] if one["code"] == "failed_as_before"]
    assert len(noted) == 1, "the task that landed first has a note"
    shown = calculator("show", str(noted[0]["task"])).out
    assert f"note: {noted[0]['text']}" in " ".join(shown.split())
    assert "note:" not in said.out


@pytest.mark.more
def test_a_test_that_is_red_before_and_after_the_plan_is_one_gap_with_cause_and_remedy(
    calculator: Calculator,
) -> None:
    tasks = backlog(calculator, old="def test_old():\n    assert False\n")
    said = calculator.run(calculator.plan("backlog", tasks, gates=[{"name": "tests", "run": PYTEST}]))
    assert said.code == 4, said.out + said.err
    assert calculator.row(Plan).outcome == "verified_with_gaps"
    assert {calculator.task(name).outcome for name in NAMES} == {"verified"}
    (gap,) = calculator.receipt()["gaps"]
    assert (gap["code"], "tests/test_old.py::test_old" in gap["cause"]) == ("known_failures", True)
    for out in (said.out, calculator("receipt", "show").out):
        words = " ".join(out.split())
        assert words.count(f"gap: {gap['cause']}") == 1
        assert f"what to do: {gap['remedy']}" in words
        assert "is verified with gaps" not in words


@pytest.mark.more
def test_work_that_only_adds_a_test_beside_a_red_one_contradicts_nothing(calculator: Calculator) -> None:
    backlog(calculator, old="def test_old():\n    assert False\n")
    calculator.play({"more": [[write("tests/test_more.py", "def test_more():\n    assert True\n")]]})
    said = calculator.run(
        calculator.plan(
            "more", [task("more", "test -e tests/test_more.py")], gates=[{"name": "t", "run": PYTEST}]
        )
    )
    assert said.code == 4, said.out + said.err
    assert calculator.task("more").outcome == "verified"
    assert len(calculator.rows(Run, role=Role.IMPLEMENTER)) == 1, "no turn is spent on the old failures"
