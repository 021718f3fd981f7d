"""Working in the foreground: be the home's worker, or follow the one that is, until the plan rests."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loopwright.app import Home, make_worker, make_world
from loopwright.cli.exits import ExitCode
from loopwright.cli.follow import Display
from loopwright.cli.table import exit_code
from loopwright.config.resolve import Settings
from loopwright.core.model import Attempt, Run
from loopwright.core.states import LIVE_ATTEMPT, AttemptState, RunState
from loopwright.engine import commands
from loopwright.engine.views import PlanView, plan_view
from loopwright.engine.world import HomePaths, World
from loopwright.ports import Tx

FOLLOW_S = 1.0
"""How often a live picture is refreshed when nothing happens: for the running seconds, not for the news."""

NET_S = 5.0
"""How long to wait for news at most."""

_RESTING = frozenset({"PAUSED", "STOPPED", "FAILED", "COMPLETED", "IDLE"})


class Foreground:
    """One plan on one terminal."""

    def __init__(self, home: Home, settings: Settings, plan_id: str, *, actor: str, display: Display) -> None:
        self._home = home
        self._settings = settings
        self._plan_id = plan_id
        self._actor = actor
        self._display = display
        self._paths = HomePaths(root=home.root)
        self._signals = 0
        self._hard = asyncio.Event()

    async def run(self) -> ExitCode:
        """Drive or follow the plan until it rests; return what the exit code says."""
        self._catch_signals()
        with self._display:
            showing = asyncio.create_task(self._keep_showing())
            try:
                while not self._at_rest(await self._view()):
                    if self._home.membership.acquire(self._note()):
                        await self._work()
                    else:
                        await self._home.store.changed(FOLLOW_S)
                    if self._hard.is_set():
                        return ExitCode.INTERRUPTED
            finally:
                showing.cancel()
                self._home.membership.release()
            view = await self._view()
            self._display.show(view)
        return exit_code(view)

    async def _work(self) -> None:
        slots = self._settings.values.parallel
        world = make_world(self._home, self._settings, os.environ, slots=slots)
        worker = asyncio.create_task(make_worker(world).run(lambda: self._finished(world)))
        hard = asyncio.create_task(self._hard.wait())
        await asyncio.wait({worker, hard}, return_when=asyncio.FIRST_COMPLETED)
        hard.cancel()
        if not worker.done():
            await end_agents(world, self._plan_id)
            worker.cancel()
        try:
            await worker
        except asyncio.CancelledError:
            if not self._hard.is_set():
                raise

    async def _finished(self, world: World) -> bool:
        if not self._at_rest(await self._view()):
            return False
        # A paused plan lets its agents finish, and someone must be there to take in what they did.
        subjects = {leg.rpartition("/")[0] for leg in await world.engine.in_flight()}
        if not subjects:
            return True
        if self._plan_id in subjects:
            return False
        count = await self._home.store.read(lambda tx: tx.count(Attempt, plan_id=self._plan_id, id=subjects))
        return count == 0

    def _at_rest(self, view: PlanView) -> bool:
        return view.loop_state in _RESTING

    async def _view(self) -> PlanView:
        return await self._home.store.read(lambda tx: plan_view(tx, self._plan_id, self._paths))

    async def _keep_showing(self) -> None:
        while True:
            self._display.show(await self._view())
            # Without a live picture there are no running seconds to show: then only news count.
            await self._home.store.changed(FOLLOW_S if self._display.is_live else NET_S)

    # --- Ctrl-C and a closed terminal --------------------------------------------------------------

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._interrupted, number)

    def _interrupted(self, number: int) -> None:
        self._signals += 1
        if self._signals == 1:
            told = "\nPausing: running agents are asked to stop, their work is kept. Ctrl-C again stops at once.\n"
            if number != signal.SIGHUP:
                sys.stderr.write(told)
            self._pausing = asyncio.get_running_loop().create_task(self._ask_to_pause())
        else:
            self._hard.set()

    async def _ask_to_pause(self) -> None:
        await self._home.store.transact(
            "command.request",
            lambda tx: commands.request(
                tx,
                _ids,
                actor=self._actor,
                verb="pause",
                target=self._plan_id,
                arguments={"now": True, "reason": "paused from the terminal"},
            ),
        )

    def _note(self) -> Mapping[str, Any]:
        return {"pid": os.getpid(), "plan": self._plan_id, "command": " ".join(sys.argv[:3])}


def _ids(kind: str) -> str:
    from loopwright.adapters.host import new_id

    return new_id(kind)


async def end_agents(world: World, plan_id: str) -> None:
    """End every agent and gate of a plan on this host at once: for the second Ctrl-C."""

    def load(tx: Tx) -> list[Run]:
        live = LIVE_ATTEMPT - {AttemptState.QUEUED}
        attempts = [one.id for one in tx.find(Attempt, plan_id=plan_id, state=live)]
        return tx.find(Run, attempt_id=attempts, state=RunState.RUNNING) if attempts else []

    runs = await world.store.read(load)
    ending = [world.keepers.end(world.paths.run(run.id), polite=False) for run in runs]
    await asyncio.gather(*ending)


def log_to(home: Path) -> None:
    """Send what the engine logs to a file in the home: a terminal is for people."""
    handler = logging.FileHandler(home / "loopwright.log", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger("loopwright")
    root.addHandler(handler)
    root.setLevel(logging.INFO)
