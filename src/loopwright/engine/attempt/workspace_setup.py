"""Set up a workspace: its dependencies, then the project's own command, once for each base commit."""

import asyncio
from dataclasses import replace
from pathlib import Path

from loopwright.core.gates.dependencies import READY
from loopwright.core.gates.gates import setup_command
from loopwright.core.policy.retry import Failed
from loopwright.core.rows.model import Role, Run
from loopwright.core.values.errors import CannotRun
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import VerdictStatus
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.states import RunState
from loopwright.engine.gates.gate_runs import denial_in, exit_facts, gate_request
from loopwright.engine.memory.interrupts import Interrupted
from loopwright.engine.processes.dependencies import install_dependencies
from loopwright.engine.processes.disk import RoomWatch
from loopwright.engine.processes.runs import drive_command
from loopwright.engine.processes.sandboxing import needed_sandbox
from loopwright.engine.rows.legs import Rows
from loopwright.engine.rows.moves import change_attempt, move_run, need
from loopwright.engine.rows.world import World
from loopwright.ports import Repository, Tx


async def set_up(
    world: World,
    repository: Repository,
    rows: Rows,
    interrupt: asyncio.Event,
    *,
    fence: int,
    again: bool,
) -> Failed | None:
    """Install dependencies and run the setup command, unless that was done; return why it failed, if it did.

    `again` is for a workspace that was created since the last time.
    """
    sha, path = need(rows.attempt.base_sha, "a base"), Path(need(rows.attempt.workspace, "a workspace"))
    label, named, ready = f"setup_{sha}", f"dependencies_{sha}", False
    if text := rows.plan.policy.dependencies:
        command = GateCommand(name="dependencies", command=text, timeout_s=rows.plan.policy.setup_timeout)

        async def install() -> Failed | None:
            return await _command(world, rows, command, interrupt, named, fence=fence, again=again)

        if again:
            fresh = await world.store.read(lambda tx: _last(tx, rows)) is None
            laid = await install_dependencies(
                world, repository, rows.project, rows.plan, sha, path, fresh=fresh, install=install
            )
            if isinstance(laid, Failed):
                return laid
            ready = laid
        elif await world.store.read(lambda tx: _is_open(tx, rows, named)):
            # The worker that started it is gone. It is not the setup command, which follows it.
            if (failed := await install()) is not None:
                return failed
            ready = True
    setup = need(setup_command(rows.plan.policy), "a setup command")
    return await _command(world, rows, setup, interrupt, label, fence=fence, again=again, ready=ready)


async def _command(
    world: World,
    rows: Rows,
    command: GateCommand,
    interrupt: asyncio.Event,
    label: str,
    *,
    fence: int,
    again: bool,
    ready: bool = False,
) -> Failed | None:
    """Run one command in the workspace, unless the last run of this label did; return why it failed."""
    path = Path(need(rows.attempt.workspace, "a workspace"))
    run = await _run(world, rows, label, fence=fence, again=again)
    if run.state is RunState.COMPLETE:
        return None
    request, walls = await gate_request(world, rows.project, rows.plan, rows.attempt, run, path, (command,))
    if ready:
        request = replace(request, env={**request.env, READY: "1"})
    excess = RoomWatch(world, path, request.directory)
    ended = await drive_command(world.keepers, world.gate.spec(request), interrupt=interrupt, excess=excess)
    verdict = world.gate.verdict(request, ended.exit)
    ok = verdict.status == "passed" and not ended.excess
    denial = ended.excess or denial_in(walls, verdict)

    def over(tx: Tx) -> None:
        change_attempt(tx, rows.attempt.id, fence)
        state = RunState.COMPLETE if ok else RunState.ERROR
        failure = Failure.ENVIRONMENT if denial else None
        move_run(tx, run, state, verdict=verdict, failure=failure, **exit_facts(ended.exit))

    await world.store.transact("setup.over", over)
    if ended.excess:
        return Failed(failure=Failure.ENVIRONMENT, detail=ended.excess, lasting=True)
    not_run = verdict.status is VerdictStatus.INCONCLUSIVE and not verdict.lasting
    if ended.interrupted or (not_run and ended.exit.ended_by == "asked"):
        raise Interrupted
    if not_run:
        raise CannotRun(f"the {command.name} command was not run to its end: {verdict.reason}")
    if ok:
        return None
    if denial:
        return Failed(failure=Failure.ENVIRONMENT, detail=denial, lasting=True)
    shown = verdict.commands[-1].tail if verdict.commands else verdict.reason
    return Failed(failure=Failure.SETUP, detail=shown[-2000:])


def _last(tx: Tx, rows: Rows) -> Run | None:
    made = tx.find(Run, attempt_id=rows.attempt.id, role=Role.SETUP, order_by=("-created_at",), limit=1)
    return made[0] if made else None


def _is_open(tx: Tx, rows: Rows, label: str) -> bool:
    last = _last(tx, rows)
    return last is not None and last.state is RunState.RUNNING and last.label == label


async def _run(world: World, rows: Rows, label: str, *, fence: int, again: bool) -> Run:
    """Return the run with this label: the last one, if it is running or successful."""
    me, attempt = world.me, rows.attempt
    sandbox = needed_sandbox(world, rows.plan)

    def create(tx: Tx) -> Run:
        change_attempt(tx, attempt.id, fence)
        last = _last(tx, rows)
        # A kill may come between moving the workspace and setting it up: the run names its commit.
        done = last is not None and last.state is RunState.COMPLETE and last.label == label and not again
        if last is not None and (last.state is RunState.RUNNING or done):
            return last
        run = Run(
            id=world.ids("run"),
            plan_id=rows.plan.id,
            task_id=rows.task.id,
            attempt_id=attempt.id,
            role=Role.SETUP,
            state=RunState.QUEUED,
            label=label,
            host_id=me.host_id,
            boot_id=me.boot_id,
            sandbox=sandbox.level.value,
            sandbox_made_with=sandbox.made_with,
            created_at=tx.now(),
        )
        tx.insert(run)
        return move_run(tx, run, RunState.RUNNING)

    return await world.store.transact("setup.start", create)
