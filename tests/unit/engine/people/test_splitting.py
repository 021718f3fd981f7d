"""A person or an agent splits a task, and takes that back."""

import pytest
from tests.doubles import Home, planned

from loopwright.core.rows.model import CommandState
from loopwright.core.values.failures import Failure
from loopwright.core.values.policy import GateCommand, Policy
from loopwright.core.values.states import TaskState

CHECK = GateCommand(name="whole", command="make whole")
PARTS = [{"title": "First half"}, {"title": "Second half", "description": "Do the rest."}]


async def submitted(**policy: object) -> Home:
    home = await Home().launch()
    tasks = (planned("first"), planned("a", "first", acceptance=(CHECK,)))
    home.submit(*tasks, policy=Policy(**policy))  # type: ignore[arg-type]
    return home


async def refused(home: Home, verb: str, key: str, **arguments: object) -> str:
    command = await home.command(verb, home.task(key).id, **arguments)
    assert command.state is CommandState.REFUSED
    return command.result


@pytest.mark.capability("C068")
async def test_the_parts_of_a_split_task_come_first_and_the_task_itself_last() -> None:
    home = await submitted()
    (leg,) = await home.turn()
    assert home.hand.land(leg).key == "first"
    await home.ended(leg)
    await home.command("split", home.task("a").id, parts=PARTS)
    started = []
    for _ in range(3):
        (leg,) = await home.turn()
        started.append(home.hand.land(leg).key)
        await home.ended(leg)
    assert started == ["a-part-1", "a-part-2", "a"]
    assert "a-part-1, a-part-2" in home.attempt("a").advice
    assert home.plan().open_tasks == 0


async def test_a_split_that_is_taken_back_leaves_the_task_as_it_was() -> None:
    home = await submitted()
    before = home.task("a")
    await home.command("split", before.id, parts=PARTS)
    assert home.task("a").unmet == 3
    await home.command("unsplit", before.id)
    after = home.task("a")
    assert (after.depends_on, after.unmet) == (before.depends_on, before.unmet)
    assert home.task("a-part-2").status is TaskState.CANCELLED
    (leg,) = await home.turn()
    home.hand.land(leg)
    await home.ended(leg)
    (leg,) = await home.turn()
    assert home.hand.land(leg).key == "a"
    await home.ended(leg)


async def test_a_task_that_failed_for_good_is_split_and_tried_again() -> None:
    home = await submitted(max_attempts=1)
    (leg,) = await home.turn()
    home.hand.land(leg)
    await home.ended(leg)
    (leg,) = await home.turn()
    home.hand.fail(leg, Failure.GATE, "it failed")
    await home.ended(leg)
    assert home.task("a").status is TaskState.ERROR
    await home.command("split", home.task("a").id, parts=PARTS)
    assert (home.task("a").status, home.task("a").unmet) == (TaskState.QUEUED, 2)
    (leg,) = await home.turn()
    assert home.hand.land(leg).key == "a-part-1"
    await home.ended(leg)


async def test_what_cannot_be_split_is_refused_with_the_reason() -> None:
    home = await submitted()
    assert "has no checks" in await refused(home, "split", "first", parts=PARTS)
    assert "2 to 8" in await refused(home, "split", "a", parts=PARTS[:1])
    (leg,) = await home.turn()
    home.hand.land(leg)
    await home.ended(leg)
    (leg,) = await home.turn()
    assert "RUNNING" in await refused(home, "split", "a", parts=PARTS)
    home.hand.land(leg)
    await home.ended(leg)
    assert "COMPLETE" in await refused(home, "unsplit", "a")
