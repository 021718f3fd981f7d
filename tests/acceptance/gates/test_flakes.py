"""A check that fails by chance costs no attempt and is named; what the work broke is not excused by it."""

import json
from pathlib import Path

import pytest
from tests.acceptance.gates.calculator import PYTEST, RIGHT, TESTS, Calculator, write
from tests.acceptance.gates.test_witness import bad, commit
from tests.acceptance.sandbox import task

from loopwright.core.rows.model import Role, Run, VerdictRecord

CHANCE = """import pathlib

import calc

def test_chance():
    times = pathlib.Path({path!r})
    count = len(times.read_text()) if times.exists() else 0
    times.write_text("x" * (count + 1))
    assert count not in {red!r}
"""
"""Fails at the times that are given, counted over everything that runs it; a broken project cannot run it."""
NAME = "tests/test_chance.py::test_chance"


def by_chance(place: Path, *red: int) -> str:
    return CHANCE.format(path=str(place / "times"), red=red)


def test_a_test_that_fails_by_chance_costs_no_attempt_and_is_named(calculator: Calculator) -> None:
    commit(calculator, tests__test_chance_py=by_chance(calculator.place, 0))
    # The first to run it is the gate of the work; what it passed on before is found out right after.
    said = calculator.carry_out([write("calc.py", RIGHT)])
    assert said.code == 4, said.out + said.err
    (attempt,) = calculator.attempts("mul")
    assert attempt.state == "LANDED"
    assert calculator.task("mul").outcome == "verified_with_gaps"
    (landed, *_) = [one.verdict for one in calculator.rows(VerdictRecord) if one.verdict.reruns]
    assert [(one.folder, one.alone) for one in landed.reruns] == [
        ("again-alone", True),
        ("again-whole", False),
    ]
    assert [command.flaky for command in landed.commands] == [(), (NAME,)]
    assert len(calculator.rows(Run, role=Role.GATE)) == 1, "all of it is one gate run"
    assert f"flaky, failed and then passed on the same tree: {NAME}" in calculator("show", "mul").out
    (listed,) = json.loads(calculator("stats", "flaky", "--json").out)["flaky"]
    assert (listed["name"], listed["times"], listed["task"]) == (NAME, 1, "mul")
    assert f"{NAME}  1 time" in calculator("stats", "flaky").out
    gaps = calculator.receipt()["not_checked"]
    assert (
        f"task 'mul' landed with flaky checks, which failed and passed when they were run again: {NAME}"
        in gaps
    )


@pytest.mark.more
def test_a_test_that_fails_among_the_others_only_is_the_works_own_fault(calculator: Calculator) -> None:
    shared = "import calc\n\n\ndef test_state():\n    assert not getattr(calc, 'STATE', [])\n"
    commit(calculator, tests__test_state_py=shared)
    spoils = f"STATE = []\n\n\n{RIGHT}".replace("return a + b", "STATE.append(a)\n    return a + b")
    said = calculator.carry_out([write("calc.py", spoils)], max_attempts=1)
    assert said.code == 1, said.out + said.err
    words = "passed alone, and failed again together with the other tests: tests/test_state.py::test_state"
    assert bad(calculator) == ["tests", f"tests: {words}"]


@pytest.mark.parametrize("leave", [(), pytest.param(("tests/**",), marks=pytest.mark.more)])
def test_a_flaky_test_that_the_work_brought_along_is_not_excused(
    calculator: Calculator, leave: tuple[str, ...]
) -> None:
    flaky = by_chance(calculator.place, 0, 1)
    brought = "tests/test_calc.py" if leave else "tests/test_chance.py"
    text = f"{flaky}\n\n{TESTS}" if leave else flaky
    commit(calculator, tests__test_chance_py="")
    said = calculator.carry_out(
        [write("calc.py", RIGHT), write(brought, text)], max_attempts=1, scope=["calc.py", *leave]
    )
    assert said.code == 1, said.out + said.err
    (attempt,) = calculator.attempts("mul")
    assert (attempt.state, attempt.failure) == ("REJECTED", "gate")
    assert not any(one.verdict.reruns for one in calculator.rows(VerdictRecord))


@pytest.mark.more
def test_what_was_green_on_the_very_tree_is_run_again_alone_when_the_plan_is_verified(
    calculator: Calculator,
) -> None:
    # Green in the gate of the work and on the base, red when the same tree is verified, and green again alone.
    commit(calculator, tests__test_chance_py=by_chance(calculator.place, 2))
    # A gate that reads whom it runs for is not answered from the record of another run.
    said = calculator.carry_out([write("calc.py", RIGHT)], gate=f": $LOOPWRIGHT_PLAN; {PYTEST}")
    assert said.code == 4, said.out + said.err
    assert calculator.task("mul").outcome == "verified"
    verdict = calculator.rows(VerdictRecord)[-1].verdict
    assert [one.folder for one in verdict.reruns] == ["again-alone"]
    (gap,) = calculator.receipt()["gaps"]
    assert (gap["code"], gap["task"], NAME in gap["cause"]) == ("flaky", None, True)
    again = calculator("receipt", "replay", str(calculator.place / "receipt.json"), "--yes", "--json")
    assert again.code == 0, again.out + again.err
    assert again.document["replayed"][0]["differences"] == [], "what is flaky may say something else"


STEADY = "def test_own():\n    assert True\n"
FAILS_ONCE = """import pathlib


def test_own():
    assert True
    flag = pathlib.Path({flag!r})
    if flag.exists():
        flag.unlink()
        assert False
"""
"""Fails at the next time when somebody has put up a flag."""


@pytest.mark.more
def test_a_flaky_test_of_the_work_is_not_excused_when_the_plan_ends_or_work_is_taken_back(
    calculator: Calculator,
) -> None:
    flag = calculator.place / "flag"
    commit(calculator, tests__test_own_py=STEADY)
    flaky = write("tests/test_own.py", FAILS_ONCE.format(flag=str(flag)))
    calculator.play(
        {
            "test": [[write("own", "0\n"), flaky]],
            "one": [[write("one", "1\n")]],
            "two": [[write("two", "2\n")]],
        },
    )
    tasks = [
        task("test", "test -e own"),
        task("one", "test -e one", depends_on=["test"]),
        task("two", "test -e two", depends_on=["test"]),
    ]
    said = calculator.run(calculator.plan("ends", tasks, gates=[{"name": "tests", "run": PYTEST}]))
    assert said.code == 0, said.out + said.err
    flag.touch()
    # Not the last one: the branch has not had what then stays.
    said = calculator("rollback", calculator.landed()[1], "--yes", timeout=100)
    assert "what stays does not pass without it" in " ".join((said.out + said.err).split())
    assert said.code != 0
    assert not flag.exists(), "it was run"
    flag.touch()
    commit(calculator, other_py="")
    said = calculator("accept", "--finish", "squash", timeout=100)
    assert "these checks fail: " in " ".join(said.out.split()), said.out + said.err
    assert said.code != 0
    assert not flag.exists(), "it was run"
    assert not any(one.verdict.reruns for one in calculator.rows(VerdictRecord))


def test_who_tries_again_has_the_same_work_judged_again(calculator: Calculator) -> None:
    fails_once = f"test -e {calculator.place}/flaked || {{ touch {calculator.place}/flaked; false; }}"
    same = [write("calc.py", RIGHT)]
    said = calculator.carry_out(same, same, gate=fails_once, max_attempts=1)
    assert said.code == 1, said.out + said.err
    said = calculator("retry", "mul", timeout=100)
    assert said.code == 0, said.out + said.err
    first, second = calculator.attempts("mul")
    assert (first.failure, second.state) == ("gate", "LANDED")
    assert first.candidate_tree == second.candidate_tree
    assert "verdicts_differ" in [one["code"] for one in calculator.receipt()["notes"]]
