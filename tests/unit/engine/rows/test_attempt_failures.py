"""How each attempt failed, as rows that can be counted: masked, and hashed to be compared."""

from tests.doubles import Home, planned

from loopwright.core.rows.healing_rows import AttemptFailure
from loopwright.core.rows.model import Plan
from loopwright.core.values.failures import Failure
from loopwright.core.values.healing import Cause
from loopwright.engine.rows.attempts import diagnosis_of


async def failed(home: Home, *details: str, failure: Failure = Failure.GATE) -> None:
    """Let the attempts at the only task fail one after the other."""
    for detail in details:
        (leg,) = await home.turn()
        home.hand.fail(leg, failure, detail)
        await home.ended(leg)


async def test_two_attempts_that_failed_in_the_same_way_have_the_same_signature() -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    await failed(
        home, "calc.py:7: TypeError: 3 at 0x7f3a", "calc.py:19: TypeError: 4 at 0xffff", "other.py: no"
    )
    one, two, three = home.all(AttemptFailure, order_by=("n",))
    assert one.signature == two.signature != three.signature
    assert (one.n, one.step, one.file) == (1, "gate", "calc.py")
    assert one.error == "calc.py:<n>: typeerror: <n> at <id>"
    assert (one.plan_id, one.task_id) == (home.plan().id, home.task("a").id)
    found = home.store.read_sync(lambda tx: diagnosis_of(tx, home.task("a")))
    assert found is not None
    assert found.signature.id == three.signature
    (event,) = home.events("task_failed")
    assert event.payload["signature"] == three.signature


async def test_a_failure_that_speaks_for_a_cause_says_so_and_a_cancelled_attempt_is_no_failure() -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    await failed(home, "it hung", failure=Failure.HANG)
    await home.turn()
    await home.command("cancel", home.all(Plan)[0].id)
    (row,) = home.all(AttemptFailure)
    assert row.cause is Cause.ENVIRONMENT
