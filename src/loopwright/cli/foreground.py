"""Working in the foreground: be the home's worker, or follow the one that is, until the plan rests."""

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from rich.markup import escape

from loopwright.adapters import registry
from loopwright.adapters.agents.plan_environment import gone
from loopwright.adapters.home.membership import ALL, LockedMembership
from loopwright.adapters.machine.host import host_id
from loopwright.app import Home, catch_up_state_files, make_worker, make_world
from loopwright.cli.screens.follow import Display
from loopwright.cli.screens.plan_table import exit_code
from loopwright.cli.shell.exits import ExitCode
from loopwright.config.resolve import Settings
from loopwright.core.gates.flakes import FOLDERS
from loopwright.core.rows.model import Attempt, Loop, Plan, Project, Run
from loopwright.core.values.errors import LoopwrightError
from loopwright.core.values.ids import short_id
from loopwright.core.values.shell_hints import to_type
from loopwright.core.values.states import LoopState, RunState
from loopwright.core.values.wording import listed
from loopwright.engine.people import commands
from loopwright.engine.people.served_projects import is_served
from loopwright.engine.plans.state_export import is_exported
from loopwright.engine.rows.finishes import is_open
from loopwright.engine.rows.moves import need
from loopwright.engine.rows.world import HomePaths, World
from loopwright.engine.rows.writeback_debts import Untold, ask, is_asked, note_outcome
from loopwright.engine.sources.later_edits import ended_plan, stale_items
from loopwright.engine.views.views import PlanView, plan_view
from loopwright.engine.worker.worker import WorkerLoop
from loopwright.ports import Tx
from loopwright.services.homes.context import called_as

FOLLOW_S = 1.0
"""How often a live picture is refreshed when nothing happens: for the running seconds, not for the news."""

NET_S = 5.0
"""How long to wait for news at most."""

TELL_S = 40.0
"""How long to wait for a worker to tell a source: a tracker may take half a minute for its answer."""

SHOWN_SHARE = 10
"""How many times as long as a picture took to make nothing is drawn: a large plan must not be busy showing itself."""

STOP_S = 10.0
"""How long a second Ctrl-C waits for ended agents to be written down; without that they are found ended later."""

ASK_S = 5.0
"""How long a Ctrl-C waits for the database to take it."""

_PAUSED = {
    signal.SIGINT: "paused from the terminal",
    signal.SIGTERM: "paused: a signal asked it to end (SIGTERM)",
    signal.SIGHUP: "paused: its terminal was closed",
}
_RESTING = frozenset(LoopState) - {LoopState.RUNNING}


class Foreground:
    """One plan on one terminal."""

    def __init__(
        self,
        home: Home,
        settings: Settings,
        plan: Plan,
        *,
        actor: str,
        display: Display,
        submitter: str = "",
    ) -> None:
        """Show this plan; `submitter` names the submission that this process made."""
        self._home = home
        self._submitter = submitter
        self._settings = settings
        self._plan_id = plan.id
        self._project_id = plan.project_id
        self._actor = actor
        self._display = display
        self._paths = HomePaths(root=home.root)
        self._signals = 0
        self._hard = asyncio.Event()
        self._is_cut_off = False
        """Nothing can be written down, so nobody waits for that."""
        self._pausing: asyncio.Task[None] | None = None
        self.left = False
        """Whether it stopped following a worker that continues the plan."""
        self._terminals = [fd for fd in (1, 2) if os.isatty(fd)]

    async def run(self) -> ExitCode:
        """Drive or follow the plan until it rests; return what the exit code says."""
        self._catch_signals()
        self._home.membership.attend(self._project_id)
        notes = _Notes(self._display)
        logging.getLogger("loopwright").addHandler(notes)
        with self._display:
            showing = asyncio.create_task(self._keep_showing())
            try:
                while not await self._at_rest():
                    if self.left:
                        return ExitCode.UNFINISHED
                    if self._home.membership.acquire(self._note()):
                        await self._work()
                    else:
                        await self._home.store.changed(FOLLOW_S)
                    if self._hard.is_set():
                        return ExitCode.INTERRUPTED
            finally:
                if self._pausing is not None:
                    await self._pausing
                showing.cancel()
                self._home.membership.release()
                logging.getLogger("loopwright").removeHandler(notes)
            await until_told(self._home, self._plan_id)
            if not await self._home.store.read(lambda tx: is_exported(tx, self._plan_id)):
                # The worker left before it wrote the status back.
                await catch_up_state_files(make_world(self._home, self._settings, os.environ, slots=1))
            await tell_stale(self._home, self._settings, self._plan_id)
            view = await self._view()
            self._display.show(view)
        code = exit_code(view)
        if code is ExitCode.UNFINISHED and await self._home.store.read(self._lacks_programs):
            return ExitCode.ENVIRONMENT
        return code

    def _lacks_programs(self, tx: Tx) -> bool:
        plan = need(tx.get(Plan, self._plan_id), "the plan")
        return bool(gone(plan.environment, host_id(self._home.root)))

    async def _work(self) -> None:
        for note in await self._home.store.read(lambda tx: other_plans(tx, self._home, self._plan_id)):
            self._display.say(f"[yellow]note[/]: {escape(note)}")
        slots = self._settings.values.parallel
        world = make_world(
            self._home,
            self._settings,
            os.environ,
            slots=slots,
            project_id=self._project_id,
            submitter=self._submitter,
        )
        worker = make_worker(world)
        working = asyncio.create_task(worker.run(lambda: self._finished(world)))
        hard = asyncio.create_task(self._hard.wait())
        await asyncio.wait({working, hard}, return_when=asyncio.FIRST_COMPLETED)
        hard.cancel()
        if not working.done():
            await self._stop_at_once(world, worker, working)
        try:
            await working
        except asyncio.CancelledError:
            if not self._hard.is_set():
                raise

    async def _stop_at_once(self, world: World, worker: WorkerLoop, working: asyncio.Task[None]) -> None:
        """End every agent without asking; the worker, which pauses already, writes down what it was doing."""
        try:
            async with asyncio.timeout(STOP_S):
                while not working.done() and not self._is_cut_off:
                    # Again and again: one may be starting this very moment.
                    await end_agents(world, self._plan_id)
                    await asyncio.wait({working}, timeout=0.1)
                # Without the database the worker would wait for that. Its legs know their agents, and end them.
                while self._is_cut_off and not working.done() and worker.interrupt_all():
                    await asyncio.wait({working}, timeout=0.1)
        except (TimeoutError, LoopwrightError):
            self._is_cut_off = True
        if self._is_cut_off:
            working.cancel()

    async def _finished(self, world: World) -> bool:
        if not await self._at_rest():
            return False
        # A paused plan lets its agents finish, and someone must be there to take in what they did.
        subjects = {leg.rpartition("/")[0] for leg in await world.engine.in_flight()}
        if not subjects:
            return True
        if self._plan_id in subjects:
            return False
        count = await self._home.store.read(lambda tx: tx.count(Attempt, plan_id=self._plan_id, id=subjects))
        return count == 0

    async def _at_rest(self) -> bool:
        """Say whether nothing goes on: asked after every commit, so it looks at two rows, whatever the plan's size."""

        def load(tx: Tx) -> bool:
            plan = need(tx.get(Plan, self._plan_id), "the plan")
            loop = need(tx.get(Loop, plan.loop_id), "the loop")
            return loop.state in _RESTING and loop.resume_at is None and not is_open(tx, plan.id)

        return await self._home.store.read(load)

    async def _view(self) -> PlanView:
        return await self._home.store.read(lambda tx: plan_view(tx, self._plan_id, self._paths))

    async def _keep_showing(self) -> None:
        while not self._display.is_quiet:
            began = time.monotonic()
            self._display.show(await self._view())
            await asyncio.sleep((time.monotonic() - began) * SHOWN_SHARE)
            # Without a live picture there are no running seconds to show: then only news count.
            await self._home.store.changed(FOLLOW_S if self._display.is_live else NET_S)

    # --- Ctrl-C and a closed terminal --------------------------------------------------------------

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in _PAUSED:
            loop.add_signal_handler(number, self._interrupted, number)

    def _interrupted(self, number: signal.Signals) -> None:
        self._signals += 1
        if self._signals > 2:  # whatever is waited for does not come
            resume = to_type("resume", short_id(self._plan_id))
            sys.stderr.write(
                f"\nLeaving at once. Agents that still run go on alone.\ntake them over:  {resume}\n"
            )
            sys.stderr.flush()
            os._exit(ExitCode.INTERRUPTED)
        if self._signals == 1 and (holder := follows_worker(self._home)):
            self.left = True
            self._say_left(holder)
        elif self.left:
            return
        elif self._signals == 1:
            told = "\nPausing: running agents are asked to stop, their work is kept. Ctrl-C again stops at once.\n"
            if number == signal.SIGHUP:
                self._leave_terminal()
            else:
                sys.stderr.write(told)
            self._pausing = asyncio.get_running_loop().create_task(self._ask_to_pause(_PAUSED[number]))
        else:
            self._hard.set()

    def _say_left(self, holder: Mapping[str, Any]) -> None:
        """Say that only the following ends; a closed terminal hears nothing of it."""
        name = short_id(self._plan_id)
        with suppress(OSError):
            sys.stderr.write(
                f"\nStopped following: process {holder.get('pid')} continues the plan.\n"
                f"follow it again:  {to_type('watch', name)}\npause it:  {to_type('pause', name)}\n"
            )

    def _leave_terminal(self) -> None:
        """The terminal was closed: write to nowhere, so that a word too many does not cut the pausing short."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for fd in self._terminals:
            os.dup2(nowhere, fd)
        os.close(nowhere)

    async def _ask_to_pause(self, reason: str) -> None:
        def ask(tx: Tx) -> object:
            arguments = {"now": True, "reason": reason}
            return commands.request(
                tx, _ids, actor=self._actor, verb="pause", target=self._plan_id, arguments=arguments
            )

        try:
            async with asyncio.timeout(ASK_S):
                await self._home.store.transact("command.request", ask)
        except (LoopwrightError, TimeoutError) as problem:
            why = str(problem) or f"the database did not answer within {ASK_S:.0f} s"
            sys.stderr.write(
                f"The pause cannot be written down: {why}\n"
                "The agents are ended now. `loopwright doctor` says what is wrong with the home.\n"
            )
            self._is_cut_off = True
            self._hard.set()

    def _note(self) -> Mapping[str, Any]:
        return {
            "pid": os.getpid(),
            "plan": self._plan_id,
            "serves": self._project_id,
            "command": called_as(),
        }


async def until_told(home: Home, plan_id: str) -> None:
    """Wait a moment until whoever worked on a plan has told its source how it ended: else nobody knows of that."""
    with suppress(TimeoutError):
        async with asyncio.timeout(NET_S):
            while not await home.store.read(lambda tx: is_exported(tx, plan_id)):
                await home.store.changed(FOLLOW_S)


async def tell_now(home: Home, world: World, plan_id: str) -> None:
    """Have a source told what it is owed: here, or by whoever works in the home, who may be resting from that."""
    is_done = await catch_up_state_files(world)
    await until_told(home, plan_id)
    if is_done or not await home.store.transact("source.asked", lambda tx: ask(tx, plan_id)):
        return
    until = time.monotonic() + TELL_S
    while await home.store.read(lambda tx: is_asked(tx, plan_id)) and time.monotonic() < until:
        await home.store.changed(FOLLOW_S)
        if await catch_up_state_files(world):
            return  # who worked there has left


async def tell_stale(home: Home, settings: Settings, plan_id: str) -> bool:
    """Tell a source again that says of settled items that they are in progress; return whether that was due.

    An editor saved an older copy of it over the end.
    """
    ended = await home.store.read(lambda tx: ended_plan(tx, plan_id))
    if ended is None or ended.kind not in registry.known_sources():
        return False
    items = await asyncio.to_thread(stale_items, registry.source(ended.kind), ended)
    if items:
        left = Untold(reason="it was saved with an older status", items=items)
        await home.store.transact("source.debt", lambda tx: note_outcome(tx, plan_id, left))
        await tell_now(home, make_world(home, settings, os.environ, slots=1), plan_id)
    return bool(items)


def other_plans(tx: Tx, home: Home, plan_id: str) -> list[str]:
    """Return what to say about the other running plans of the home: what this process does of them, and what not."""
    going = {loop.plan_id for loop in tx.find(Loop, state=LoopState.RUNNING)} - {plan_id}
    plans = tx.find(Plan, id=[one for one in going if one], order_by=("created_at",))
    paths = {one.id: one.path for one in tx.find(Project, id={plan.project_id for plan in plans})}
    mine = need(tx.get(Plan, plan_id), "the plan").project_id
    alone = home.membership.exclusive
    attended = home.membership.attended if alone else partial(is_served, tx)
    served = {one for one in paths if one == mine or attended(one)}
    notes = []
    if names := [_named(plan, paths) for plan in plans if plan.project_id in served]:
        notes.append(f"also running here: {listed(names)}; `loopwright pause PLAN` pauses one")
    if names := [_named(plan, paths) for plan in plans if plan.project_id not in served]:
        notes.append(
            f"not continued here: {listed(names)}; `loopwright resume PLAN` continues one, "
            "`loopwright worker` all of them"
        )
    return notes


def _named(plan: Plan, paths: Mapping[str, str]) -> str:
    return f"{plan.title} ({short_id(plan.id)}) in {paths[plan.project_id]}"


def follows_worker(home: Home) -> Mapping[str, Any] | None:
    """Return the note of the worker for all projects that executes plans here, so that nothing depends on us."""
    # The lock is not held by this process: what it holds itself, it serves one project with.
    holder = home.membership.holder() or {}
    return holder if holder.get("serves") == ALL else None


async def is_worked_on(home: Home, project_id: str) -> bool:
    """Return whether a live process starts the work of a project."""
    if isinstance(home.membership, LockedMembership):
        return home.membership.serves(project_id)
    return await home.store.read(lambda tx: is_served(tx, project_id))


def _ids(kind: str) -> str:
    from loopwright.adapters.machine.host import new_id

    return new_id(kind)


async def end_agents(world: World, plan_id: str) -> None:
    """End every agent and gate of a plan on this host at once: for the second Ctrl-C."""
    runs = await world.store.read(
        lambda tx: tx.find(Run, plan_id=plan_id, host_id=world.me.host_id, state=RunState.RUNNING)
    )
    folders = [world.paths.run(run.id) / folder for run in runs for folder in ("", *FOLDERS)]
    started = [folder for folder in folders if world.keepers.look(folder).state != "absent"]
    await asyncio.gather(*(world.keepers.end(folder, polite=False) for folder in started))


class _Notes(logging.Handler):
    """Tells the person at the terminal, once, what goes wrong behind the picture; the log has the rest."""

    def __init__(self, display: Display) -> None:
        super().__init__(logging.WARNING)
        self._display = display
        self._told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self._told:
            self._told.add(text)
            why = getattr(record, "why", "")
            self._display.say(f"[yellow]note[/]: {escape(text)}" + (f": {escape(str(why))}" if why else ""))
