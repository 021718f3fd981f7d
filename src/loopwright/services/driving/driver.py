"""Drive one plan from this process, or follow the worker that does, until it rests and its source has the status."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from loopwright.adapters import registry
from loopwright.adapters.agents.environment import gone
from loopwright.adapters.home.membership import ALL
from loopwright.adapters.machine.host import host_id, new_id
from loopwright.app import Home, catch_up_state_files, make_worker, make_world
from loopwright.core.gates.flakes import FOLDERS
from loopwright.core.rows.model import Attempt, Loop, Plan, Project, Run
from loopwright.core.values.errors import LoopwrightError
from loopwright.core.values.ids import short_id
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
from loopwright.services.driving.reporting import reporting
from loopwright.services.homes.caller import unheard
from loopwright.services.homes.context import actor, called_as
from loopwright.services.homes.session import Session

# Have a source's status written back before a plan is made from it, or after one has ended.

_AGAIN_S: Final = 1.0
"""How often to look whether the worker has written the status back."""
_NET_S: Final = 5.0
"""How long to wait for a worker that is about to do so."""
_TELL_S: Final = 40.0
"""How long to wait for a worker's requested write-back: a tracker may take half a minute to answer."""


def world_of(at: Session) -> World:
    """Return the ports for a single step in this process."""
    return make_world(at.home, at.settings, at.env, slots=1)


async def until_told(home: Home, plan_id: str) -> None:
    """Wait briefly until the worker of a plan has written its last status back."""
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
    """Write the status back again if the source marks settled items as in progress; return whether it did.

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


FOLLOW_S: Final = 1.0
"""How often to look whether a plan that another process drives still runs."""
_STOP_S: Final = 10.0
"""How long `stop_now` waits for ended agents to be recorded; without that they are found ended later."""
_ASK_S: Final = 5.0
"""How long a pause waits for the database."""
_RESTING: Final = frozenset(LoopState) - {LoopState.RUNNING}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rested:
    """The state of a plan when it rests, or when this process stops following it."""

    plan_id: str
    view: PlanView | None = None
    """The plan; None if the process left before the plan rested."""
    stopped: bool = False
    """Whether `stop_now` ended its agents."""
    lacks_programs: bool = False
    """Whether it waits for a program that is missing on this machine."""


Drive = Callable[[Session, Plan, str], Awaitable[Rested]]
"""Drives a plan until it rests; the text names the submission that this process made."""


class Driver:
    """One plan that this process drives, or follows while another process drives it."""

    def __init__(
        self,
        at: Session,
        plan: Plan,
        *,
        actor: str,
        submitter: str = "",
        tell: Callable[[str], None] = unheard,
        cannot_pause: Callable[[str], None] = unheard,
    ) -> None:
        """Take a plan; `submitter` names the submission that this process made.

        `tell` gets notes about other plans of the home, `cannot_pause` why a pause could not be recorded.
        """
        self._at = at
        self._home = at.home
        self._submitter = submitter
        self._plan_id = plan.id
        self._project_id = plan.project_id
        self._loop_id = plan.loop_id
        self._actor = actor
        self._tell = tell
        self._cannot_pause = cannot_pause
        self._paths = HomePaths(root=at.home.root)
        self._hard = asyncio.Event()
        self._is_cut_off = False
        """Whether nothing can be recorded, so that the driver does not wait for that."""
        self._pausing: asyncio.Task[None] | None = None
        self._left = False

    async def run(self) -> Rested:
        """Drive or follow the plan until it rests, and send notices of it."""
        async with reporting(self._at, self._loop_id):
            return await self._run()

    async def _run(self) -> Rested:
        self._home.membership.attend(self._project_id)
        try:
            while not await self._at_rest():
                if self._left:
                    return Rested(plan_id=self._plan_id)
                if not self._is_relieved() and self._home.membership.acquire(self._note()):
                    await self._work()
                    if self._is_relieved():
                        # The agents continue, and the worker for all projects adopts them.
                        self._home.membership.release()
                        self._home.membership.attend(self._project_id)
                else:
                    await self._home.store.changed(FOLLOW_S)
                if self._hard.is_set():
                    return Rested(plan_id=self._plan_id, stopped=True)
        finally:
            if self._pausing is not None:
                await self._pausing
            self._home.membership.release()
        await until_told(self._home, self._plan_id)
        if not await self._home.store.read(lambda tx: is_exported(tx, self._plan_id)):
            # The worker left before it wrote the status back.
            await catch_up_state_files(world_of(self._at))
        await tell_stale(self._at, self._plan_id)
        lacking = await self._home.store.read(self._lacks_programs)
        return Rested(plan_id=self._plan_id, view=await self.view(), lacks_programs=lacking)

    async def view(self) -> PlanView:
        """Return the plan as it is now."""
        return await self._home.store.read(lambda tx: plan_view(tx, self._plan_id, self._paths))

    async def changed(self, seconds: float) -> None:
        """Wait until something changes in the home, or for this many seconds."""
        await self._home.store.changed(seconds)

    def pause(self, reason: str) -> None:
        """Pause the plan: its agents are asked to stop, and their work is kept."""
        self._pausing = asyncio.get_running_loop().create_task(self._ask_to_pause(reason))

    def stop_now(self) -> None:
        """End the plan's agents without asking them; what was recorded is kept."""
        self._hard.set()

    def leave(self) -> None:
        """Stop following a plan that another process drives."""
        self._left = True

    def _lacks_programs(self, tx: Tx) -> bool:
        plan: Plan = need(tx.get(Plan, self._plan_id), "the plan")
        return bool(gone(plan.environment, host_id(self._home.root)))

    async def _work(self) -> None:
        for note in await self._home.store.read(lambda tx: _other_plans(tx, self._home, self._plan_id)):
            self._tell(note)
        world = make_world(
            self._home,
            self._at.settings,
            self._at.env,
            slots=self._at.settings.values.parallel,
            project_id=self._project_id,
            submitter=self._submitter,
        )
        worker = make_worker(world)
        working = asyncio.create_task(worker.run(lambda: self._finished(world)))
        hard = asyncio.create_task(self._hard.wait())
        try:
            await asyncio.wait({working, hard}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # Its agents outlive it, and the next driver of the plan takes them over.
            working.cancel()
            await asyncio.wait({working})
            raise
        finally:
            hard.cancel()
        if not working.done():
            await self._stop_at_once(world, worker, working)
        try:
            await working
        except asyncio.CancelledError:
            if not self._hard.is_set():
                raise

    async def _stop_at_once(self, world: World, worker: WorkerLoop, working: asyncio.Task[None]) -> None:
        """End every agent without asking; the worker, which pauses already, records what it was doing."""
        try:
            async with asyncio.timeout(_STOP_S):
                while not working.done() and not self._is_cut_off:
                    # Repeated, because an agent may start at this moment.
                    await _end_agents(world, self._plan_id)
                    await asyncio.wait({working}, timeout=0.1)
                # Without the database the worker would wait for it. Its legs know their agents, and end them.
                while self._is_cut_off and not working.done() and worker.interrupt_all():
                    await asyncio.wait({working}, timeout=0.1)
        except (TimeoutError, LoopwrightError):
            self._is_cut_off = True
        if self._is_cut_off:
            working.cancel()

    def _is_relieved(self) -> bool:
        """Return whether a worker for all projects waits to take over: then this process only follows its plan."""
        return self._home.membership.exclusive and self._home.membership.attended(ALL)

    async def _finished(self, world: World) -> bool:
        if self._is_relieved():
            return True
        if not await self._at_rest():
            return False
        # A paused plan lets its agents finish, and this process must record what they did.
        subjects = {leg.rpartition("/")[0] for leg in await world.engine.in_flight()}
        if not subjects:
            return True
        if self._plan_id in subjects:
            return False
        count = await self._home.store.read(lambda tx: tx.count(Attempt, plan_id=self._plan_id, id=subjects))
        return count == 0

    async def _at_rest(self) -> bool:
        """Return whether nothing runs: called after every commit, so it reads two rows, whatever the plan's size."""

        def load(tx: Tx) -> bool:
            plan = need(tx.get(Plan, self._plan_id), "the plan")
            loop = need(tx.get(Loop, plan.loop_id), "the loop")
            return loop.state in _RESTING and loop.resume_at is None and not is_open(tx, plan.id)

        return await self._home.store.read(load)

    async def _ask_to_pause(self, reason: str) -> None:
        def ask(tx: Tx) -> object:
            arguments = {"now": True, "reason": reason}
            return commands.request(
                tx, new_id, actor=self._actor, verb="pause", target=self._plan_id, arguments=arguments
            )

        try:
            async with asyncio.timeout(_ASK_S):
                await self._home.store.transact("command.request", ask)
        except (LoopwrightError, TimeoutError) as problem:
            self._cannot_pause(str(problem) or f"the database did not answer within {_ASK_S:.0f} s")
            self._is_cut_off = True
            self._hard.set()

    def _note(self) -> Mapping[str, Any]:
        return {
            "pid": os.getpid(),
            "plan": self._plan_id,
            "serves": self._project_id,
            "command": called_as(),
        }


async def drive(at: Session, plan: Plan, submitter: str) -> Rested:
    """Drive or follow a plan until it rests, without reports."""
    return await Driver(at, plan, actor=actor(), submitter=submitter).run()


def followed_worker(at: Session) -> Mapping[str, Any] | None:
    """Return the note of the worker for all projects that executes plans here instead of this process."""
    # The lock is not held by this process: what it holds itself, it serves one project with.
    holder = at.home.membership.holder() or {}
    return holder if holder.get("serves") == ALL else None


def _other_plans(tx: Tx, home: Home, plan_id: str) -> list[str]:
    """Return a note about the other running plans of the home: which of them this process drives."""
    going = {loop.plan_id for loop in tx.find(Loop, state=LoopState.RUNNING)} - {plan_id}
    plans = tx.find(Plan, id=[one for one in going if one], order_by=("created_at",))
    paths = {one.id: one.path for one in tx.find(Project, id={plan.project_id for plan in plans})}
    mine = need(tx.get(Plan, plan_id), "the plan").project_id
    attended = home.membership.attended if home.membership.exclusive else partial(is_served, tx)
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


async def _end_agents(world: World, plan_id: str) -> None:
    """End every agent and gate of a plan on this host at once."""
    runs = await world.store.read(
        lambda tx: tx.find(Run, plan_id=plan_id, host_id=world.me.host_id, state=RunState.RUNNING)
    )
    folders = [world.paths.run(run.id) / folder for run in runs for folder in ("", *FOLDERS)]
    started = [folder for folder in folders if world.keepers.look(folder).state != "absent"]
    await asyncio.gather(*(world.keepers.end(folder, polite=False) for folder in started))
