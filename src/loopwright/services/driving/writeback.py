"""Have a source's status written back before a plan is made of it, or after one has ended."""

import asyncio
import time
from contextlib import suppress
from typing import Final

from loopwright.adapters import registry
from loopwright.app import Home, catch_up_state_files, make_world
from loopwright.engine.plans.state_export import is_exported
from loopwright.engine.rows.world import World
from loopwright.engine.rows.writeback_debts import Untold, ask, is_asked, note_outcome
from loopwright.engine.sources.later_edits import ended_plan, stale_items
from loopwright.services.homes.session import Session

_AGAIN_S: Final = 1.0
"""How often to look whether the worker has written the status back."""
_NET_S: Final = 5.0
"""How long to wait for a worker that is about to do so."""
_TELL_S: Final = 40.0
"""How long to wait for a worker that was asked to: a tracker may take half a minute for its answer."""


def world_of(at: Session) -> World:
    """Return the ports for a single step that is taken here."""
    return make_world(at.home, at.settings, at.env, slots=1)


async def until_told(home: Home, plan_id: str) -> None:
    """Wait a moment until the worker of a plan has written its last status back."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_NET_S):
            while not await home.store.read(lambda tx: is_exported(tx, plan_id)):
                await home.store.changed(_AGAIN_S)


async def tell_now(at: Session, plan_id: str) -> None:
    """Write the status of a plan back now: here, or by the worker of the home, which may be waiting to retry."""
    home, world = at.home, world_of(at)
    is_done = await catch_up_state_files(world)
    await until_told(home, plan_id)
    if is_done or not await home.store.transact("source.asked", lambda tx: ask(tx, plan_id)):
        return
    until = time.monotonic() + _TELL_S
    while await home.store.read(lambda tx: is_asked(tx, plan_id)) and time.monotonic() < until:
        await home.store.changed(_AGAIN_S)
        if await catch_up_state_files(world):
            return  # the worker has left


async def tell_stale(at: Session, plan_id: str) -> bool:
    """Write the status back again where the source says that settled items are in progress; return whether it did.

    An editor saved an older copy of the source over the end.
    """
    home = at.home
    ended = await home.store.read(lambda tx: ended_plan(tx, plan_id))
    if ended is None or ended.kind not in registry.known_sources():
        return False
    items = await asyncio.to_thread(stale_items, registry.source(ended.kind), ended)
    if items:
        left = Untold(reason="it was saved with an older status", items=items)
        await home.store.transact("source.debt", lambda tx: note_outcome(tx, plan_id, left))
        await tell_now(at, plan_id)
    return bool(items)
