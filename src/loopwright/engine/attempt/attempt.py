"""A leg of an attempt: read the stage from the rows and continue from there; a second call is harmless.

Each stage does its effect first, in a way that finds its own work when repeated, and then moves the row under
the leg's fence; so a kill between the two repeats the effect harmlessly.
"""

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

from loopwright.core.gates.gates import setup_command
from loopwright.core.policy.decide import turn_of
from loopwright.core.policy.retry import Failed, backoff
from loopwright.core.rows.model import Attempt, Leg, Loop, Plan, Project, Role, Run, Task
from loopwright.core.values.containment import HomeView
from loopwright.core.values.errors import (
    BranchRewritten,
    CannotRun,
    Denied,
    FenceLost,
    GitFailed,
    IllegalTransition,
    NoEnvironment,
    RepositoryGone,
    StaleVersion,
    StoreUnavailable,
    TookTooMuch,
    Unrecordable,
    UserError,
    disk_is_full,
)
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import ENDED_RUN, LIVE_ATTEMPT, AttemptState, LoopState, RunState
from loopwright.engine.attempt import qa, rounds
from loopwright.engine.attempt.after_run import EndedRun, fail, settle_run
from loopwright.engine.attempt.agent_ends import asked_of, refusal_of
from loopwright.engine.attempt.agent_runs import PAUSED, ReviewerUnavailable, launch, start_run
from loopwright.engine.attempt.checkout_watch import look_again, watch
from loopwright.engine.attempt.cleanup import tidy_attempt
from loopwright.engine.attempt.land import check_and_land
from loopwright.engine.attempt.landing_line import Landing, LandingLines
from loopwright.engine.attempt.reviewing import give_up
from loopwright.engine.attempt.workspace_setup import set_up
from loopwright.engine.gates.gate_runs import break_off, end_all
from loopwright.engine.memory.interrupts import Interrupted, Interrupts
from loopwright.engine.memory.slots import AgentSlots, Slot, Use
from loopwright.engine.money.spending import SpendingWatch
from loopwright.engine.people import discoveries
from loopwright.engine.people.served_projects import may_move
from loopwright.engine.processes.disk import until_room
from loopwright.engine.processes.process_environment import files_to_copy, free_port_base
from loopwright.engine.processes.sandboxing import with_denial
from loopwright.engine.rows.legs import DRIVEN, Rows
from loopwright.engine.rows.moves import MACHINE, cancel_attempt, change_attempt, move_loop, need, next_run
from loopwright.engine.rows.world import World
from loopwright.ports import Repository, Tx

log = logging.getLogger(__name__)

_FRESH_S = 10.0
"""A workspace that waited longer for its agent than this is updated with what landed since."""

_REPEATS = 2
"""How often a leg repeats a stage after a problem of the machine before its attempt fails."""


class AttemptLeg:
    """Drives one attempt until it ends, parks, or is taken over."""

    def __init__(
        self, world: World, leg: Leg, *, interrupts: Interrupts, lines: LandingLines, slots: AgentSlots
    ) -> None:
        self._world = world
        self._leg = leg
        self._interrupts = interrupts
        self._lines = lines
        self._slots = slots
        self._slot: Slot | None = None
        self._ready_at: float | None = None
        """When the workspace was made, by the monotonic clock; None if an earlier leg made it."""
        self._troubles = 0
        self._disk_was_full = False
        self._run_id = ""
        """The run of an agent that it continues."""
        self.settled = False
        """Whether it ended so that no other leg has to continue."""
        self._reviews = False
        """Whether the current agent only reviews finished work."""
        self._worked = False
        """Whether its agent has ended, so that there may be finished work."""

    async def run(self) -> None:
        """Continue from the stage in the rows."""
        interrupt = self._interrupts.event(self._leg.subject)
        try:
            await self._stages(interrupt)
        except (FenceLost, StaleVersion) as lost:
            log.info("leg dropped", extra={"leg": self._leg.id, "why": str(lost)})
        except IllegalTransition as moved:
            # The same leg runs elsewhere too and was quicker: its result stands.
            if moved.subject not in (self._leg.subject, self._run_id):
                raise
            log.warning("leg dropped", extra={"leg": self._leg.id, "why": str(moved)})
        except StoreUnavailable:
            # A start may just have been recorded, so no other agent may take the slot in the meantime.
            # On a shared home another worker with its own slots may continue the leg.
            if self._slot is not None and self._world.membership.exclusive:
                self._slot.keep_for(self._leg.subject)
            raise
        finally:
            self._release_slot()
            self._interrupts.forget(self._leg.subject)

    async def _stages(self, interrupt: asyncio.Event) -> None:
        try:
            while True:
                rows = await self._rows()
                if rows is None or not await self._stage(rows, interrupt):
                    return
        except Interrupted:
            await self._stopped_between_stages()

    async def _rows(self) -> Rows | None:
        def load(tx: Tx) -> Rows | None:
            attempt = tx.get(Attempt, self._leg.subject)
            if attempt is None or attempt.fence != self._leg.fence:
                return None
            if attempt.host_id not in (None, self._world.me.host_id):
                return None  # the workspace is on another machine
            if attempt.state in DRIVEN and not may_move(tx, self._world, attempt):
                return None  # its agent has ended; the next stage is for a worker of its own project
            plan = need(tx.get(Plan, attempt.plan_id), "the plan")
            return Rows(
                project=need(tx.get(Project, plan.project_id), "the project"),
                loop=need(tx.get(Loop, plan.loop_id), "the loop"),
                plan=plan,
                task=need(tx.get(Task, attempt.task_id), "the task"),
                attempt=attempt,
            )

        return await self._world.store.read(load)

    async def _stage(self, rows: Rows, interrupt: asyncio.Event) -> bool:
        """Do one stage; return whether there is another."""
        attempt = rows.attempt
        if attempt.interrupt and attempt.state in LIVE_ATTEMPT:
            interrupt.set()
        try:
            match attempt.state:
                case AttemptState.PREPARING if attempt.base_sha is None:
                    await self._accept(rows)
                case AttemptState.PREPARING:
                    return await self._prepare(rows, interrupt)
                case AttemptState.WORKING:
                    return await self._work(rows, interrupt)
                case AttemptState.CHECKING | AttemptState.LANDING:
                    # Checked work lands at once: stopping it now would leave it half done.
                    if interrupt.is_set() and attempt.state is AttemptState.CHECKING:
                        raise Interrupted
                    if attempt.qa is not None:
                        await qa.settle(self._landing(rows), interrupt)
                    else:
                        await check_and_land(self._landing(rows), self._lines, interrupt)
                case AttemptState.WAITING:
                    self.settled = True
                    return False
                case _:
                    await tidy_attempt(self._world, rows.project, rows.plan, rows.attempt)
                    self.settled = True
                    return False
        except NoEnvironment as missing:
            await self._pause(rows, f"{rows.task.key} waits: {missing}")
            return False
        except (Denied, BranchRewritten, RepositoryGone) as denied:
            await self._hold(rows, str(denied))
            return False
        except TookTooMuch as taken:
            # Nothing was learned about the work, and another try would use as much space.
            await self._fail(rows, Failed(failure=Failure.ENVIRONMENT, detail=str(taken), lasting=True))
        except (CannotRun, GitFailed, OSError) as trouble:
            if await self._may_repeat(trouble, interrupt):
                return True
            judged = attempt.state in (AttemptState.CHECKING, AttemptState.LANDING)
            if judged or self._reviews or await self._nothing_can_be_kept(rows):
                await self._hold(rows, str(trouble))
                return False
            if self._worked and isinstance(trouble, Unrecordable):
                detail = f"{trouble} What it left is in {await self._archived(rows)}."
                await self._fail(rows, Failed(failure=Failure.UNRECORDABLE, detail=detail))
                return True
            await self._fail(rows, Failed(failure=Failure.ENVIRONMENT, detail=str(trouble)))
        except UserError as wrong:
            await self._fail(rows, Failed(failure=Failure.CANNOT_START, detail=str(wrong)))
        return True

    async def _hold(self, rows: Rows, trouble: str) -> None:
        """Pause the loop because a problem of the machine keeps finished work from being checked or landed.

        Another attempt would only pay for the same work again and meet the same problem.
        """
        unsaved = rows.attempt.state is AttemptState.WORKING and not self._reviews
        told = (
            "what its agent left cannot be saved" if unsaved else "it is done but cannot be checked or landed"
        )
        await self._pause(rows, f"{rows.task.key}: {told}: {trouble}")

    async def _pause(self, rows: Rows, reason: str) -> None:
        """Pause the loop, and keep the attempt unchanged until you resume it."""

        def hold(tx: Tx) -> None:
            change_attempt(tx, rows.attempt.id, self._leg.fence, wait_reason=reason[:500])
            loop = need(tx.get(Loop, rows.plan.loop_id), "the loop")
            if loop.state is LoopState.RUNNING:
                move_loop(tx, loop, LoopState.PAUSED, "loop_paused", MACHINE, reason)

        await self._world.store.transact("attempt.held", hold)

    async def _archived(self, rows: Rows) -> Path:
        """Copy the files of an attempt that git cannot record; return where they are."""
        file, workspace = (
            self._world.paths.archive(rows.attempt.id),
            need(rows.attempt.workspace, "a workspace"),
        )
        try:
            await self._repository(rows).archive(Path(workspace), file)
        except (GitFailed, OSError) as worse:
            # The cleanup meets the same problem, and keeps the workspace.
            log.warning("no archive", extra={"leg": self._leg.id, "why": str(worse)})
            return Path(workspace)
        return file

    async def _nothing_can_be_kept(self, rows: Rows) -> bool:
        """Return whether finished work waits to be saved and this machine can save no snapshot at all.

        If other snapshots succeed, only this workspace is broken, so the loop does not pause.
        """
        if not self._worked:
            return False
        if self._world.room.lacking():
            return True
        try:
            await self._repository(rows).try_keeping(near=need(rows.attempt.base_sha, "a base"))
        except (CannotRun, GitFailed, OSError) as trouble:
            log.warning("nothing can be saved", extra={"leg": self._leg.id, "why": str(trouble)})
            return True
        return False

    async def _may_repeat(self, trouble: Exception, interrupt: asyncio.Event) -> bool:
        """Return whether to repeat the stage after a short pause, because the work is not at fault.

        The leg waits for space on a full disk as long as it is not stopped. Other problems get a few tries: a
        Ctrl-C, for example, also reaches a git process that has just started.
        """
        self._troubles += 1
        full = disk_is_full(trouble)
        if (interrupt.is_set() or not full) and self._troubles > _REPEATS:
            return False
        if full and not self._disk_was_full:
            self._disk_was_full = True
            why = f"free some space; the work waits for it and nothing is lost ({trouble})"
            log.warning("the disk is full", extra={"leg": self._leg.id, "why": why})
        log.info("stage repeated", extra={"leg": self._leg.id, "why": str(trouble)})
        pause = backoff(self._troubles, first_s=0.1, limit_s=5.0, chance=self._world.chance())
        await self._world.clock.sleep(pause.total_seconds())
        return True

    # --- PREPARING -> WORKING ----------------------------------------------------------------------

    async def _accept(self, rows: Rows) -> None:
        """Choose the attempt's base commit and workspace; a second call before its agent starts may move the base."""
        if await rounds.is_over(self._world, rows, fence=self._leg.fence):
            return
        base = await rounds.start_of(self._world, self._repository(rows), rows)
        me = self._world.me

        def accept(tx: Tx) -> None:
            current = need(tx.get(Attempt, rows.attempt.id), "the attempt")
            if current.base_sha != rows.attempt.base_sha or current.state is not AttemptState.PREPARING:
                raise FenceLost(f"{current.id} was accepted by a second run of the same leg")
            if current.base_sha is not None:
                change_attempt(tx, rows.attempt.id, self._leg.fence, base_sha=base)
                return
            change_attempt(
                tx,
                rows.attempt.id,
                self._leg.fence,
                base_sha=base,
                workspace=str(self._world.paths.workspace(rows.attempt.id)),
                host_id=me.host_id,
                port_base=free_port_base(tx, me.host_id),
            )
            if rows.task.first_base_sha is None:
                tx.update(Task, rows.task.id, first_base_sha=base)

        await self._world.store.transact("attempt.accepted", accept)

    async def _prepare(self, rows: Rows, interrupt: asyncio.Event) -> bool:
        """Prepare the workspace while other agents work, then wait for a free slot and start the agent."""
        attempt = rows.attempt
        path, base = Path(need(attempt.workspace, "a workspace")), need(attempt.base_sha, "a base")
        await until_room(self._world, rows.plan, interrupt)
        began = self._world.clock.monotonic()
        made = await self._repository(rows).make_workspace(
            path, base, copy_files=files_to_copy(rows.project, rows.plan), marker=attempt.id
        )
        self._ready_at = began if made else self._ready_at
        if setup_command(rows.plan.policy):
            repository = self._repository(rows)
            failed = await set_up(self._world, repository, rows, interrupt, fence=self._leg.fence, again=made)
            if failed is not None:
                await self._fail(rows, failed)
                return True
        if not await self._take_slot(rows, interrupt):
            raise Interrupted
        if await self._is_behind(rows):
            # It keeps its slot: it is its turn.
            await self._accept(rows)
            return True
        return await self._work(rows, interrupt)

    async def _is_behind(self, rows: Rows) -> bool:
        """Return whether the workspace is so old that other tasks may have landed since."""
        now = self._world.clock.monotonic()
        if self._ready_at is not None and now - self._ready_at < _FRESH_S:
            return False
        return await rounds.start_of(self._world, self._repository(rows), rows) != rows.attempt.base_sha

    async def _take_slot(self, rows: Rows, interrupt: asyncio.Event, agent: str | None = None) -> bool:
        """Wait for a slot, unless an earlier try at this stage has one; False if the leg should stop."""
        if self._slot is not None:
            return not interrupt.is_set()
        turn = replace(turn_of(rows.loop, rows.plan, rows.task), agent=agent or rows.attempt.agent)
        self._slot = await self._slots.take(self._leg, turn, unless=interrupt)
        return self._slot is not None

    def _release_slot(self) -> None:
        if self._slot is not None:
            self._slot.release()
            self._slot = None

    # --- WORKING -> CHECKING, WAITING or an end ----------------------------------------------------

    async def _work(self, rows: Rows, interrupt: asyncio.Event) -> bool:
        world, attempt = self._world, rows.attempt
        run = need(await world.store.read(lambda tx: tx.get(Run, need(attempt.run_id, "a run"))), "the run")
        if run.state in ENDED_RUN:
            run = await self._next_run(rows)
        self._run_id = run.id
        self._worked = False
        self._reviews = run.role is Role.REVIEWER
        if run.state is RunState.QUEUED and self._slot is None:
            await until_room(world, rows.plan, interrupt)
        if run.state is not RunState.QUEUED:
            self._slot = self._slot or self._slots.take_now(
                attempt.id, Use(rows.plan.id, rows.plan.project_id, run.agent or attempt.agent)
            )
        elif interrupt.is_set() or not (self._slot or await self._take_slot(rows, interrupt, run.agent)):
            raise Interrupted
        try:
            started = await start_run(world, rows, run, fence=self._leg.fence)
        except ReviewerUnavailable as unavailable:
            await give_up(world, rows, run, str(unavailable), fence=self._leg.fence)
            return True
        if started is None:
            return False
        run = started.run
        repository = self._repository(rows)
        before, spec = await watch(world, repository, run, started.spec)
        spending = SpendingWatch(world, run, rows.plan.policy.prices)
        try:
            ended = await launch(world, rows, started, spec, interrupt=interrupt, spending=spending)
            self._worked = True
            ended = await with_denial(world, started.walls, ended)
            if refusal_of(ended) is None:
                self._release_slot()  # else the account closes first: the next agent would be refused as well
            await world.keepers.sweep(run.id)
            if spec.home is not None and ended.result is not None and ended.result.session_ref:
                self._carry_transcript(spec.home, ended.result.session_ref, spec.cwd)
            # A leg that was paused has already done this.
            again = self._leg.n > 1 or bool(attempt.wait_reason)
            strayed = await look_again(world, repository, before, rows, run, again=again)
            asked = () if self._reviews else asked_of(world, started.spec, ended.result)
            if not self._reviews:
                ended = discoveries.with_discovered(world, started.spec, ended)
            resumed = started.request.session_ref is not None
            end = EndedRun(run=run, ended=ended, strayed=strayed, asked=asked, resumed=resumed)
            goes_on = await settle_run(world, rows, end, fence=self._leg.fence)
            self._release_slot()
            return goes_on
        finally:
            spending.forget()

    def _carry_transcript(self, home: HomeView, session: str, cwd: Path) -> None:
        try:
            self._world.carry_transcript(home, session, cwd)
        except OSError as trouble:
            # The user's folder is not writable: the agent's work matters more than a copy of its conversation.
            log.warning("no transcript", extra={"leg": self._leg.id, "why": str(trouble)})

    async def _next_run(self, rows: Rows) -> Run:
        """Return the run of a leg that continues after a wait: it talks to the agent again, in the same workspace."""

        def create(tx: Tx) -> Run:
            current = need(tx.get(Attempt, rows.attempt.id), "the attempt")
            if current.state is not rows.attempt.state or current.run_id != rows.attempt.run_id:
                raise FenceLost(f"{current.id} was carried on by a second run of the same leg")
            before = tx.get(Run, current.run_id or "")
            run = next_run(tx, self._world.ids, rows.attempt, rows.plan, before)
            change_attempt(tx, rows.attempt.id, self._leg.fence, run_id=run.id)
            return run

        return await self._world.store.transact("run.next", create)

    async def _stopped_between_stages(self) -> None:
        """Return the attempt to its queue, or end it, because the user stopped it while no agent ran."""
        rows = await self._rows()
        if rows is None:
            return

        def stop(tx: Tx) -> list[Run]:
            current = need(tx.get(Attempt, rows.attempt.id), "the attempt")
            if current.interrupt == "cancel":
                cancel_attempt(tx, current, fence=self._leg.fence)
            else:
                change_attempt(tx, current.id, self._leg.fence, interrupt="", wait_reason=PAUSED)
            return break_off(tx, current)

        await end_all(self._world, await self._world.store.transact("attempt.stopped", stop))
        after = await self._rows()
        if after is not None and after.attempt.state is AttemptState.CANCELLED:
            await tidy_attempt(self._world, after.project, after.plan, after.attempt)

    async def _fail(self, rows: Rows, failed: Failed) -> None:
        """End an attempt before its agent could start: the agent is not at fault."""
        await self._world.store.transact(
            "attempt.failed",
            lambda tx: fail(tx, self._world, rows.attempt, failed, fence=self._leg.fence, counts=False),
        )

    def _repository(self, rows: Rows) -> Repository:
        return self._world.repository(rows.project)

    def _landing(self, rows: Rows) -> Landing:
        return Landing(
            world=self._world,
            repository=self._repository(rows),
            project=rows.project,
            plan=rows.plan,
            task=rows.task,
            attempt=rows.attempt,
            fence=self._leg.fence,
        )
