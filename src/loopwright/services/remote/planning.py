"""Plan, dispatch, verify: a plan is made of a packet or a goal, waits for its dispatch, and for its verification."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from loopwright.core.rows.model import Loop, Plan
from loopwright.core.values.access import Caller
from loopwright.core.values.errors import Refused, UserError
from loopwright.core.values.states import ENDED_PLAN, LoopState, PlanState
from loopwright.services.control import decisions
from loopwright.services.driving.recorded_environments import needed_environment
from loopwright.services.homes.session import Session
from loopwright.services.plans.planning import GoalRequest, plan_goal
from loopwright.services.remote.packets import get_packet, packet_file
from loopwright.services.remote.plans import PlanRecord, get_plan
from loopwright.services.remote.seen import acting, plan_and_project, seen_project
from loopwright.services.runs.preparation import NothingToDo, RunRequest, prepare
from loopwright.services.runs.submission import submit

Autonomy = Literal["manual", "supervised", "auto"]

_LOOK_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWish:
    """What to make a plan of."""

    packet_id: str | None = None
    goal: str = ""
    """Without one, the packet's own goal or the title of its task."""
    model: str | None = None
    """The planner's model."""
    autonomy: Autonomy = "manual"


async def make_plan(at: Session, caller: Caller, project_id: str, wish: PlanWish) -> PlanRecord:
    """Let an agent decompose a packet or a goal into a plan, which rests as a draft.

    If the agent gives no plan that can be used, return its own plan, which FAILED.
    """
    project = await at.home.store.read(lambda tx: seen_project(tx, caller, project_id))
    needed_environment(project)
    goal = wish.goal.strip() or await _goal_of(at, caller, project_id, wish.packet_id)
    flags: dict[str, Any] = {} if wish.model is None else {"model": wish.model}
    with acting(at, caller, project):
        planned = await plan_goal(GoalRequest(goal=goal, flags=flags, packet=wish.packet_id, force=True))
        if planned.path is None:
            return await get_plan(at, caller, planned.plan_id)
        plan = await _drafted(planned.path, wish)
    return await get_plan(at, caller, plan.id)


async def _drafted(path: Path, wish: PlanWish) -> Plan:
    rests = wish.autonomy != "auto"
    prepared = await prepare(RunRequest(plan=path, flags={"autonomy": wish.autonomy}, rests=rests))
    if isinstance(prepared, NothingToDo):
        raise Refused("the plan has no open task", code="nothing_to_do")
    async with prepared:
        return (await submit(prepared)).plan


async def _goal_of(at: Session, caller: Caller, project_id: str, packet_id: str | None) -> str:
    if packet_id is None:
        raise UserError(
            "a plan is made of a packet or of a goal", code="goal_empty", hint="send packetId or goal"
        )
    await packet_file(at, caller, packet_id, project_id)
    packet = await get_packet(at, caller, packet_id)
    task = packet.get("task") or {}
    goal = packet.get("goal") or task.get("title") or task.get("key")
    return str(goal or f"Do what the packet {packet_id} asks for")


async def dispatch_plan(
    at: Session, caller: Caller, plan_id: str, *, parallel: bool = True, despite: str = ""
) -> PlanRecord:
    """Dispatch a draft, and return it once its runs are created."""
    plan, project = await at.home.store.read(lambda tx: plan_and_project(tx, caller, plan_id))
    needed_environment(project)
    with acting(at, caller, project):
        await decisions.dispatch(at, plan.id, parallel=parallel, despite=despite)
    while True:
        record = await get_plan(at, caller, plan_id)
        if record.plan.status not in (PlanState.DRAFT, PlanState.DISPATCHING):
            return record
        if await _loop_state(at, plan) is not LoopState.RUNNING:
            return record  # it could not be dispatched: the loop says why
        await at.home.store.changed(_LOOK_S)


async def verify_plan(at: Session, caller: Caller, plan_id: str) -> PlanRecord:
    """Run the complete gate of a plan, and return the plan once it is judged."""
    plan, project = await at.home.store.read(lambda tx: plan_and_project(tx, caller, plan_id))
    with acting(at, caller, project):
        await decisions.reverify(at, plan.id)
    while True:
        record = await get_plan(at, caller, plan_id)
        if record.plan.status in ENDED_PLAN or await _loop_state(at, plan) is not LoopState.RUNNING:
            return record
        await at.home.store.changed(_LOOK_S)


async def _loop_state(at: Session, plan: Plan) -> LoopState | None:
    loop = await at.home.store.read(lambda tx: tx.get(Loop, plan.loop_id))
    return loop.state if loop is not None else None
