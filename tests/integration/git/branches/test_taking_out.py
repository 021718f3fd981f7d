"""Taking landings back out of a plan branch: one commit more, and nothing of the history less."""

from dataclasses import replace

import pytest
from tests.integration.git.world import ANY, AT, BRANCH, TASK, World, trailers

from loopwright.core.values.errors import MergeConflict
from loopwright.ports import Candidate

OTHER = "task_00000000-0000-7000-8000-0000000000ff"


async def land(world: World, n: int, script: str, task: str = TASK) -> str:
    """Land an attempt that starts from the branch's tip."""
    tip = await world.repository.ensure_branch(BRANCH, world.base_sha)
    one = replace(world)
    one.workspace = world.home / "workspaces" / f"att_{n}"
    one.base_sha = tip
    await one.make()
    one.agent(script)
    sha = (await one.snapshot(n)).sha
    made = await world.repository.candidate(
        tip=tip, attempt_sha=sha, subject=f"feat: {n}", trailers=trailers(task), at=AT
    )
    assert await world.repository.advance(BRANCH, new=made.sha, old=tip)
    return made.sha


async def without(world: World, *landings: str) -> Candidate:
    """Build the commit that takes these back."""
    return await world.repository.without(
        await world.repository.tip(BRANCH),
        landings=landings,
        subject="revert: it",
        plan_id="plan_1",
        command_id="cmd_1",
        at=AT,
    )


async def test_what_is_taken_out_is_gone_from_the_tree_and_stays_in_the_history(world: World) -> None:
    first = await land(world, 1, "echo two > app.py")
    second = await land(world, 2, "echo more > more.txt", OTHER)
    made = await without(world, first)
    assert made == await without(world, first)
    assert await world.repository.advance(BRANCH, new=made.sha, old=second)
    assert world.sh("git", "ls-tree", "--name-only", BRANCH, "--", "more.txt") == "more.txt"
    assert world.sh("git", "diff", "--stat", world.base_sha, BRANCH, "--", "app.py") == ""
    assert await world.repository.is_ancestor(first, made.sha)
    newest, *older = await world.repository.steps(made.sha, since=world.base_sha)
    assert (newest.sha, newest.command, newest.takes_out, newest.tasks) == (made.sha, "cmd_1", (first,), ())
    assert [(step.sha, step.tasks) for step in older] == [(second, (OTHER,)), (first, (TASK,))]
    assert world.sh("git", "status", "--porcelain") == ""


async def test_a_landing_that_was_taken_out_can_be_made_again_and_is_found_once(world: World) -> None:
    first = await land(world, 1, "echo two > app.py")
    made = await without(world, first)
    await world.repository.advance(BRANCH, new=made.sha, old=first)
    fresh = world.another()
    for repository in (world.repository, fresh):
        assert (
            await repository.landed(made.sha, since=world.base_sha, task_id=TASK, among=ANY, reverts=ANY)
            is None
        )
        assert (
            await repository.landed(first, since=world.base_sha, task_id=TASK, among=ANY, reverts=ANY)
            == first
        )
    again = await land(world, 2, "echo two > app.py")
    assert world.sh("git", "show", f"{BRANCH}:app.py") == "two"
    for repository in (world.repository, fresh):
        assert (
            await repository.landed(again, since=world.base_sha, task_id=TASK, among=ANY, reverts=ANY)
            == again
        )


async def test_a_commit_of_nobody_here_takes_nothing_out_whatever_its_trailers_say(world: World) -> None:
    first = await land(world, 1, "echo two > app.py")
    made = await without(world, first)
    await world.repository.advance(BRANCH, new=made.sha, old=first)
    for repository in (world.repository, world.another()):
        for known, found in (((), first), ({made.sha}, None)):
            asked = repository.landed(made.sha, since=world.base_sha, task_id=TASK, among=ANY, reverts=known)
            assert await asked == found


async def test_several_go_in_one_commit_the_newest_first(world: World) -> None:
    first = await land(world, 1, "echo two > app.py")
    second = await land(world, 2, "echo three > app.py", OTHER)
    with pytest.raises(MergeConflict) as conflict:
        await without(world, first)
    assert conflict.value.paths == ("app.py",)
    made = await without(world, second, first)
    assert made.tree == await world.repository.tree_of(world.base_sha)
    assert await world.repository.steps(world.base_sha, since=world.base_sha) == ()
