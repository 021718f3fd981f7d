"""Find the tip of a plan branch, and record commits that came from outside Loopwright."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Command, CommandState, Loop, Plan, Task
from loopwright.core.values.errors import BranchRewritten, GitFailed
from loopwright.core.values.states import LoopState
from loopwright.engine.people.commands import BY_GIT
from loopwright.engine.rows.moves import MACHINE, move_loop, need
from loopwright.engine.rows.world import World
from loopwright.ports import Repository, Standing, Step, Store, Tx

_NAMED = 20


async def tip_of(world: World, repository: Repository, plan: Plan) -> str:
    """Return the tip to continue from; if the user has to fix the branch, pause the loop and raise."""
    try:
        return await look(world, repository, plan)
    except BranchRewritten as rewritten:
        await hold(world, plan, str(rewritten))
        raise


async def look(world: World, repository: Repository, plan: Plan) -> str:
    """Return the tip of a plan branch, and record changes from outside; raise if the branch was rewritten."""
    standing = await stands(world.store, repository, plan)
    if standing.change == "restored" or standing.commits:
        await world.store.transact("branch.changed", lambda tx: _tell(tx, plan, standing))
    if standing.change == "moved":
        # Only now: a concurrent reader also finds the change, and never assumes too early that it was recorded.
        await repository.accept(plan.branch, tip=standing.tip, was=standing.was or "")
    return standing.tip


async def hold(world: World, plan: Plan, reason: str) -> None:
    """Pause the loop until the user has fixed the branch."""
    # A worker that meets the same problem later writes nothing, because a write wakes all workers.
    if await world.store.read(lambda tx: _runs(tx, plan)):
        await world.store.transact("branch.rewritten", lambda tx: _pause(tx, plan, reason))


async def take_back(
    world: World, repository: Repository, plan: Plan, *, was: str, tip: str, keep: str
) -> bool:
    """Reset a plan branch to where it `was`, as long as it is at `tip`, which stays pinned as `keep`.

    Return True also if that was done before: a kill came before it could be recorded, or another run has
    ended since.
    """
    if not world.may_act():
        return False
    if not await repository.put_back(plan.branch, to=was, found=tip, keep=keep):
        if not await repository.is_pinned(keep):
            return False
        line = await repository.steps(await repository.tip(plan.branch), since=plan.base_sha)
        if any(step.sha == tip for step in line):
            return False  # it was put there again, and is checked out or has work on top of it
    standing = Standing(tip=was, change="restored", was=tip)
    if not await world.store.read(lambda tx: _is_told(tx, plan, standing)):
        await world.store.transact("branch.changed", lambda tx: _tell(tx, plan, standing))
    return True


async def stands(store: Store, repository: Repository, plan: Plan) -> Standing:
    """Compare a plan branch with its recorded tip; return what changed since Loopwright last moved it."""
    standing = await repository.standing(plan.branch)
    if standing.change == "unnoted":
        ours = await store.read(lambda tx: landed_commits(tx, plan))
        await repository.note(plan.branch, among=(plan.base_sha, *ours))
        standing = await repository.standing(plan.branch)
    if standing.change == "unnoted":
        raise GitFailed(f"something keeps deleting what Loopwright noted about {plan.branch}")
    if standing.change == "moved":
        # A landing or a rollback that was interrupted between the two refs is ours.
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
    """Return whether another worker recorded the same first."""
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


# Which commits on a plan branch are Loopwright's: those in the rows, whatever commit messages say.


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCommits:
    """The commits of a plan's branch in the rows."""

    landings: frozenset[str]
    """The candidates of its attempts, and the status write-back that landed with them."""
    reverts: frozenset[str]
    """The commits that carry out the user's requests."""


def own_commits(tx: Tx, plan: Plan) -> OwnCommits:
    """Return the commits of a plan's branch in the rows."""
    attempts = tx.find(Attempt, plan_id=plan.id)
    made = (sha for one in attempts for sha in (one.candidate_sha, one.books_sha) if sha is not None)
    return OwnCommits(
        landings=frozenset(made),
        reverts=reverts(tx),
    )


def landed_commits(tx: Tx, plan: Plan) -> list[str]:
    """Return the commits that are certainly on a plan's branch: its landings, and the commits that removed some."""
    tasks = tx.find(Task, plan_id=plan.id)
    targets = {plan.id, *(task.id for task in tasks)}
    undone = tx.find(Command, verb=tuple(BY_GIT), state=CommandState.APPLIED)
    made = (task.landed_sha for task in tasks)
    taken = (one.commit_sha for one in undone if one.target in targets)
    return [sha for sha in (*made, *taken) if sha is not None]


def reverts(tx: Tx) -> frozenset[str]:
    """Return the commits with which commands remove landed work, or are about to."""
    commands = tx.find(Command, verb=tuple(BY_GIT))
    return frozenset(one.commit_sha for one in commands if one.commit_sha is not None)


async def foreign(
    repository: Repository, plan: Plan, steps: Sequence[Step], own: OwnCommits
) -> tuple[Step, ...]:
    """Return the commits that are neither landings, nor from the user's commands, nor status write-back."""
    return tuple([step for step in steps if not await _is_ours(repository, plan, step, own)])


async def _is_ours(repository: Repository, plan: Plan, step: Step, own: OwnCommits) -> bool:
    if step.sha in own.landings or step.sha in own.reverts:
        return True
    # Status write-back has no landing trailer, and changes only files of the source.
    if not step.books or step.tasks or step.takes_out:
        return False
    return set(await repository.changed(step.parent, step.sha)) <= set(plan.books)
