"""Setting a workspace up: the project's own command, run once for each commit that the workspace stands on."""

import asyncio
from pathlib import Path

from loopwright.core.errors import CannotRun
from loopwright.core.failures import Failure
from loopwright.core.findings import VerdictStatus
from loopwright.core.model import Role, Run
from loopwright.core.policy import GateCommand
from loopwright.core.retry import Failed
from loopwright.core.states import RunState
from loopwright.engine.agent_runs import Rows
from loopwright.engine.checks import Interrupted, denial_in, exit_facts, gate_request
from loopwright.engine.moves import change_attempt, move_run, need
from loopwright.engine.room_watch import RoomWatch
from loopwright.engine.runs import drive_command
from loopwright.engine.world import World
from loopwright.ports import Tx


async def set_up(
    world: World, rows: Rows, interrupt: asyncio.Event, *, fence: int, again: bool
) -> Failed | None:
    """Run the setup command unless that was done; `again` when the workspace was made since the last time.

    Return why it failed, if it did.
    """
    policy, path = rows.plan.policy, Path(need(rows.attempt.workspace, "a workspace"))
    run = await _run(world, rows, fence=fence, again=again)
    if run.state is RunState.COMPLETE:
        return None
    gate = GateCommand(name="setup", command=policy.setup or "", timeout_s=policy.setup_timeout_s)
    request, walls = await gate_request(world, rows.project, rows.plan, rows.attempt, run, path, (gate,))
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
        raise CannotRun(f"the setup command was not run to its end: {verdict.reason}")
    if ok:
        return None
    if denial:
        return Failed(failure=Failure.ENVIRONMENT, detail=denial, lasting=True)
    shown = verdict.commands[-1].tail if verdict.commands else verdict.reason
    return Failed(failure=Failure.SETUP, detail=shown[-2000:])


async def _run(world: World, rows: Rows, *, fence: int, again: bool) -> Run:
    """Return the run that sets the workspace up: the last one, if it is under way or has done it."""
    me, attempt = world.me, rows.attempt
    label = f"setup_{attempt.base_sha}"
    sandbox = world.sandbox()

    def create(tx: Tx) -> Run:
        change_attempt(tx, attempt.id, fence)
        made = tx.find(Run, attempt_id=attempt.id, role=Role.SETUP, order_by=("-created_at",), limit=1)
        last = made[0] if made else None
        # A kill may come between moving the workspace and setting it up: the run says which commit it was for.
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
