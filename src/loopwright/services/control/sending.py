"""Find the target of a decision, send a command to the home's worker, and wait for its answer.

Without a worker the command is carried out here.
"""

import asyncio
import os
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from loopwright.adapters.home.membership import LockedMembership
from loopwright.adapters.machine.host import host_id, new_id
from loopwright.app import Home
from loopwright.core.rows.model import Command, CommandState, Loop, Plan, Project, Run, Task
from loopwright.core.values.errors import Held, NotFound
from loopwright.core.values.wording import to_type
from loopwright.engine.money.charges import check_spending
from loopwright.engine.people import commands
from loopwright.engine.people.served_projects import is_served
from loopwright.engine.rows.moves import need
from loopwright.engine.rows.projects import recent_plans
from loopwright.engine.views.worker_views import leased_workers
from loopwright.ports import Tx
from loopwright.services.homes.caller import caller_bounds, expected_version
from loopwright.services.homes.context import actor
from loopwright.services.homes.read_only_home import find_here, nothing_named, project_here, refuse_elsewhere
from loopwright.services.homes.session import Session

# Find the plan or task that a decision is about.


def find_target(tx: Tx, text: str | None, verb: str) -> Plan | Task:
    """Return the plan or task with this name in this repository; without a name, its newest plan."""
    if text is None:
        project = project_here()
        if project is None:
            raise nothing_named(verb)
        plans = recent_plans(tx, project_path=project, limit=1)
        if not plans:
            raise NotFound(
                "there is no plan of this repository yet",
                code="no_plan",
                hint=f"run `loopwright run plan.yaml`, or type `{to_type(verb)}` in the repository of the plan",
            )
        return plans[0]
    fits = partial(commands.may_retry, tx) if verb == "retry" else None
    row = find_here(tx, text, fits)
    if isinstance(row, Run):
        raise NotFound(f"{text} is a run", code="plan_or_task_expected", hint="name a plan or a task")
    refuse_elsewhere(tx, plan_of(tx, row).project_id, text)
    return row


def find_task(tx: Tx, text: str, verb: str) -> tuple[Task, Plan, Project]:
    """Return the task with this name, its plan and its project."""
    row = find_target(tx, text, verb)
    if not isinstance(row, Task):
        raise NotFound(f"{text} is a plan", code="task_expected", hint="name a task")
    plan = plan_of(tx, row)
    return row, plan, need(tx.get(Project, plan.project_id), "the project")


def plan_of(tx: Tx, row: Plan | Task) -> Plan:
    """Return a plan, or the plan of a task, as it is now."""
    plan: Plan = need(tx.get(Plan, row.plan_id if isinstance(row, Task) else row.id), "the plan")
    return plan


_PATIENCE_S: Final = 60.0
_FREE: Final = frozenset(
    {
        "accept",
        "cancel",
        "dismiss_discovered",
        "fail",
        "pause",
        "reviewed",
        "rollback",
        "set_priority",
        "stop",
        "take_lock",
        "take_over",
        "unsplit",
    }
)
"""Commands after which no new agent works: a limited token may send them for any work that it sees."""


async def send(at: Session, verb: str, target: str, arguments: Mapping[str, Any]) -> Command:
    """Queue a command and return it once it was carried out; raise the error that it was refused with."""
    if expected := expected_version():
        seen = {commands.IF_VERSION: expected.version, commands.VERSION_OF: expected.loop_id or target}
        arguments = {**arguments, **seen}

    def ask(tx: Tx) -> Command:
        plan = commands.plan_about(tx, target)
        if (about := plan or tx.get(Loop, target)) is not None:
            refuse_elsewhere(tx, about.project_id, target)
        if verb not in _FREE:
            check_spending(tx, caller_bounds(), [target] if plan is None else [plan.id])
        return commands.request(tx, new_id, actor=actor(), verb=verb, target=target, arguments=arguments)

    command = await at.home.store.transact("command.request", ask)
    try:
        # A command that runs a gate takes as long as the gate.
        async with asyncio.timeout(None if verb in commands.BY_GIT else _PATIENCE_S):
            return await _answered(at, command)
    except TimeoutError as late:
        raise Held(
            f"the worker did not respond to `{verb}` within {_PATIENCE_S:g} s",
            code="worker_not_responding",
            hint="the command is queued, and the worker carries it out when it continues; "
            "`loopwright status` shows it",
        ) from late


async def has_worker(home: Home) -> bool:
    """Return whether a worker runs in this home."""
    if home.membership.exclusive:
        return home.membership.holder() is not None
    return bool(await home.store.read(leased_workers))


async def is_worked_on(home: Home, project_id: str) -> bool:
    """Return whether a live process starts the work of a project."""
    if isinstance(home.membership, LockedMembership):
        return home.membership.serves(project_id)
    return await home.store.read(lambda tx: is_served(tx, project_id))


async def end_stopped_agents(at: Session) -> None:
    """End the agents that were asked to stop, if no worker does it: agents outlive their worker."""
    if await has_worker(at.home):
        return
    # They import the whole engine, which a command that finds a worker does not need.
    from loopwright.app import make_worker, make_world
    from loopwright.engine.attempt.cleanup import end_cancelled_gates
    from loopwright.engine.worker.reconcile import to_be_ended

    home = at.home
    world = make_world(home, at.settings, at.env, slots=at.settings.values.parallel)
    await end_cancelled_gates(world)
    # What runs on other machines ends when one of their workers sees it; waiting for a dead one would never end.
    asked = partial(to_be_ended, host_id=None if home.membership.exclusive else host_id(home.root))
    if not await home.store.read(asked) or not home.membership.acquire(
        {"pid": os.getpid(), "command": "stop"}
    ):
        return
    worker = make_worker(world, only_end=True)

    async def finished() -> bool:
        mine = [worker.lease.worker.id]
        return not await home.store.read(asked) and not await world.engine.in_flight(mine)

    try:
        await worker.run(finished)
    finally:
        home.membership.release()


async def _answered(at: Session, command: Command) -> Command:
    home = at.home
    while True:
        row = await home.store.read(lambda tx: tx.get(Command, command.id))
        if row is not None and row.state is CommandState.REFUSED:
            raise commands.refusal(row)
        if row is not None and row.state is not CommandState.PENDING:
            return row
        if not await has_worker(home) and home.membership.acquire(
            {"pid": os.getpid(), "command": command.verb}
        ):
            try:
                await _apply_here(at)
            finally:
                home.membership.release()
            continue
        await home.store.changed(1.0)


async def _apply_here(at: Session) -> None:
    """Carry out everything that is queued, in order, including commands of a process that was killed."""
    # It imports the whole engine, which a command that finds a worker does not need.
    from loopwright.engine.worker.worker import apply_command

    for command in await at.home.store.read(commands.pending):
        if command.verb in commands.BY_GIT:
            await _decide_here(at, command)
        else:
            await apply_command(at.home.store, new_id, command)


async def _decide_here(at: Session, command: Command) -> None:
    # As in `end_stopped_agents`.
    from loopwright.app import make_world
    from loopwright.engine.attempt.landing_line import LandingLines
    from loopwright.engine.plans.rollback import carry_out

    world = make_world(at.home, at.settings, at.env, slots=at.settings.values.parallel)
    try:
        await carry_out(world, LandingLines(), command)
    finally:
        world.keepers.close()
