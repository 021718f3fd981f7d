"""Where a plan branch stands, with what people did to it by hand taken note of."""

from dataclasses import replace

from loopwright.core.errors import BranchRewritten
from loopwright.core.events import happened
from loopwright.core.model import Loop, Plan
from loopwright.core.states import LoopState
from loopwright.engine.moves import MACHINE, move_loop, need
from loopwright.engine.own_commits import foreign, own_commits
from loopwright.engine.world import World
from loopwright.ports import Repository, Standing, Tx

_NAMED = 20


async def tip_of(world: World, repository: Repository, plan: Plan) -> str:
    """Return the tip to go on from; a branch that a person has to mend pauses the loop, and raises."""
    try:
        standing = await repository.standing(plan.branch)
    except BranchRewritten as rewritten:
        reason = str(rewritten)
        # Whoever meets the same trouble after that writes nothing: a write wakes everybody up.
        if await world.store.read(lambda tx: _runs(tx, plan)):
            await world.store.transact("branch.rewritten", lambda tx: _pause(tx, plan, reason))
        raise
    if standing.change == "moved":
        # A landing or a rollback that was cut short between the two refs is ours.
        own = await world.store.read(lambda tx: own_commits(tx, plan))
        others = await foreign(repository, plan, standing.commits, own)
        standing = replace(standing, change="moved" if others else "", commits=others)
    if standing.change:
        await world.store.transact("branch.changed", lambda tx: _tell(tx, plan, standing))
    return standing.tip


def _tell(tx: Tx, plan: Plan, standing: Standing) -> None:
    names = [f"{step.sha[:10]} {step.subject}" for step in standing.commits[:_NAMED]]
    event = "branch_moved" if standing.change == "moved" else "branch_restored"
    tx.append(happened(event, MACHINE, plan=plan, tip=standing.tip, was=standing.was, commits=names))
    if event == "branch_moved":
        tx.update(Plan, plan.id, branch_moved_at=tx.now())


def _runs(tx: Tx, plan: Plan) -> bool:
    loop: Loop = need(tx.get(Loop, plan.loop_id), "the loop")
    return loop.state is LoopState.RUNNING


def _pause(tx: Tx, plan: Plan, reason: str) -> None:
    loop = need(tx.get(Loop, plan.loop_id), "the loop")
    if loop.state is LoopState.RUNNING:
        tx.append(happened("branch_rewritten", MACHINE, plan=plan, reason=reason))
        move_loop(tx, loop, LoopState.PAUSED, "loop_paused", MACHINE, reason)
