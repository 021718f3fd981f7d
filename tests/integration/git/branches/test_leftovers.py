"""What a plan has in the user's repository: found, compared with the user's own branches, and let go of."""

import pytest
from tests.integration.git.world import BRANCH, PLAN, World

from loopwright.core.values.errors import GitFailed

ATTEMPT = f"refs/loopwright/attempts/{PLAN}/task_1/1"
OTHER = "refs/loopwright/attempts/plan_other/task_1/1"


async def plan_with_work(world: World) -> str:
    """Give the plan a branch with one commit, pinned as an attempt as well; return the commit."""
    world.sh("git", "checkout", "-q", "-b", "aside")
    (world.user / "new.txt").write_text("new\n")
    world.sh("git", "add", "new.txt")
    world.sh("git", "commit", "-qm", "work")
    sha = world.sh("git", "rev-parse", "HEAD")
    for ref in (f"refs/heads/{BRANCH}", ATTEMPT, f"{ATTEMPT}-agent", OTHER):
        world.sh("git", "update-ref", ref, sha)
    world.sh("git", "checkout", "-q", "trunk")
    world.sh("git", "branch", "-qD", "aside")
    return sha


async def found(world: World) -> dict[str, tuple[str | None, bool]]:
    leftovers = await world.repository.leftovers(PLAN, BRANCH)
    return {one.name: (one.branch, one.same_commits) for one in leftovers}


async def test_work_that_is_in_no_branch_of_the_user_is_not_proven(world: World) -> None:
    await plan_with_work(world)
    assert await found(world) == dict.fromkeys((BRANCH, ATTEMPT, f"{ATTEMPT}-agent"), (None, False))


async def test_merged_work_is_proven_by_any_branch_that_has_the_commits(world: World) -> None:
    sha = await plan_with_work(world)
    world.sh("git", "branch", "taken-over", sha)
    assert (await found(world))[BRANCH] == ("taken-over", True)


async def test_the_pushed_copy_of_the_plans_own_branch_proves_nothing(world: World) -> None:
    sha = await plan_with_work(world)
    world.sh("git", "update-ref", f"refs/remotes/origin/{BRANCH}", sha)
    world.sh("git", "update-ref", f"refs/remotes/up/stream/loopwright/{PLAN}/finish_1", sha)
    assert set((await found(world)).values()) == {(None, False)}, "a request that is open was taken by nobody"
    world.sh("git", "update-ref", "refs/remotes/loopwright/main", sha)
    assert (await found(world))[BRANCH] == ("loopwright/main", True), "a remote may be called as we are"


@pytest.mark.capability("C069")
async def test_squashed_work_is_proven_as_other_commits(world: World) -> None:
    sha = await plan_with_work(world)
    world.sh("git", "merge", "-q", "--squash", sha)
    world.sh("git", "commit", "-qm", "squashed")
    assert (await found(world))[ATTEMPT] == ("trunk", False)


async def test_only_refs_of_the_plan_that_did_not_move_are_deleted(world: World) -> None:
    sha = await plan_with_work(world)
    refs = [one.ref for one in await world.repository.leftovers(PLAN, BRANCH)]
    world.sh("git", "update-ref", ATTEMPT, world.base_sha)
    with pytest.raises(GitFailed):
        await world.repository.let_go(refs)
    assert world.sh("git", "rev-parse", BRANCH) == sha, "all or nothing"
    await world.repository.let_go([one.ref for one in await world.repository.leftovers(PLAN, BRANCH)])
    assert await found(world) == {}
    assert world.sh("git", "rev-parse", OTHER) == sha


async def test_a_branch_that_is_checked_out_stays(world: World) -> None:
    await plan_with_work(world)
    world.sh("git", "checkout", "-q", BRANCH)
    [branch] = [one for one in await world.repository.leftovers(PLAN, BRANCH) if one.name == BRANCH]
    assert branch.ref.worktree == str(world.user.resolve())
    with pytest.raises(GitFailed, match="checked out"):
        await world.repository.let_go([branch.ref])


async def test_a_ref_of_the_users_is_never_deleted(world: World) -> None:
    await plan_with_work(world)
    world.sh("git", "branch", "mine")
    [ref] = (await (await world.repository._ready()).refs.read("refs/heads/mine")).values()
    with pytest.raises(GitFailed):
        await world.repository.let_go([ref])
    assert world.sh("git", "rev-parse", "mine") == world.base_sha


async def test_three_hundred_attempts_take_a_few_git_commands(world: World) -> None:
    """Each attempt adds a file: some are merged, some are squashed or picked one by one, most are nowhere else."""
    script = "".join(
        f"commit refs/loopwright/attempts/{PLAN}/task_{number}/1\n"
        "committer A <a@b> 1700000000 +0000\ndata 1\nx\n"
        f"from {world.base_sha}\nM 100644 inline file{number}\ndata 1\n{number % 10}\n\n"
        for number in range(300)
    )
    world.sh("git", "fast-import", "--quiet", "--force", stdin=script)

    def pin(number: int) -> str:
        return f"refs/loopwright/attempts/{PLAN}/task_{number}/1"

    world.sh("git", "merge", "-q", "--no-edit", "-m", "taken", pin(0), pin(1))
    world.sh("git", "cherry-pick", pin(2))
    world.sh("git", "merge", "-q", "--squash", pin(3))
    world.sh("git", "commit", "-qm", "squashed")
    (world.user / "file3").write_text("went on")
    (world.user / "file4").write_text("another answer")
    world.sh("git", "add", "file3", "file4")
    world.sh("git", "commit", "-qm", "went on")
    before = world.repository.git.processes
    leftovers = {one.ref.name: one for one in await world.repository.leftovers(PLAN, BRANCH, into="trunk")}
    assert world.repository.git.processes - before < 25
    assert len(leftovers) == 300
    proven = {
        name: one.same_commits
        for name, one in leftovers.items()
        if one.branch is not None and one.branch == "trunk"
    }
    assert proven == {pin(0): True, pin(1): True, pin(2): False, pin(3): False}
