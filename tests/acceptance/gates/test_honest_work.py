"""Work that no existing check contradicts is verified at once, whatever it did to the tests."""

import json

import pytest
from tests.acceptance.gates.calculator import CALC, PYPROJECT, PYTEST, RIGHT, TESTS, Calculator, write
from tests.acceptance.gates.test_contradictions import commit
from tests.acceptance.sandbox import task
from tests.unit.core.receipts.as_json import named

from loopwright.core.rows.model import Role, Run
from loopwright.core.rows.waiting_rows import Question

NEW_TEST = "from calc import mul\n\n\ndef test_mul():\n    assert mul(2, 3) == 6\n"
DEPENDENCY = PYPROJECT.replace("dependencies = []", 'dependencies = ["some-package>=1"]')
NAMES = """def label(n):
    if n["n"] < 0:
        raise ValueError("below zero")
    return f"n{n['n']}"
"""
NAMES_TEST = """import pytest
from names import label


class TestLabel:
    def test_label(self):
        assert label({"n": 1}) == "n1"


@pytest.mark.parametrize("n", [{"n": 1}, {"n": 2}])
def test_rows(n):
    assert label(n) == f"n{n['n']}"


def test_below_zero():
    with pytest.raises(ValueError):
        label({"n": -1})
"""
EDITED = (
    NAMES_TEST.replace("TestLabel", "TestNames")
    .replace('[{"n": 1},', '[{"n": 0}, {"n": 1},')
    .replace("raises(ValueError)", 'raises(ValueError, match="below")')
    + """

@pytest.mark.skip(reason="not on this platform")
def test_elsewhere():
    assert False


@pytest.mark.slow
def test_with_fixture(five):
    assert label({"n": five}) == "n5"
"""
)
FIXTURE = "import pytest\n\n\n@pytest.fixture\ndef five():\n    return 5\n"
MARKER = PYPROJECT + 'markers = ["slow: takes long"]\n'
RUFF = "python -B -m ruff check --isolated --no-cache names.py testing.py"


def gate_runs(calculator: Calculator) -> int:
    return len(calculator.rows(Run, role=Role.GATE))


def test_tests_that_are_renamed_moved_stricter_parametrised_or_new_need_no_permission(
    calculator: Calculator,
) -> None:
    commit(
        calculator,
        {
            "names.py": NAMES,
            "testing.py": "def sample():\n    return 1\n",
            "tests/test_names.py": NAMES_TEST,
            "src/pluggy/__init__.py": "",
            ".github/ISSUE_TEMPLATE/bug.md": "What happened?\n",
        },
    )
    calculator.play(
        {
            "all": [
                [
                    write("names.py", f"import os  # noqa: F401\n\n\n{NAMES}"),
                    write("testing.py", "def sample():\n    return 2\n"),
                    write("tests/test_names.py", EDITED),
                    write("tests/conftest.py", FIXTURE),
                    write("pyproject.toml", MARKER),
                    {"run": "mkdir tests/unit && git mv tests/test_calc.py tests/unit/test_sums.py"},
                    write("src/pluggy/__init__.py", "from pluggy._hooks import hooks as hooks\n"),
                    write("src/pluggy/_hooks.py", "def hooks():\n    return 1\n"),
                    write(".github/ISSUE_TEMPLATE/bug.md", "What did you expect?\n"),
                ]
            ]
        }
    )
    works = (
        "PYTHONPATH=src python -B -c 'import pluggy, testing; assert pluggy.hooks() + 1 == testing.sample()'"
    )
    gates = [{"name": "tests", "run": PYTEST}, {"name": "lint", "run": RUFF}]
    said = calculator.run(calculator.plan("honest", [task("all", works)], gates=gates))
    assert said.code == 0, said.out + said.err
    (attempt,) = calculator.attempts("all")
    facts = attempt.gate_files
    assert facts is not None
    assert set(facts.pinned) == {
        "pyproject.toml",
        "tests/conftest.py",
        "tests/test_calc.py",
        "tests/test_names.py",
        "tests/unit/test_sums.py",
    }
    assert facts.contradicted == ()
    assert "tests/test_calc.py::test_add" in facts.missing, "tests that no longer run are listed"
    assert (calculator.rows(Question), gate_runs(calculator)) == ([], 2)
    assert len(calculator.rows(Run, role=Role.IMPLEMENTER)) == 1
    receipt = calculator.receipt()
    assert (receipt["outcome"], receipt["gaps"]) == ("verified", [])


@pytest.mark.more
def test_a_dependency_beside_changed_settings_of_the_runner_stays_in_the_run_with_the_old_settings(
    calculator: Calculator,
) -> None:
    both = DEPENDENCY.replace('addopts = "-q"', 'addopts = "-q -rs"')
    needs = "grep -q some-package pyproject.toml"
    unseen = {"name": "unseen", "run": "grep -q some-package pyproject.toml", "hint": "look again"}
    said = calculator.carry_out(
        [write("calc.py", RIGHT), write("pyproject.toml", both)],
        gate=f"{needs} && {PYTEST}",
        held_out=[unseen],
    )
    assert said.code == 0, said.out + said.err
    facts = calculator.gate_files()
    assert facts["pinned"] == ("pyproject.toml",)
    assert gate_runs(calculator) == 3
    receipt = calculator.receipt()
    assert (receipt["outcome"], receipt["gaps"]) == ("verified", [])

    # The tree with the old settings is in no commit: it is built again, and is the very same.
    file = calculator.place / "receipt.json"
    replayed = calculator("receipt", "replay", str(file), "--yes", "--task", "mul", "--json")
    assert replayed.code == 0, replayed.out + replayed.err
    pinned, landed = facts["pinned_tree"], receipt["tasks"][0]["landed_sha"]
    ran = {one["what"]: (one["sha"], one["now"], one["differences"]) for one in replayed.document["replayed"]}
    steered = "task mul with the gate's files as they were before its work"
    assert ran == {
        "task mul": (landed, "passed", []),
        steered: (pinned, "passed", []),
        "held out from task mul": (pinned, "passed", []),
    }
    assert replayed.document["not_replayed"] == []
    receipt["plan"]["policy"]["gate_files"] = ["!pyproject.toml"]
    file.write_text(json.dumps(receipt))
    other = calculator("receipt", "replay", str(file), "--yes", "--task", "mul", "--json").document
    why = f"the tree on which it was judged ({pinned[:10]}) did not come of building it again"
    assert other["not_replayed"] == [
        {"what": what, "why": why} for what in (steered, "held out from task mul")
    ]


def test_a_person_allows_afterwards_that_a_test_is_changed(calculator: Calculator) -> None:
    other = TESTS.replace("add(2, 2) == 4", "add(2, 2) == 5")
    changed = CALC.replace("a + b", "a + b + (a == 2)") + RIGHT.removeprefix(CALC)
    steps = [write("calc.py", changed), write("tests/test_calc.py", other)]
    said = calculator.carry_out(steps, steps, max_attempts=1)
    assert said.code == 3, said.out + said.err
    assert calculator("answer", calculator.row(Question).id, "reject", timeout=100).code in (0, 1)
    calculator("resume", timeout=100)
    assert "a person wants these checks kept" in calculator("show", "mul").out
    said = calculator("retry", "mul", "--allow", "tests/test_calc.py", timeout=100)
    assert said.code == 0, said.out + said.err
    assert calculator.gate_files(2)["contradicted"], "the receipt names what was allowed"
    receipt = calculator.receipt()
    assert (receipt["outcome"], receipt["tasks"][0]["approved"]) == ("verified", ["tests/test_calc.py"])


@pytest.mark.more
def test_the_project_says_which_other_files_steer_its_gate_and_which_do_not(calculator: Calculator) -> None:
    (calculator.repository / "loopwright.toml").write_text('gate_files = ["rules/", "!tests/data/"]\n')
    (calculator.repository / "rules").mkdir()
    (calculator.repository / "rules" / "limit").write_text("3\n")
    (calculator.repository / "tests" / "data").mkdir()
    (calculator.repository / "tests" / "data" / "sums").write_text("1\n")
    calculator.git("add", "-A")
    calculator.git("commit", "-q", "-m", "rules")
    steps = [write("calc.py", CALC + RIGHT), write("rules/limit", "9\n"), write("tests/data/sums", "2\n")]
    said = calculator.carry_out(steps, gate="test $(cat rules/limit) -ge 3")
    assert said.code == 0, said.out + said.err
    assert calculator.gate_files()["pinned"] == ("rules/limit",)


@pytest.mark.more
def test_where_only_new_tests_judge_that_need_a_new_conftest_nothing_is_run_without_it(
    calculator: Calculator,
) -> None:
    fixture = "import pytest\n\n\n@pytest.fixture\ndef six():\n    return 6\n"
    needs = "from calc import mul\n\n\ndef test_mul(six):\n    assert mul(2, 3) == six\n"
    steps = [write("calc.py", RIGHT), write("tests/conftest.py", fixture), write("tests/test_mul.py", needs)]
    calculator.play({"mul": [steps]})
    command = f"{PYTEST} tests/test_mul.py"
    said = calculator.run(calculator.plan("calculator", [task("mul", command)], gates=[]))
    assert said.code == 0, said.out + said.err
    facts = calculator.gate_files()
    assert facts["pinned_without"] == (command,)
    assert gate_runs(calculator) == 1
    assert "needs_added_files mul" in named(calculator.receipt())
