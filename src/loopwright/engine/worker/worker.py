"""A worker: joins a home, applies policy if it is the controller, and drives legs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from loopwright.core.policy.decide import ahead
from loopwright.core.policy.retry import Failed
from loopwright.core.rows.model import AGENT_ROLES, Attempt, Command, Finish, Leg, Loop, Plan, Run, Worker
from loopwright.core.values.errors import (
    DamagedDatabase,
    DatabaseGone,
    DatabaseReplaced,
    IllegalTransition,
    LeaseLost,
    LoopwrightError,
    StaleVersion,
    StoreUnavailable,
    UserError,
)
from loopwright.core.values.failures import Failure
from loopwright.core.values.ids import Kind, is_id
from loopwright.core.values.states import LIVE_ATTEMPT, OPEN_FINISH, AttemptState, PlanState, RunState
from loopwright.engine.attempt.attempt import AttemptLeg
from loopwright.engine.attempt.landing_line import LandingLines
from loopwright.engine.memory.interrupts import Interrupts
from loopwright.engine.memory.slots import AgentSlots, Use
from loopwright.engine.people import commands
from loopwright.engine.people.clean import Retention
from loopwright.engine.plans.finish import FinishLeg
from loopwright.engine.plans.rollback import carry_out
from loopwright.engine.plans.row_rebuild import is_restored, reconcile_backup
from loopwright.engine.plans.state_export import Outbox
from loopwright.engine.plans.verify import VerifyLeg
from loopwright.engine.rows import finishes, writeback_debts
from loopwright.engine.rows.failing import fail_attempt
from loopwright.engine.rows.moves import need
from loopwright.engine.rows.world import World
from loopwright.engine.sources.loop_registry import LoopRegistry
from loopwright.engine.sources.source_edits import Edits
from loopwright.engine.sources.source_heartbeats import BEAT, beat
from loopwright.engine.worker.advance import advance
from loopwright.engine.worker.leases import Lease
from loopwright.engine.worker.monitor import Monitor
from loopwright.engine.worker.reconcile import drop_old_quarantine, reconcile, tidy_leftovers
from loopwright.ports import Ids, StateFiles, Store, Tx

log = logging.getLogger(__name__)

TICK_S = 5.0
"""The safety net below every wake-up: nothing polls faster."""

EXPORT_S = 1.0
"""The least time between two exports of state files: events in between are written together."""

_EXPORT_SHARE = 20
"""The pause after an export, as a multiple of its duration: a large plan takes long, because all of it is exported."""

_BACKUP_S = 3600.0
"""How often it is checked whether a backup is due."""

ROUTINE = frozenset(
    {
        "advance",
        "attempt.accepted",
        "attempt.landing",
        "finish.judged",
        "finish.landing",
        "finish.receipt",
        "finish.start",
        "gate.start",
        "gate.judged",
        "monitor",
        "outbox",
        "run.start",
        "setup.start",
        "setup.over",
        "verify.start",
        "verify.judged",
        "worker.renew",
    }
)
"""Transactions in the middle of a leg, or about a worker itself: nothing can start or has to stop after them."""

Finished = Callable[[], Awaitable[bool]]


class WorkerLoop:
    """One worker process. All its state is in the rows, so it may be killed at any moment."""

    def __init__(
        self,
        world: World,
        files: StateFiles,
        *,
        patience_s: float = 120.0,
        only_end: bool = False,
        only_finish: str | None = None,
    ) -> None:
        """Join with these ports.

        `only_end` moves only what the user asked to end, `only_finish` only that finish of a plan.
        """
        self._only_end = only_end or only_finish is not None
        self._only_finish = only_finish
        self._clock = world.clock
        me = world.me
        blank = Worker(
            id="",
            host_id=me.host_id,
            boot_id=me.boot_id,
            pid=me.pid,
            hostname=me.hostname,
            slots=me.slots,
            version=me.version,
            project_id=me.project_id,
            started_at=world.clock.now(),
            lease_until=world.clock.now(),
        )
        self.lease = Lease(
            world.store, world.clock, world.ids, world.membership, me=blank, seconds=me.lease_s
        )
        self._world = replace(world, may_act=self.lease.valid)
        self._retention = Retention(self._world)
        self._interrupts = Interrupts()
        self._lines = LandingLines()
        self._slots = AgentSlots(me.slots, world.slot_limits, world.clock.monotonic, world.served)
        self._legs: set[str] = set()
        self._files = files
        self._outbox = Outbox(self._world, files)
        self._registry = LoopRegistry(self._world, files)
        self._edits = Edits(self._world)
        self._patience_s = patience_s
        self._turn = asyncio.Lock()
        """Held during a pass, and while the worker comes back as a new one: never both at once."""
        self._reconcile_at = 0.0
        self._beat_at = 0.0
        self._export_at = 0.0
        self._backup_at = 0.0
        self._monitor = Monitor(self._world)
        self._monitor_at = world.clock.monotonic() + world.look_s
        self._monitoring: asyncio.Task[None] | None = None
        self._behind = False
        self._tidying: asyncio.Task[None] | None = None
        self._paying: asyncio.Task[None] | None = None
        self._deciding: dict[str, tuple[float, asyncio.Task[None]]] = {}
        """The user's decisions about landed work, by command: they run gates, so they are carried out in parallel."""
        self._down_since: float | None = None

    async def run(self, finished: Finished) -> None:
        """Work until `finished` returns true."""
        world = self._world
        if await is_restored(world):
            told = await reconcile_backup(world, self._files)
            log.warning("a restored backup was compared with the projects", extra={"why": told.in_words()})
        await self.lease.join()
        if not self._only_end:
            world.keepers.get_ready()
        await self._launch()
        renewing = asyncio.create_task(self._keep_lease())
        try:
            while True:
                async with self._turn:
                    if renewing.done():
                        renewing.result()  # a defect there must be reported
                    done, wait_s = await self._pass_or_trouble(finished)
                    if done:
                        break
                world.membership.beat()
                await world.store.changed(wait_s, ignoring=ROUTINE)
        finally:
            for task in filter(None, (renewing, self._tidying, self._monitoring)):
                task.cancel()
                with suppress(asyncio.CancelledError, StoreUnavailable):
                    await task
            for _, deciding in self._deciding.values():
                deciding.cancel()
                # It stays pending: the next worker carries it out.
                with suppress(asyncio.CancelledError):
                    await deciding
            await world.engine.close()
            world.keepers.close()
            if self._paying is not None:
                # Not interrupted: a worker that finds nothing to do exists only for that.
                await self._paying
            # Another controller may export at the same moment: then it is done as well.
            with suppress(StoreUnavailable, StaleVersion):
                await self._outbox.catch_up()
            with suppress(StoreUnavailable):
                if world.membership.exclusive:
                    await self._registry.write(ends=True)
                await self.lease.leave()

    async def _launch(self) -> None:
        """Take legs: alone in a home more than there are slots, because checking and preparing need no agent."""
        me, alone = self._world.me, self._world.membership.exclusive
        # A more urgent leg is prepared beside those that are being prepared.
        legs = 2 * (me.slots + ahead(me.slots)) if alone else me.slots
        if alone:
            self._slots.expect(await self._world.store.read(self._left_running))
        await self._world.engine.launch(self._execute, worker_id=self.lease.worker.id, slots=legs)

    def _left_running(self, tx: Tx) -> dict[str, Use]:
        """Return the attempts whose agents an earlier worker may have left running here."""
        running = tx.find(Run, state=RunState.RUNNING, role=AGENT_ROLES, host_id=self._world.me.host_id)
        plans = {one.id: one.project_id for one in tx.find(Plan, id={run.plan_id for run in running})}
        return {
            run.attempt_id: Use(run.plan_id, plans.get(run.plan_id, ""), run.agent or "")
            for run in running
            if run.attempt_id is not None
        }

    def interrupt_all(self) -> bool:
        """Make each leg of this process end what it runs; return whether there is any."""
        subjects = self._interrupts.subjects()
        for subject in subjects:
            self._interrupts.raise_for(subject)
        return bool(subjects)

    async def _pass_or_trouble(self, finished: Finished) -> tuple[bool, float]:
        """Make a pass and return whether that was the last; wait while the database is temporarily unreachable."""
        try:
            due = await self._pass()
            done = await finished()
            self._down_since = None
        except (StaleVersion, IllegalTransition) as moved:
            # Another controller was quicker, for example while a lease changes hands: try again.
            log.info("pass repeated", extra={"why": str(moved)})
            await self._clock.sleep(0.1)
            return False, 0.0
        except (DamagedDatabase, DatabaseGone, DatabaseReplaced):
            raise  # waiting does not help
        except StoreUnavailable as trouble:
            now = self._clock.monotonic()
            self._down_since = self._down_since if self._down_since is not None else now
            log.warning("the database is out of reach", extra={"why": str(trouble)})
            if now - self._down_since > self._patience_s:
                raise
            await self._clock.sleep(1.0)
            return False, 0.0
        wait_s = TICK_S if due is None else min(TICK_S, max(0.0, due - self._clock.monotonic()))
        if self._behind:
            wait_s = min(wait_s, max(0.0, self._export_at - self._clock.monotonic()))
        return done, wait_s

    async def _pass(self) -> float | None:
        """Do everything that is due; return when to run the next pass at the latest, by the monotonic clock."""
        world = self._world
        due = None
        (waiting, interrupted, ends), holder, told_now = await world.store.read(
            lambda tx: (self._asked(tx), self.lease.holder(tx), writeback_debts.any_asked(tx))
        )
        controls = await self.lease.controls(holder)
        self._watch_over(controls=controls)
        if controls:
            await self._obey(waiting)
            reconciled = bool(waiting) or ends or self._clock.monotonic() >= self._reconcile_at
            restarted = (
                await reconcile(world, only_end=self._only_end, only_finish=self._only_finish)
                if reconciled
                else ()
            )
            if reconciled and not self._only_end:
                await self._follow_edits()
            in_line = [leg for leg in restarted if leg.turn is not None]
            for leg in in_line:
                await world.engine.start(leg)  # before new work, which could have a later place in line
            try:
                due = await self._advance()
            finally:
                # After new work: taking over many legs at once keeps this process busy for a while.
                for leg in (one for one in restarted if one not in in_line):
                    await world.engine.start(leg)
            if reconciled:
                # A leg that has not begun yet, or whose start was lost and is repeated, also adopts its agent.
                flying = {leg_id.rpartition("/")[0] for leg_id in await world.engine.in_flight()}
                begun = {*self._interrupts.subjects(), *(leg.subject for leg in restarted)}
                self._slots.expect_only(begun | flying)
                self._reconcile_at = self._clock.monotonic() + TICK_S
                self._tidy()
            if reconciled or told_now:
                self._pay()
            if self._clock.monotonic() >= self._beat_at:
                await beat(world, self._files)
                await self._registry.write()
                self._beat_at = self._clock.monotonic() + BEAT.total_seconds()
            await self._export()
        else:
            # The current controller updates the state files.
            self._behind = False
        if waiting:
            _, interrupted, _ = await world.store.read(self._asked)
        for subject in interrupted:
            self._interrupts.raise_for(subject)
        return due

    async def _follow_edits(self, plans: Collection[str] | None = None) -> bool:
        """Follow the user's edits of work sources; return whether anything was changed."""
        if not await self._edits.take_in(plans):
            return False
        # Before policy finds that nothing is left to do: the user may have reopened items.
        await self._obey(await self._world.store.read(commands.pending))
        return True

    async def _obey(self, asked: Sequence[Command]) -> None:
        """Carry out the user's commands, or begin those that take a while."""
        for command in asked:
            if command.verb in commands.BY_GIT:
                self._decide(command)
            else:
                await apply_command(self._world.store, self._world.ids, command)

    def _decide(self, command: Command) -> None:
        """Carry out the user's decision in the background; an interrupted one is begun again."""
        now = self._clock.monotonic()
        began, known = self._deciding.get(command.id, (now, None))
        # An interrupted decision would mostly be interrupted again at once.
        if known is not None and (not known.done() or now - began < TICK_S):
            return
        task = asyncio.create_task(self._carry_out(command))
        going = {key: one for key, one in self._deciding.items() if not one[1].done()}
        self._deciding = {**going, command.id: (now, task)}

    async def _carry_out(self, command: Command) -> None:
        """Carry out a decision; log what interrupts it. The decision stays requested."""
        try:
            await carry_out(self._world, self._lines, command)
        except (LoopwrightError, OSError) as trouble:
            log.warning("decision cut short", extra={"command": command.id, "why": str(trouble)})
        except Exception:  # the boundary: a defect here must not stop the worker
            log.exception("decision failed", extra={"command": command.id})

    async def _advance(self) -> float | None:
        """Apply policy until nothing more follows from it; return when to run again, by the monotonic clock."""
        while not self._only_end:
            advanced = await advance(self._world, self._follow_edits)
            for leg in advanced.legs:
                await self._world.engine.start(leg)
            if not advanced.dispatched:
                later_s = advanced.look_again_s
                return None if later_s is None else self._clock.monotonic() + later_s
        return None

    async def _export(self) -> None:
        """Update the state files, unless that was just done: the rows are the truth in the meantime."""
        began = self._clock.monotonic()
        self._behind = began < self._export_at
        if not self._behind:
            await self._outbox.catch_up()
            took = self._clock.monotonic() - began
            self._export_at = began + took + max(EXPORT_S, took * _EXPORT_SHARE)

    def _tidy(self) -> None:
        """Clean up after attempts that ended without their leg, in the background, one after the other."""
        if self._tidying is not None and not self._tidying.done():
            return
        self._tidying = asyncio.create_task(self._tidied(first=self._tidying is None))

    async def _tidied(self, *, first: bool) -> None:
        try:
            await tidy_leftovers(self._world, self._interrupts.knows)
            if first:
                await drop_old_quarantine(self._world)
            await self._retention.look()
            await self._back_up()
        except (LoopwrightError, OSError) as trouble:
            # What is left is found the next time.
            log.warning("tidying was cut short", extra={"why": str(trouble)})

    async def _back_up(self) -> None:
        """Make the backup of a day that has none; a problem with it, such as a full disk, ends no work."""
        if self._clock.monotonic() >= self._backup_at:
            self._backup_at = self._clock.monotonic() + _BACKUP_S
            try:
                await self._world.store.back_up(self._clock.now())
            except (LoopwrightError, OSError) as trouble:
                log.warning("no backup of the database was made", extra={"why": str(trouble)})

    def _watch_over(self, *, controls: bool) -> None:
        """Observe what goes wrong, in the background."""
        now, busy = self._clock.monotonic(), self._monitoring is not None and not self._monitoring.done()
        if self._only_end or busy or now < self._monitor_at:
            return
        self._monitor_at = now + self._world.look_s
        self._monitoring = asyncio.create_task(self._watched_over(controls=controls))

    async def _watched_over(self, *, controls: bool) -> None:
        try:
            await self._monitor.look(controls=controls)
        except (LoopwrightError, OSError) as trouble:
            log.warning("the monitor could not look", extra={"why": str(trouble)})
        except Exception:  # the boundary: the monitor must not stop the worker
            log.exception("the monitor could not look")

    def _pay(self) -> None:
        """Write back owed status in the background: a tracker may take long to refuse again."""
        if not self._only_end and (self._paying is None or self._paying.done()):
            self._paying = asyncio.create_task(self._paid())

    async def _paid(self) -> None:
        try:
            await self._outbox.pay_debts()
        except (LoopwrightError, OSError) as trouble:
            log.warning("status not written back", extra={"why": str(trouble)})
        except Exception:  # the boundary: the next tick tries again, and the worker continues
            log.exception("status not written back")

    def _asked(self, tx: Tx) -> tuple[list[Command], list[str], bool]:
        """Return the user's requests: pending commands, the legs of this process to stop, new finishes."""
        attempts = [one for one in self._interrupts.subjects() if is_id(one, Kind.ATTEMPT)]
        ends = [one for one in self._interrupts.subjects() if is_id(one, Kind.FINISH)]
        plans = [one for one in self._interrupts.subjects() if is_id(one, Kind.PLAN)]
        found = [row.id for row in tx.find(Attempt, id=attempts) if row.interrupt] if attempts else []
        for plan in tx.find(Plan, id=plans) if plans else []:
            loop = need(tx.get(Loop, plan.loop_id), "the loop")
            if plan.status is not PlanState.VERIFYING or commands.is_to_be_ended(tx, plan, loop):
                found.append(plan.id)
        found += [row.id for row in tx.find(Finish, id=ends) if row.state not in OPEN_FINISH] if ends else []
        return commands.pending(tx), found, finishes.new(tx)

    async def _execute(self, leg: Leg) -> None:
        """Drive a leg. Every problem in it is recorded on its task and never ends the worker."""
        # On a shared home a worker that lost its lease starts over while its old legs are still ending.
        if self._world.membership.exclusive and leg.id in self._legs:
            log.info("leg runs here already", extra={"leg": leg.id})
            return
        self._legs.add(leg.id)
        # First of all, so that legs stand in line in the order in which they were started.
        self._slots.line_up(leg)
        runner: AttemptLeg | VerifyLeg | FinishLeg
        if is_id(leg.subject, Kind.PLAN):
            runner = VerifyLeg(self._world, leg, interrupts=self._interrupts)
        elif is_id(leg.subject, Kind.FINISH):
            runner = FinishLeg(self._world, leg, interrupts=self._interrupts)
        else:
            runner = AttemptLeg(
                self._world, leg, interrupts=self._interrupts, lines=self._lines, slots=self._slots
            )
        try:
            await runner.run()
        except StoreUnavailable:
            log.warning("leg dropped: the database is out of reach", extra={"leg": leg.id})
        except LeaseLost:
            log.warning("leg dropped: the lease lapsed", extra={"leg": leg.id})
        except Exception as defect:  # the boundary: one leg's defect must not stop the others
            log.exception("leg failed", extra={"leg": leg.id})
            detail = f"internal error: {type(defect).__name__}: {defect}"
            with suppress(LoopwrightError):
                if isinstance(runner, VerifyLeg | FinishLeg):
                    await runner.break_off(detail)
                else:
                    await self._crashed(leg, detail)
        finally:
            self._legs.discard(leg.id)
            self._slots.leave(leg)
            if not (isinstance(runner, AttemptLeg) and runner.settled):
                # If it was resumed while it was stopping, it may have left work that no leg continues.
                self._reconcile_at = 0.0

    async def _crashed(self, leg: Leg, detail: str) -> None:
        if not self._world.may_act():
            return  # the worker that took over has newer information

        def over(tx: Tx) -> None:
            attempt = tx.get(Attempt, leg.subject)
            if attempt is None or attempt.state not in LIVE_ATTEMPT - {AttemptState.QUEUED}:
                return
            failed = Failed(failure=Failure.CRASH, detail=detail)
            chance = self._world.chance()
            fail_attempt(tx, self._world.ids, attempt, failed, fence=leg.fence, counts=False, chance=chance)

        await self._world.store.transact("attempt.crashed", over)

    async def _keep_lease(self) -> None:
        """Renew in time; after a lapse (lid closed, stopped process) drop the work and come back as a new worker."""
        world = self._world
        while not world.membership.exclusive:
            await self._clock.sleep(world.me.lease_s / 3)
            try:
                await self.lease.renew()
            except LeaseLost:
                log.warning("the lease lapsed; starting over as a new worker")
                async with self._turn:
                    await world.engine.close()
                    await self.lease.join()
                    await self._launch()
                    self._reconcile_at = 0.0
            except StoreUnavailable as trouble:
                log.warning("the lease could not be renewed", extra={"why": str(trouble)})


async def apply_command(store: Store, ids: Ids, command: Command) -> Command:
    """Carry one command out, or record why not, each in its own transaction."""
    try:
        return await store.transact(f"command.{command.verb}", lambda tx: commands.apply(tx, ids, command))
    except (UserError, IllegalTransition) as no:
        why = no
    except StaleVersion:
        return command  # another worker handled it in the meantime
    return await store.transact("command.refused", lambda tx: commands.refuse(tx, command, why))
