"""Limit the disk space of agents, gates and setup commands, measured while they run."""

import asyncio
import logging
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Plan
from loopwright.engine.memory.interrupts import Interrupted
from loopwright.engine.rows.moves import MACHINE
from loopwright.engine.rows.world import World
from loopwright.ports import Tx

_FIRST_S: Final = 1.0
_LAST_S: Final = 30.0
_REST: Final = 50
"""The folders of a run are measured sooner at first, then at this interval.

Measuring never uses more than a fiftieth of the time, because counting a large workspace takes a while.
"""


class RoomWatch:
    """Measures from time to time how much disk space the folders of a run use."""

    def __init__(self, world: World, *folders: Path) -> None:
        self._room = world.room
        self._clock = world.clock
        self._folders = folders
        self.why = ""
        """Why the run has to stop; empty while it may continue."""

    async def until_over(self) -> None:
        """Wait until the run has used more space than it may."""
        pace = _FIRST_S
        if not self._room.is_limited:
            await asyncio.Event().wait()
        while not self.why:
            await self._clock.sleep(pace)
            began = self._clock.monotonic()
            self.why = await asyncio.to_thread(self._room.excess, *self._folders)
            took = self._clock.monotonic() - began
            pace = max(min(2 * pace, _LAST_S), took * _REST)


# Checks that the disk has free space: nothing starts without it.

log = logging.getLogger(__name__)

_LOOK_S: Final = 5.0
"""How often it is checked whether there is space again."""


async def until_room(world: World, plan: Plan, interrupt: asyncio.Event) -> None:
    """Wait until another agent may start, or the leg should stop; report it once for all that wait."""
    room = world.room
    while lacking := room.lacking():
        if interrupt.is_set():
            raise Interrupted
        if not room.is_low:
            room.is_low = True
            log.warning("nothing new is started until there is room", extra={"why": lacking})
            await world.store.transact("disk.low", partial(_tell, what="disk_low", plan=plan, why=lacking))
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                await interrupt.wait()
    if room.is_low:
        room.is_low = False
        await world.store.transact("disk.free", partial(_tell, what="disk_free", plan=plan))


def _tell(tx: Tx, *, what: str, plan: Plan, why: str = "") -> None:
    tx.append(happened(what, MACHINE, plan=plan, why=why))
