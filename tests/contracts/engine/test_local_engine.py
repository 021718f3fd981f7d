"""What only the embedded engine does."""

import asyncio

from tests.contracts.engine.legs import Legs
from tests.waiting import eventually_async

from loopwright.adapters.dispatch import local
from loopwright.adapters.dispatch.local import LocalEngine
from loopwright.core.rows.model import Leg


async def test_the_oldest_ended_legs_are_forgotten_so_that_memory_is_bounded(legs: Legs) -> None:
    runs: list[str] = []

    async def execute(leg: Leg) -> None:
        runs.append(leg.id)

    engine = LocalEngine(on_error=legs.on_error)
    await engine.launch(execute, worker_id="w", slots=100)
    many = [Leg(subject="att", n=n, fence=1) for n in range(local.REMEMBERED + 1)]
    for leg in many:
        await engine.start(leg)
    while await engine.in_flight():
        await asyncio.sleep(0)
    assert len(runs) == len(many)
    await engine.start(many[1])
    await engine.start(many[-1])
    await engine.start(many[0])
    await eventually_async(lambda: len(runs) == len(many) + 1)
    assert runs[-1] == many[0].id
    await engine.close()


async def test_an_error_while_a_closed_leg_cleans_up_is_still_reported(legs: Legs) -> None:
    engine = LocalEngine(on_error=legs.on_error)

    async def execute(leg: Leg) -> None:
        try:
            await legs.execute(leg)
        finally:
            raise ValueError("cannot clean up")

    await engine.launch(execute, worker_id="w", slots=1)
    leg = legs.new(held=True)
    await engine.start(leg)
    await legs.see_begun(leg)
    await engine.close()
    [(leg_id, error)] = legs.errors
    assert (leg_id, str(error)) == (leg.id, "cannot clean up")
