"""Work on whatever is due in a home, for every project, until told to stop."""

import asyncio
import os
from collections.abc import Callable
from typing import Final

from loopwright.adapters.home.membership import ALL
from loopwright.app import make_worker, make_world
from loopwright.engine.rows.world import World
from loopwright.services.homes.context import called_as
from loopwright.services.homes.session import Session

_LOOK_S: Final = 1.0

Standing = Callable[[int | None], None]
"""Called once while another process works in the home, with its pid."""


async def take_home(at: Session, stop: asyncio.Event, standing_by: Standing) -> bool:
    """Become the worker of a home; wait while another process is. False if told to stop first."""
    membership = at.home.membership
    # A process that drives one plan sees this, lets go of the home and only follows its plan.
    membership.attend(ALL)
    told = False
    while not membership.acquire({"pid": os.getpid(), "command": called_as(), "serves": ALL}):
        if not told:
            standing_by((membership.holder() or {}).get("pid"))
            told = True
        if stop.is_set():
            return False
        await at.home.store.changed(_LOOK_S)
    return True


def world_for_all(at: Session, slots: int | None = None) -> World:
    """Put the parts of a worker for all projects together."""
    return make_world(at.home, at.settings, at.env, slots=slots or at.settings.values.parallel)


async def work(world: World, stop: asyncio.Event) -> None:
    """Work until told to stop. Agents continue without the worker, and the next one adopts them."""

    async def finished() -> bool:
        return stop.is_set()

    running = asyncio.create_task(make_worker(world).run(finished))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        if stop.is_set():
            running.cancel()
    try:
        await running
    except asyncio.CancelledError:
        if not stop.is_set():
            raise
