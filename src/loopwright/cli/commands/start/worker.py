"""`worker`: the command that works on whatever is due in a home."""

import asyncio
import json as jsonlib
import os
import sys
from typing import Any

from rich.markup import escape

from loopwright.adapters.home.membership import ALL
from loopwright.app import make_worker, make_world, open_home
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console
from loopwright.core.values.wording import counted
from loopwright.engine.views.views import goes_on
from loopwright.services.homes.context import called_as, look_settings
from loopwright.services.homes.log import log_to


def worker(*, slots: int | None = None, until_idle: bool = False, json: bool = False) -> int:
    """Join a home as one more worker and stay until it is told to stop.

    Parameters
    ----------
    slots
        How many tasks this worker takes at once (default: the setting `parallel`).
    until_idle
        Leave as soon as nothing is left to do.
    json
        Print one JSON document per line: when it stands by, when it begins to work, and when it leaves.
    """
    return asyncio.run(_worker(slots, until_idle=until_idle, tell=_Told(as_json=json)))


class _Told:
    """Says what a worker does, to people or to programs."""

    def __init__(self, *, as_json: bool) -> None:
        self._json = as_json

    def __call__(self, type: str, text: str, **facts: Any) -> None:
        """Tell one thing; people are told nothing where `text` is empty."""
        if self._json:
            sys.stdout.write(jsonlib.dumps({"type": type, **facts}) + "\n")
            sys.stdout.flush()
        elif text:
            console().print(escape(text))


async def _worker(slots: int | None, *, until_idle: bool, tell: _Told) -> int:
    import signal

    settings = look_settings()
    home = open_home(settings, os.environ)
    log_to(home.root)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    told = False
    try:
        # While it stands by, the process that holds the home does all of the work for it.
        home.membership.attend(ALL)
        while not home.membership.acquire({"pid": os.getpid(), "command": called_as(), "serves": ALL}):
            if not told:
                holder = home.membership.holder() or {}
                text = (
                    f"standing by: process {holder.get('pid')} works here; this one takes over when it ends"
                )
                tell("standing_by", text, pid=holder.get("pid"))
                told = True
            if stop.is_set():
                tell("end", "", exit_code=int(ExitCode.VERIFIED))
                return ExitCode.VERIFIED
            await home.store.changed(1.0)
        world = make_world(home, settings, os.environ, slots=slots or settings.values.parallel)
        slots = world.me.slots
        text = f"working in {home.root} with {counted(slots, 'slot')}; Ctrl-C leaves, agents go on"
        tell("working", text, home=str(home.root), slots=slots, pid=os.getpid())

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
        running.cancel() if stop.is_set() else None
        try:
            await running
        except asyncio.CancelledError:
            if not stop.is_set():
                raise
        tell("end", "", exit_code=int(ExitCode.VERIFIED))
        return ExitCode.VERIFIED
    finally:
        home.membership.release()
        await home.store.close()
