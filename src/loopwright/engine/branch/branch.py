"""Where a plan branch stands, with what people did to it by hand taken note of."""

from dataclasses import replace

from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Loop, Plan
from loopwright.core.values.errors import BranchRewritten, GitFailed
from loopwright.core.values.states import LoopState
from loopwright.engine.branch.landed_commits import foreign, landed_commits, own_commits
from loopwright.engine.rows.moves import MACHINE, move_loop, need
from loopwright.engine.rows.world import World
from loopwright.ports import Repository, Standing, Store, Tx

_NAMED = 20


async def tip_of(world: World, repository: Repository, plan: Plan) -> str:
    """Return the tip to go on from; a branch that a person has to mend pauses the loop, and raises."""
    try:
        return await look(world, repository, plan)
    except BranchRewritten as rewritten:
        await hold(world, plan, str(rewritten))
        raise


async def look(world: World, repository: Repository, plan: Plan) -> str:
    """Return the tip of a plan branch, and tell what others did to it; raise for one that was rewritten."""
    standing = await stands(world.store, repository, plan)
    if standing.change == "restored" or standing.commits:
        await world.store.transact("branch.changed", lambda tx: _tell(tx, plan, standing))
    if standing.change == "moved":
        # Only now: whoever looks in between finds it as well, and nobody takes it for told before it is.
        await repository.accept(plan.branch, tip=standing.tip, was=standing.was or "")
    return standing.tip


async def hold(world: World, plan: Plan, reason: str) -> None:
    """Pause the loop until a person has mended the branch."""
    # Whoever meets the same trouble after that writes nothing: a write wakes everybody up.
    if await world.store.read(lambda tx: _runs(tx, plan)):
        await world.store.transact("branch.rewritten", lambda tx: _pause(tx, plan, reason))


async def take_back(
    world: World, repository: Repository, plan: Plan, *, was: str, tip: str, keep: str
) -> bool:
    """Take a plan branch back to where it `was`, as long as it is at `tip`: that stays pinned as `keep`.

    True also where that was done before: a kill came before it could be told, or another run has ended meanwhile.
    """
    if not world.may_act():
        return False
    if not await repository.put_back(plan.branch, to=was, found=tip, keep=keep):
        if not await repository.is_pinned(keep):
            return False
        line = await repository.steps(await repository.tip(plan.branch), since=plan.base_sha)
        if any(step.sha == tip for step in line):
            return False  # it was put there once more, and is checked out or has work on top of it
    standing = Standing(tip=was, change="restored", was=tip)
    if not await world.store.read(lambda tx: _is_told(tx, plan, standing)):
        await world.store.transact("branch.changed", lambda tx: _tell(tx, plan, standing))
    return True


async def stands(store: Store, repository: Repository, plan: Plan) -> Standing:
    """Compare a plan branch with what we noted of it; say what others did to it since we moved it last."""
    standing = await repository.standing(plan.branch)
    if standing.change == "unnoted":
        ours = await store.read(lambda tx: landed_commits(tx, plan))
        await repository.note(plan.branch, among=(plan.base_sha, *ours))
        standing = await repository.standing(plan.branch)
    if standing.change == "unnoted":
        raise GitFailed(f"somebody deletes what is noted of {plan.branch} again and again")
    if standing.change == "moved":
        # A landing or a rollback that was cut short between the two refs is ours.
        own = await store.read(lambda tx: own_commits(tx, plan))
        others = await foreign(repository, plan, standing.commits, own)
        standing = replace(standing, commits=others)
    return standing


def _tell(tx: Tx, plan: Plan, standing: Standing) -> None:
    if standing.change == "moved" and _is_told(tx, plan, standing):
        return
    names = [f"{step.sha[:10]} {step.subject}" for step in standing.commits[:_NAMED]]
    event = "branch_moved" if standing.change == "moved" else "branch_restored"
    tx.append(happened(event, MACHINE, plan=plan, tip=standing.tip, was=standing.was, commits=names))
    if event == "branch_moved":
        tx.update(Plan, plan.id, branch_moved_at=tx.now())


def _is_told(tx: Tx, plan: Plan, standing: Standing) -> bool:
    """Say whether somebody else who saw the same was quicker."""
    last = tx.events(plan=plan.id, types=("branch_moved", "branch_restored"))[-1:]
    return any(
        (one.type, one.payload["tip"], one.payload["was"])
        == (f"branch_{standing.change}", standing.tip, standing.was)
        for one in last
    )


def _runs(tx: Tx, plan: Plan) -> bool:
    loop = need(tx.get(Loop, plan.loop_id), "the loop")
    return loop.state is LoopState.RUNNING


def _pause(tx: Tx, plan: Plan, reason: str) -> None:
    loop = need(tx.get(Loop, plan.loop_id), "the loop")
    if loop.state is LoopState.RUNNING:
        tx.append(happened("branch_rewritten", MACHINE, plan=plan, reason=reason))
        move_loop(tx, loop, LoopState.PAUSED, "loop_paused", MACHINE, reason)
