"""Work that is meant to change tests, or has nothing to do with them, is not held up by the gate's own files."""

import json

import pytest
from tests.acceptance.cli.program import git
from tests.acceptance.gates.calculator import CALC, FILES, PYPROJECT, PYTEST, RIGHT, TESTS, Calculator, write
from tests.acceptance.sandbox import task

from loopwright.core.model import Role, Run

NEW_TEST = "from calc import mul\n\n\ndef test_mul():\n    assert mul(2, 3) == 6\n"
DEPENDENCY = PYPROJECT.replace("dependencies = []", 'dependencies = ["some-package>=1"]')


def gate_runs(calculator: Calculator) -> int:
    return len(calculator.rows(Run, role=Role.GATE))


def test_new_tests_a_dependency_and_a_target_beside_the_gate_are_no_tampering_and_cost_no_second_run(
    calculator: Calculator,
) -> None:
    calculator.program.by_default()
    steps = [
        write("calc.py", RIGHT),
        write("tests/test_mul.py", NEW_TEST),
        write("pyproject.toml", DEPENDENCY),
        write("Makefile", FILES["Makefile"] + "\ndocs:\n\techo docs\n"),
    ]
    said = calculator.carry_out(steps, gate="make test")
    assert said.code == 0, said.out + said.err
    facts = calculator.gate_files()
    assert (facts["added_tests"], facts["pinned"], facts["exempt"]) == (1, (), ())
    assert (facts["red_proof"], facts["red_tests"]) == (True, ("tests/test_mul.py",))
    assert gate_runs(calculator) == 1


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
    # All runs pass, but nobody has looked whether the new settings ask for less.
    assert said.code == 4, said.out + said.err
    facts = calculator.gate_files()
    assert facts["pinned"] == facts["uncompared"] == ("pyproject.toml",)
    assert gate_runs(calculator) == 3
    receipt = calculator.receipt()
    assert any("pyproject.toml" in gap for gap in receipt["not_checked"])

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


def test_a_changed_test_in_another_language_caps_the_outcome_and_is_named(calculator: Calculator) -> None:
    (calculator.repository / "tests" / "calc.test.js").write_text("expect(add(2, 2)).toBe(4)\n")
    git(calculator.repository, "add", "-A")
    git(calculator.repository, "commit", "-q", "-m", "another language")
    said = calculator.carry_out(
        [write("calc.py", RIGHT), write("tests/calc.test.js", "expect(add(2, 2)).toBeTruthy()\n")]
    )
    assert said.code == 4, said.out + said.err
    assert calculator.gate_files()["uncompared"] == ("tests/calc.test.js",)
    assert calculator.task("mul").outcome == "verified_with_gaps"
    words = "changed files of the gate, and whether they ask for less now was not compared"
    gap = f"task 'mul' {words}: tests/calc.test.js"
    assert gap in calculator.receipt()["not_checked"]
    assert f"gap: {gap}" in " ".join(said.out.split())
    assert f"gap: {gap}" in " ".join(calculator("show", "mul").out.split())


@pytest.mark.more
def test_more_asserts_in_an_existing_test_land_after_both_runs(calculator: Calculator) -> None:
    more = TESTS + "    assert add(0, 1) == 1\n"
    said = calculator.carry_out([write("calc.py", RIGHT), write("tests/test_calc.py", more)])
    assert said.code == 0, said.out + said.err
    facts = calculator.gate_files()
    assert facts["pinned"] == ("tests/test_calc.py",)
    assert facts["pinned_tree"] is not None
    assert gate_runs(calculator) == 2
    assert calculator.receipt()["outcome"] == "verified"


def test_a_declared_test_may_ask_for_something_else_and_the_receipt_says_so(calculator: Calculator) -> None:
    other = TESTS.replace("add(2, 2) == 4", "add(2, 2) >= 4")
    said = calculator.carry_out(
        [write("calc.py", RIGHT), write("tests/test_calc.py", other)], scope=["calc.py", "tests/test_calc.py"]
    )
    assert said.code == 4, said.out + said.err
    facts = calculator.gate_files()
    assert (facts["exempt"], facts["pinned"]) == (("tests/test_calc.py",), ())
    assert facts["weakened"] == ("tests/test_calc.py: no longer checked: assert add(2, 2) == 4",)
    assert calculator.task("mul").outcome == "verified_with_gaps"
    receipt = calculator.receipt()
    assert receipt["outcome"] == "verified_with_gaps"
    assert any("with leave, and no reviewer looked at them" in gap for gap in receipt["not_checked"])
    assert gate_runs(calculator) == 1


@pytest.mark.more
def test_a_module_is_renamed_with_its_tests_when_the_task_declares_them(calculator: Calculator) -> None:
    steps = [
        {"run": "git mv calc.py maths.py && git mv tests/test_calc.py tests/test_maths.py"},
        write("tests/test_maths.py", TESTS.replace("calc", "maths")),
        write("maths.py", RIGHT),
        write("calc.py", "from maths import mul\n"),
    ]
    said = calculator.carry_out(steps, scope=["calc.py", "maths.py", "tests/"])
    assert said.code == 4, said.out + said.err
    facts = calculator.gate_files()
    assert facts["exempt"] == ("tests/test_calc.py",)
    assert facts["weakened"] == (
        "tests/test_calc.py: test_add was removed",
        "tests/test_calc.py: test_zero was removed",
    )


def test_a_person_allows_afterwards_that_a_test_is_changed(calculator: Calculator) -> None:
    other = TESTS.replace("add(2, 2) == 4", "add(2, 2) >= 4")
    said = calculator.carry_out([write("calc.py", RIGHT), write("tests/test_calc.py", other)], max_attempts=1)
    assert said.code == 1, said.out + said.err
    assert "no longer checked: assert add(2, 2) == 4" in calculator("show", "mul").out
    said = calculator("retry", "mul", "--allow", "tests/test_calc.py", timeout=100)
    assert said.code == 4, said.out + said.err
    assert calculator.gate_files(2)["exempt"] == ("tests/test_calc.py",)
    assert calculator.receipt()["tasks"][0]["approved"] == ["tests/test_calc.py"]


@pytest.mark.more
def test_a_scope_of_everything_declares_no_file_of_the_gate(calculator: Calculator) -> None:
    said = calculator.carry_out([write("calc.py", RIGHT), {"delete": "tests/test_calc.py"}], scope=["**"])
    assert said.code == 1, said.out + said.err
    assert {attempt.failure for attempt in calculator.attempts("mul")} == {"gate"}


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
    assert said.code == 4, said.out + said.err
    assert calculator.gate_files()["pinned"] == ("rules/limit",)


def test_a_module_that_is_renamed_with_its_tests_is_verified_and_named_as_moved(
    calculator: Calculator,
) -> None:
    renamed = TESTS.replace("from calc", "from sums")
    calculator.play(
        {
            "rename": [
                [
                    {"run": "git mv calc.py sums.py && git mv tests/test_calc.py tests/test_sums.py"},
                    write("tests/test_sums.py", renamed),
                ]
            ]
        }
    )
    gates = [{"name": "tests", "run": PYTEST}]
    works = f"{PYTEST} tests/test_sums.py"
    plan = calculator.plan("calculator", [task("rename", works, type="refactor")], gates=gates)
    said = calculator.run(plan)
    assert said.code == 0, said.out + said.err
    (attempt,) = calculator.attempts("rename")
    facts = attempt.gate_files
    assert facts is not None
    assert facts.moved == ("tests/test_calc.py -> tests/test_sums.py",)
    assert (facts.pinned, facts.exempt, facts.weakened, facts.added_tests) == ((), (), (), 0)
    receipt = calculator.receipt()
    assert receipt["outcome"] == "verified"
    assert receipt["tasks"][0]["attempts"][0]["gate_files"]["moved"] == list(facts.moved)
    file = str(calculator.place / "receipt.json")
    for more in ((), ("--task", "rename")):
        replayed = calculator("receipt", "replay", file, "--yes", *more, "--json")
        assert replayed.code == 0, replayed.out + replayed.err
        assert all(one["differences"] == [] for one in replayed.document["replayed"]), replayed.out


@pytest.mark.more
def test_a_moved_test_stays_where_configuration_is_put_back_and_the_tree_is_built_again(
    calculator: Calculator,
) -> None:
    settings = PYPROJECT.replace('addopts = "-q"', 'addopts = "-q -rs"')
    steps = [
        write("calc.py", RIGHT),
        {"run": "git mv tests/test_calc.py tests/test_sums.py"},
        write("pyproject.toml", settings),
    ]
    said = calculator.carry_out(steps)
    assert said.code == 4, said.out + said.err
    facts = calculator.gate_files()
    assert facts["moved"] == ("tests/test_calc.py -> tests/test_sums.py",)
    assert facts["pinned"] == facts["uncompared"] == ("pyproject.toml",)
    calculator.receipt()
    file = str(calculator.place / "receipt.json")
    replayed = calculator("receipt", "replay", file, "--yes", "--task", "mul", "--json")
    assert replayed.code == 0, replayed.out + replayed.err
    assert replayed.document["not_replayed"] == []
    assert all(one["differences"] == [] for one in replayed.document["replayed"]), replayed.out


@pytest.mark.more
def test_a_moved_test_that_no_gate_shows_running_caps_the_outcome_and_is_named(
    calculator: Calculator,
) -> None:
    steps = [write("calc.py", RIGHT), {"run": "git mv tests/test_calc.py tests/test_sums.py"}]
    said = calculator.carry_out(steps, gate="python -B -m py_compile calc.py")
    assert said.code == 4, said.out + said.err
    named = "tests/test_calc.py was moved to tests/test_sums.py, and none of its tests was seen to run there"
    assert any(named in gap for gap in calculator.receipt()["not_checked"])


def test_a_new_test_that_acts_on_others_and_judges_the_work_is_named_with_its_line(
    calculator: Calculator,
) -> None:
    acting = f"import calc\n\ncalc.mode = 1\n{NEW_TEST}"
    steps = [write("calc.py", RIGHT), write("tests/test_mul.py", acting)]
    said = calculator.carry_out(steps, gate=f"{PYTEST} tests/test_calc.py tests/test_mul.py || {PYTEST}")
    assert said.code == 4, said.out + said.err
    assert calculator.gate_files()["uncompared"] == ()
    words = "has new tests that judge it and do something that the others see"
    gap = f"task 'mul' {words}: tests/test_mul.py, line 3: calc.mode = 1"
    assert gap in calculator.receipt()["not_checked"]
    assert f"gap: {gap}" in " ".join(calculator("show", "mul").out.split())


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
    assert said.code == 4, said.out + said.err
    facts = calculator.gate_files()
    assert (facts["uncompared"], facts["pinned_without"]) == (("tests/conftest.py",), (command,))
    assert gate_runs(calculator) == 1
    words = "task 'mul' has commands that ran only with its own conftest.py, which their new tests need"
    assert f"{words}: {command}" in calculator.receipt()["not_checked"]
