"""What the legs of a plan's verification and of its finish share: how they begin, and how they are lost."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVarTuple

from loopwright.core.rows.model import Attempt, Leg, Loop, Plan, Project, Task
from loopwright.core.values.errors import FenceLost, StaleVersion
from loopwright.core.values.states import AttemptState
from loopwright.engine.memory.interrupts import Interrupts
from loopwright.engine.rows.world import World
from loopwright.ports import Tx

log = logging.getLogger(__name__)

Loaded = TypeVarTuple("Loaded")


async def carry_on(
    world: World,
    leg: Leg,
    interrupts: Interrupts,
    load: Callable[[Tx], tuple[*Loaded] | None],
    work: Callable[[*Loaded, asyncio.Event], Awaitable[None]],
) -> None:
    """Do a leg's work with its rows, unless another leg owns them by now."""
    interrupt = interrupts.event(leg.subject)
    try:
        loaded = await world.store.read(load)
        if loaded is not None:
            await work(*loaded, interrupt)
    except (FenceLost, StaleVersion) as lost:
        log.info("leg dropped", extra={"leg": leg.id, "why": str(lost)})
    finally:
        interrupts.forget(leg.subject)


DRIVEN = frozenset(
    {AttemptState.PREPARING, AttemptState.WORKING, AttemptState.CHECKING, AttemptState.LANDING}
)
"""States in which a leg drives an attempt."""


# The rows that a leg of an attempt works on.


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows that a leg works on, as last read."""

    project: Project
    loop: Loop
    plan: Plan
    task: Task
    attempt: Attempt
