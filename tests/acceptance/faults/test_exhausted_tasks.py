"""A task that fails each time: what each attempt is told, and what you are told when no attempt is left."""

import pytest
from tests.acceptance.faults.record import Record
from tests.acceptance.sandbox import Sandbox, task
from tests.loaded import Said
from tests.once import once


@pytest.fixture(scope="session")
def exhausted(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """A plan with a task that no attempt gets right. Tests may only look at it."""
    place, said = once(tmp_path_factory, "exhausted", lambda place: _exhaust(Sandbox(place)))
    return Record(place / "greeter", home=place / "home", said=said)


def _exhaust(sandbox: Sandbox) -> Said:
    sandbox.play(
        {
            "sum": [
                [{"write": "sum.txt", "text": "[FAIL] the sum is 3\n"}, {"claim": "I added one."}],
                [{"write": "total.txt", "text": "4\n"}, {"claim": "I wrote the total."}],
                [{"write": "sum.txt", "text": "[FAIL] the sum is 5\n"}, {"claim": "I added two."}],
            ],
        }
    )
    return sandbox.run(sandbox.plan("sums", [task("sum", "cat sum.txt")]))


def test_each_attempt_is_told_what_all_attempts_before_it_tried_and_how_they_failed(
    exhausted: Record,
) -> None:
    assert exhausted.failures("sum") == ["gate", "gate", "gate"]
    assert "changed sum.txt" not in exhausted.prompt("sum", 1)
    second, third = exhausted.prompt("sum", 2), exhausted.prompt("sum", 3)
    assert "Attempt 1 (scripted) changed sum.txt." in second
    assert "Its agent said: I added one." in second
    assert "It failed (gate): as above" in second, "the whole finding is above it"
    assert "[FAIL] the sum is 3" not in third.partition("Each attempt so far")[0], "the newest finding"
    assert "[FAIL] the sum is 3" in third, "the older one is told too"
    assert "Attempt 2 (scripted) changed total.txt." in third
