"""Submit a prepared plan: a new one begins, an unfinished one continues, a finished one is left as it is."""

from dataclasses import dataclass
from enum import StrEnum

from loopwright.adapters.machine.host import new_id
from loopwright.app import catch_up_state_files
from loopwright.core.rows.model import Loop, Plan
from loopwright.core.values.errors import Held
from loopwright.core.values.states import ENDED_PLAN, LoopState
from loopwright.engine.intake import submit as intake
from loopwright.engine.intake.evaluation import to_do
from loopwright.engine.rows.finishes import is_open
from loopwright.engine.views.views import live_workers
from loopwright.services.control.sending import is_worked_on, send
from loopwright.services.driving.driver import Drive, Rested, drive
from loopwright.services.driving.recorded_environments import record_once, submit_again
from loopwright.services.driving.writeback import world_of
from loopwright.services.homes.context import glance_at
from loopwright.services.preflight.run_inputs import told_of_change
from loopwright.services.runs.last_plan import idle_flags, is_ahead, refuse_idle
from loopwright.services.runs.preparation import Prepared


class Standing(StrEnum):
    """What a submission came to."""

    NEW = "new"
    """A plan was made of it; it has to be driven."""
    CONTINUED = "continued"
    """Its plan was unfinished and continues; it has to be driven."""
    FINISHING = "finishing"
    """Only the end of its plan is left to carry out; it has to be driven."""
    ENDED = "ended"
    """Its plan ended before; nothing was started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A plan that was submitted."""

    plan: Plan
    standing: Standing
    notes: tuple[str, ...] = ()
    """What to say about a plan that continues."""
    items_left: int | None = None
    """Of a plan that ended: how many items its source has open; None if none of them is done or skipped."""
    is_merged: bool = False
    """Of a plan that ended: whether the base has its work."""


async def submit(prepared: Prepared) -> Submitted:
    """Submit a plan; the same plan twice is one plan."""
    at, submission = prepared.at, prepared.submission
    store = at.home.store
    found = await store.transact("submit", lambda tx: intake.submit(tx, new_id, submission))
    plan = found.plan
    await record_once(at.home, prepared.place, submission.policy)
    if found.created:
        return Submitted(plan=plan, standing=Standing.NEW)
    if await store.read(lambda tx: is_open(tx, plan.id)):
        return Submitted(plan=plan, standing=Standing.FINISHING)
    if plan.status in ENDED_PLAN:
        return await _ended(prepared, plan)
    return await _continued(prepared, plan, found.loop)


async def run(prepared: Prepared, *, drive: Drive = drive) -> Rested:
    """Submit a plan and drive it until it rests."""
    submitted = await submit(prepared)
    return await drive(prepared.at, submitted.plan, prepared.submitter)


async def _ended(prepared: Prepared, plan: Plan) -> Submitted:
    submission = prepared.submission
    await catch_up_state_files(world_of(prepared.at))
    with glance_at(prepared.place.root) as repository:
        ahead = await is_ahead(repository, prepared.place.root, plan.branch, submission.base.sha)
    left = len(to_do(submission.work))
    return Submitted(
        plan=plan,
        standing=Standing.ENDED,
        items_left=left if left < len(submission.work.tasks) else None,
        is_merged=not ahead,
    )


async def _continued(prepared: Prepared, plan: Plan, loop: Loop) -> Submitted:
    at, submission, request = prepared.at, prepared.submission, prepared.request
    if loop.state is LoopState.RUNNING and await is_worked_on(at.home, plan.project_id):
        raise Held(
            f"this plan is already being worked on by {await _holders(prepared)}",
            code="plan_running",
            hint=f"`loopwright watch {plan.id}` follows it; `loopwright pause {plan.id}` pauses it",
        )
    sha = submission.base.sha if request.base is not None else None
    idle = refuse_idle(idle_flags(request.flags, submission.policy, plan, base_sha=sha), plan)
    changes = await at.home.store.read(lambda tx: told_of_change(tx, submission, plan))
    await submit_again(at.home, plan, submission)
    if loop.state is not LoopState.RUNNING:
        await send(at, "resume", plan.id, {})
    return Submitted(plan=plan, standing=Standing.CONTINUED, notes=(*idle, *changes))


async def _holders(prepared: Prepared) -> str:
    home = prepared.at.home
    if holder := home.membership.holder():
        return f"process {holder.get('pid')}"
    workers = [] if home.membership.exclusive else await home.store.read(live_workers)
    return ", ".join(f"{one.hostname} ({one.pid})" for one in workers) or "another process"
