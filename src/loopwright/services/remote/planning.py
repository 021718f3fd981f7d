"""Dispatch and verify: a plan rests before each of them until the user asks, unless `autonomy` says otherwise."""

import asyncio
from collections.abc import Callable
from typing import Final

from loopwright.core.rows.model import Loop, Plan
from loopwright.core.values.access import Caller
from loopwright.core.values.states import ENDED_PLAN, LoopState, PlanState
from loopwright.engine.rows.drafts import is_written
from loopwright.services.control import decisions
from loopwright.services.control.decisions import Decision
from loopwright.services.driving.recorded_environments import needed_environment
from loopwright.services.homes.session import Session
from loopwright.services.remote.plans import PlanRecord, get_plan
from loopwright.services.remote.seen import acting, plan_and_project

_LOOK_S: Final = 1.0
_BEGIN_S: Final = 10.0
"""How long a request waits for a worker to begin, which takes it some milliseconds."""

Awaited = Callable[[Plan], bool]


async def dispatch_plan(
    at: Session, caller: Caller, plan_id: str, *, parallel: bool = True, despite: str = ""
) -> PlanRecord:
    """Dispatch a draft, and return it once its runs are created."""
    plan, project = await at.home.store.read(lambda tx: plan_and_project(tx, caller, plan_id))
    needed_environment(project)
    with acting(at, caller, project):
        await decisions.dispatch(at, plan.id, parallel=parallel, despite=despite)
    return await until(
        at,
        caller,
        plan_id,
        lambda one: one.status not in (PlanState.DRAFT, PlanState.DISPATCHING),
        seconds=_BEGIN_S,
    )


async def verify_plan(at: Session, caller: Caller, plan_id: str, *, partial: bool = False) -> PlanRecord:
    """Begin to run the complete gate of a plan; with `partial`, without the tasks that failed."""
    plan, project = await at.home.store.read(lambda tx: plan_and_project(tx, caller, plan_id))
    with acting(at, caller, project):
        await decisions.reverify(at, plan.id, partial=partial)
    return await until(at, caller, plan_id, is_verified_now, seconds=_BEGIN_S)


async def fail_plan(at: Session, caller: Caller, plan_id: str, reason: str) -> Decision:
    """End a plan as failed because the user says so; what landed stays on its branch."""
    plan, project = await at.home.store.read(lambda tx: plan_and_project(tx, caller, plan_id))
    with acting(at, caller, project):
        return await decisions.fail(at, plan.id, reason)


def is_planned(plan: Plan) -> bool:
    """Return whether an agent has written a plan's tasks, or could not."""
    return is_written(plan) or plan.status is not PlanState.DRAFT


def is_verified_now(plan: Plan) -> bool:
    """Return whether the complete gate of a plan runs, or has finished."""
    return plan.status is PlanState.VERIFYING or is_judged(plan)


def is_judged(plan: Plan) -> bool:
    """Return whether the complete gate of a plan has finished."""
    return plan.status in ENDED_PLAN


async def until(at: Session, caller: Caller, plan_id: str, awaited: Awaited, *, seconds: float) -> PlanRecord:
    """Return a plan as soon as it meets the condition, rests, or the time is up."""
    try:
        async with asyncio.timeout(seconds):
            while True:
                record = await get_plan(at, caller, plan_id)
                if awaited(record.plan) or not await _moves(at, record.plan):
                    return record
                await at.home.store.changed(_LOOK_S)
    except TimeoutError:
        return await get_plan(at, caller, plan_id)


async def _moves(at: Session, plan: Plan) -> bool:
    """Return whether a plan changes without the user."""
    if not is_planned(plan):
        return True
    loop = await at.home.store.read(lambda tx: tx.get(Loop, plan.loop_id))
    return loop is not None and loop.state is LoopState.RUNNING
