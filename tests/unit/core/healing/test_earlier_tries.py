"""What the next attempt is told about the attempts before it."""

from typing import Any

from tests.contracts.store import rows

from loopwright.core.healing.earlier_tries import MOST, Try, failed_tries, masked, repeated, tries, words
from loopwright.core.rows.model import Attempt, Task
from loopwright.core.values.failures import RULES, Failure
from loopwright.core.values.states import AttemptState

TASK: Task = rows.task(rows.plan(rows.loop(rows.project())))


def attempt(n: int, **facts: Any) -> Attempt:
    return rows.attempt(TASK, n=n, id=f"attempt_{n}", **facts)


def rejected(n: int, failure: Failure = Failure.GATE, **facts: Any) -> Attempt:
    return attempt(n, state=AttemptState.REJECTED, failure=failure, **facts)


def one(n: int, found: str = "the sum is wrong", **facts: Any) -> Try:
    return Try(n=n, agent="scripted", failure=Failure.GATE, found=found, **facts)


def test_each_judged_attempt_has_what_the_next_one_was_told_and_what_its_agent_said() -> None:
    found = tries(
        [
            attempt(4, evidence="second finding"),
            rejected(1, touched=("a.py",)),
            rejected(2, evidence="first finding"),
            attempt(3, state=AttemptState.BROKEN, failure=Failure.CRASH, evidence="second finding"),
        ],
        {"attempt_1": "I added it."},
    )
    assert [(t.n, t.touched, t.said, t.found) for t in found] == [
        (1, ("a.py",), "I added it.", "first finding"),
        (2, (), "", "second finding"),
    ]


def test_a_diagnosis_also_sees_what_a_fault_of_the_machine_ended() -> None:
    broken = attempt(2, state=AttemptState.BROKEN, failure=Failure.SETUP, detail="npm ci failed")
    found = failed_tries([attempt(3), broken, rejected(1, detail="red")], {})
    assert [(t.n, t.failure, t.found) for t in found] == [
        (1, Failure.GATE, "red"),
        (2, Failure.SETUP, "npm ci failed"),
    ]


def test_an_attempt_without_evidence_is_told_by_its_failure() -> None:
    (found,) = tries([rejected(1, Failure.HANG), attempt(2)], {})
    assert found.found == RULES[Failure.HANG].advice


def test_all_attempts_are_told_with_what_they_changed_said_and_failed_on() -> None:
    text = words(
        [one(1, "wrong sum", touched=("a.py", "b.py"), said="Added\nthem."), one(2, "wrong sign")],
        known="wrong sign",
    )
    assert text == (
        "Attempt 1 (scripted) changed a.py, b.py.\n"
        "  Its agent said: Added them.\n"
        "  It failed (gate): wrong sum\n"
        "Attempt 2 (scripted) changed nothing.\n"
        "  It failed (gate): as above"
    )
    assert words([]) == ""


def test_what_is_told_is_bounded() -> None:
    long = [one(n, "x" * 5_000, said="y" * 5_000, touched=("z" * 100,) * 50) for n in range(1, 40)]
    text = words(long)
    assert text.startswith(f"({39 - MOST} older attempts are left out.)\nAttempt 35 ")
    assert len(text) < 10_000


def test_the_same_failure_is_recognised_whatever_the_numbers_and_paths_are() -> None:
    first = "/tmp/w-1/abc/calc.py:3: assert 1 == 2 in 0.5s (0x7f3a)"
    again = "/tmp/w-2/xyz/calc.py:9: assert 4 == 5 in 1.25s (0x11bb)"
    assert masked(first) == masked(again) == "calc.py:<n>: assert <n> == <n> in <n>s (<id>)"
    assert masked("tests/unit/test_a.py::test_1") != masked("tests/unit/test_a.py::test_2")
    assert repeated([one(1, "other"), one(2, first), one(3, again)]) == 2
    assert repeated([one(1)]) == 1
    assert repeated([]) == 0
