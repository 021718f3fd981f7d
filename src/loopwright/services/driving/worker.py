"""Work on whatever is due in a home, in this process, until it is stopped or nothing is left."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopwright.adapters.home.membership import ALL
from loopwright.app import make_worker, make_world
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Worker
from loopwright.core.values.errors import DamagedDatabase, DatabaseReplaced, StoreUnavailable
from loopwright.engine.rows.moves import MACHINE
from loopwright.engine.views.views import goes_on
from loopwright.ports import Tx
from loopwright.services.driving.hung import HungHolder
from loopwright.services.driving.reporting import reporting
from loopwright.services.homes.context import called_as, look_settings
from loopwright.services.homes.session import Session, opened

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingBy:
    """Another process works in the home. This one takes over when that ends."""

    pid: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The process that worked in the home did nothing any more and was ended. This one takes over."""

    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """This process works in the home now."""

    home: Path
    slots: int
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """The database is unavailable. This process works again as soon as it can."""

    why: str


WorkerNews = StandingBy | Ended | Working

_AGAIN_S: Final = 1.0
"""How long it waits before it tries an unavailable database again."""


async def work(
    *,
    slots: int | None = None,
    until_idle: bool = False,
    stop: asyncio.Event,
    tell: Callable[[WorkerNews], None],
) -> None:
    """Run the plans of every project in the home until `stop` is set, or with `until_idle` until none is left.

    Args:
        slots: How many tasks to run at once; None for the setting `parallel`.
        until_idle: Return as soon as nothing is left to do.
        stop: Set it to return. Running agents continue, and the next worker takes them over.
        tell: Gets what this process begins to do.
    """
    async with opened(look_settings()) as at:
        await work_in(at, slots=slots, until_idle=until_idle, stop=stop, tell=tell)


async def keep_working_in(
    at: Session,
    *,
    slots: int | None = None,
    stop: asyncio.Event,
    tell: Callable[[WorkerNews | Interrupted], None],
) -> None:
    """Do what `work_in` does, and begin again when the database is available again.

    A damaged or replaced database is an error: the same process cannot continue with it.
    """
    while not stop.is_set():
        try:
            await work_in(at, slots=slots, stop=stop, tell=tell)
        except (DamagedDatabase, DatabaseReplaced):
            raise
        except StoreUnavailable as away:
            tell(Interrupted(why=str(away)))
            await _answering(at, stop)


async def _answering(at: Session, stop: asyncio.Event) -> None:
    """Wait until the database answers, or `stop` is set."""
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _AGAIN_S)
        with contextlib.suppress(StoreUnavailable):
            await at.home.store.read(lambda tx: tx.now())
            return


async def work_in(
    at: Session,
    *,
    slots: int | None = None,
    until_idle: bool = False,
    stop: asyncio.Event,
    tell: Callable[[WorkerNews], None],
) -> None:
    """Do what `work` does, in a home that is open already."""
    async with reporting(at):
        try:
            if await _joined(at, stop, tell):
                await _run(at, slots, until_idle=until_idle, stop=stop, tell=tell)
        finally:
            at.home.membership.release()


async def _joined(at: Session, stop: asyncio.Event, tell: Callable[[WorkerNews], None]) -> bool:
    """Wait until this process may work in the home; return False if it was stopped before that.

    A holder that hangs is ended: what it ran continues, and this process takes it over.
    """
    home, told = at.home, False
    hung = HungHolder(home.membership, patience_s=at.settings.values.monitor.hung)
    # A process that drives one plan sees this, releases the home, and only follows its plan.
    home.membership.attend(ALL)
    while not home.membership.acquire({"pid": os.getpid(), "command": called_as(), "serves": ALL}):
        if not told:
            tell(StandingBy(pid=(home.membership.holder() or {}).get("pid")))
            told = True
        if stop.is_set():
            return False
        if (pid := hung.look(time.monotonic())) is not None:
            log.warning(
                "the process that held the home did nothing any more and was ended", extra={"pid": pid}
            )
            tell(Ended(pid=pid))
        await home.store.changed(1.0)
    if hung.ended:
        await home.store.transact("worker.lost", lambda tx: _note_lost(tx, hung.ended))
    return True


def _note_lost(tx: Tx, pids: Collection[int]) -> None:
    for one in tx.find(Worker, pid=tuple(pids)):
        tx.append(happened("worker_lost", MACHINE, worker=one.id, hostname=one.hostname, pid=one.pid))


async def _run(
    at: Session,
    slots: int | None,
    *,
    until_idle: bool,
    stop: asyncio.Event,
    tell: Callable[[WorkerNews], None],
) -> None:
    home = at.home
    world = make_world(home, at.settings, at.env, slots=slots or at.settings.values.parallel)
    tell(Working(home=home.root, slots=world.me.slots, pid=os.getpid()))

    async def finished() -> bool:
        if stop.is_set():
            return True
        if not until_idle or await world.engine.in_flight():
            return False
        return not await home.store.read(goes_on)

    running = asyncio.create_task(make_worker(world).run(finished))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if stop.is_set():
        running.cancel()
    try:
        await running
    except asyncio.CancelledError:
        if not stop.is_set():
            raise
