"""Start a plan from what those plans made that it waited for, so that both merge without a conflict."""

from typing import Any

from loopwright.core.policy.finishing import PULL_REQUEST
from loopwright.core.policy.red_first import RED_ON_BASE
from loopwright.core.rows.events import happened
from loopwright.core.rows.hold_rows import Hold
from loopwright.core.rows.model import Finish, Plan
from loopwright.core.values.errors import MergeConflict
from loopwright.core.values.states import FinishState, PlanState
from loopwright.engine.rows.moves import MACHINE, need
from loopwright.engine.rows.world import World
from loopwright.ports import Repository, Tx


async def follow_on(world: World, repository: Repository, plan: Plan) -> Plan:
    """Return a plan that is not dispatched yet with the base that it starts from."""
    if plan.status is not PlanState.DRAFT:
        return plan
    before = await world.store.read(lambda tx: _before(tx, plan))
    if not before:
        return plan
    ends = await repository.ends()
    tip = await ends.base_tip(plan.base_ref)
    base = plan.base_sha
    taken: list[str] = []
    left_out: list[str] = []
    for one, merged in before:
        result = need(one.result_sha, "the result of a verified plan")
        there = tip is not None and (merged or await repository.is_ancestor(result, tip))
        wanted = tip if tip is not None and there else result
        if await repository.is_ancestor(wanted, base):
            continue
        if await repository.is_ancestor(base, wanted):
            base = wanted
        else:
            try:
                tree = await ends.joined(base, wanted)
            except MergeConflict:
                left_out.append(one.id)
                continue
            message = f"merge: {one.title}\n\nLoopwright-Plan: {plan.id}"
            base = await ends.commit(tree, parents=(base, wanted), message=message, at=plan.created_at)
        taken.append(one.id)

    def rebase(tx: Tx) -> Plan:
        current = need(tx.get(Plan, plan.id), "the plan")
        for hold in tx.find(Hold, plan_id=plan.id):
            if hold.after:
                tx.update(Hold, hold.id, after=())
        if base == current.base_sha and not left_out:
            return current
        # Which checks fail on the new base is not known.
        evaluation = {**current.evaluation, RED_ON_BASE: []}
        moved = tx.update(Plan, plan.id, base_sha=base, evaluation=evaluation, updated_at=tx.now())
        told: dict[str, Any] = {
            "before": current.base_sha,
            "base": base,
            "plans": taken,
            "left_out": left_out,
        }
        tx.append(happened("plan_rebased", MACHINE, plan=moved, **told))
        return moved

    return await world.store.transact("dispatch.base", rebase)


def _before(tx: Tx, plan: Plan) -> list[tuple[Plan, bool]]:
    """Return the verified plans that a plan waited for, each with whether its result is on the base branch."""
    ids = dict.fromkeys(one for hold in tx.find(Hold, plan_id=plan.id) for one in hold.after)
    found = []
    for plan_id in ids:
        one = tx.get(Plan, plan_id)
        if (
            one is None
            or one.status is not PlanState.VERIFIED
            or one.base_ref != plan.base_ref
            or not one.result_sha
        ):
            continue
        ends = tx.find(Finish, plan_id=one.id, state=FinishState.FINISHED)
        found.append((one, any(not end.tasks and end.how != PULL_REQUEST for end in ends)))
    return found
