"""Sees to it that there is room on the disk: nothing is started without it."""

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import Final

from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Plan
from loopwright.engine.memory.interrupts import Interrupted
from loopwright.engine.rows.moves import MACHINE
from loopwright.engine.rows.world import World
from loopwright.ports import Tx

log = logging.getLogger(__name__)

_LOOK_S: Final = 5.0
"""How often it is looked whether there is room again."""


async def until_room(world: World, plan: Plan, interrupt: asyncio.Event) -> None:
    """Wait until another agent may start, or until the leg is to stop; say so once for all that wait."""
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
