"""A plan branch that somebody moves, rewrites or deletes by hand."""

from dataclasses import replace

import pytest
from tests.doubles import Home, planned
from tests.integration.git.branches.test_taking_out import land
from tests.integration.git.world import ANY, AT, BRANCH, PLAN, TASK, World
from tests.refusals import raises_code

from loopwright.adapters.git.branches.branches import pin_of
from loopwright.engine.branch.branch import take_back
from loopwright.ports import Standing


def commit(world: World, parent: str, subject: str) -> str:
    """Make a commit beside every branch, with the tree of its parent."""
    return world.sh("git", "commit-tree", "-p", parent, "-m", subject, f"{parent}^{{tree}}")


async def test_where_we_left_a_branch_is_noted_beside_it(world: World) -> None:
    tip = await land(world, 1, "echo two > app.py")
    assert world.sh("git", "rev-parse", pin_of(BRANCH)) == tip
    assert await world.repository.standing(BRANCH) == Standing(tip=tip)


async def test_commits_that_somebody_put_on_top_are_accepted_and_named(world: World) -> None:
    tip = await land(world, 1, "echo two > app.py")
    mine = commit(world, tip, "a fix of mine")
    world.sh("git", "update-ref", f"refs/heads/{BRANCH}", mine)
    found = await world.repository.standing(BRANCH)
    assert (found.tip, found.change, found.was) == (mine, "moved", tip)
    assert [step.subject for step in found.commits] == ["a fix of mine"]
    assert (await world.repository.standing(BRANCH)).change == "moved", "until it is told"
    await world.repository.accept(BRANCH, tip=mine, was=tip)
    assert await world.repository.standing(BRANCH) == Standing(tip=mine)
    assert (
        await world.repository.landed(mine, since=world.base_sha, task_id=TASK, among=ANY, reverts=ANY) == tip
    )


async def test_a_landing_that_was_cut_short_between_the_two_refs_is_taken_note_of(world: World) -> None:
    first = await land(world, 1, "echo two > app.py")
    second = await land(world, 2, "echo three > app.py")
    world.sh("git", "update-ref", pin_of(BRANCH), first)
    found = await world.repository.standing(BRANCH)
    assert (found.tip, found.change, [step.sha for step in found.commits]) == (second, "moved", [second])
    await world.repository.accept(BRANCH, tip=second, was=first)
    assert world.sh("git", "rev-parse", pin_of(BRANCH)) == second


@pytest.mark.parametrize("packed", [False, True])
async def test_a_branch_that_was_deleted_is_back(world: World, packed: bool) -> None:
    tip = await land(world, 1, "echo two > app.py")
    world.sh("git", "branch", "-D", BRANCH)
    if packed:
        world.sh("git", "gc", "-q", "--prune=now")
    assert await world.repository.standing(BRANCH) == Standing(tip=tip, change="restored")
    assert world.sh("git", "rev-parse", BRANCH) == tip


async def test_a_branch_that_was_moved_back_is_where_it_was(world: World) -> None:
    tip = await land(world, 1, "echo two > app.py")
    world.sh("git", "branch", "-f", BRANCH, world.base_sha)
    found = await world.repository.standing(BRANCH)
    assert (found.tip, found.change, found.was) == (tip, "restored", world.base_sha)
    assert world.sh("git", "rev-parse", BRANCH) == tip


async def test_a_branch_that_was_rewritten_is_left_alone_until_a_person_mends_it(world: World) -> None:
    tip = await land(world, 1, "echo two > app.py")
    other = commit(world, world.base_sha, "all of it anew")
    world.sh("git", "branch", "-f", BRANCH, other)
    with raises_code("branch_rewritten") as rewritten:
        await world.repository.standing(BRANCH)
    assert "loopwright rollback" in str(rewritten.value)
    assert world.sh("git", "rev-parse", BRANCH) == other
    # Merging what landed into it keeps both.
    both = world.sh("git", "commit-tree", "-p", other, "-p", tip, "-m", "both", f"{tip}^{{tree}}")
    world.sh("git", "branch", "-f", BRANCH, both)
    found = await world.repository.standing(BRANCH)
    assert (found.tip, found.change) == (both, "moved")


async def test_a_branch_moved_back_under_somebody_s_feet_is_theirs_to_mend(world: World) -> None:
    await land(world, 1, "echo two > app.py")
    world.sh("git", "worktree", "add", "-q", str(world.home / "mine"), BRANCH)
    world.sh("git", "-C", str(world.home / "mine"), "reset", "-q", "--hard", world.base_sha)
    with raises_code("branch_rewritten"):
        await world.repository.standing(BRANCH)


async def test_what_others_put_on_a_branch_is_taken_off_again_and_kept(world: World) -> None:
    tip = await land(world, 1, "echo two > app.py")
    other = commit(world, tip, "straight to the plan")
    world.sh("git", "update-ref", f"refs/heads/{BRANCH}", other)
    keep = f"refs/loopwright/attempts/{PLAN}/taken/{other}"
    processes = world.repository.git.processes
    assert not await world.repository.is_pinned(keep)
    assert world.repository.git.processes == processes, "asked before each landing"
    assert await world.repository.put_back(BRANCH, to=tip, found=other, keep=keep)
    assert await world.repository.standing(BRANCH) == Standing(tip=tip)
    assert world.sh("git", "rev-parse", keep) == other
    assert await world.repository.is_pinned(keep)
    assert not await world.repository.put_back(BRANCH, to=tip, found=other, keep=keep), (
        "it is elsewhere by now"
    )
    world.sh("git", "worktree", "add", "-q", str(world.home / "mine"), BRANCH)
    assert not await world.repository.put_back(BRANCH, to=world.base_sha, found=tip, keep=keep), "in use"
    assert world.sh("git", "rev-parse", BRANCH) == tip


async def test_what_was_taken_off_before_a_kill_or_for_another_run_is_told_once(world: World) -> None:
    """The branch was put back, and nobody said so; work that landed since makes no difference."""
    tip = await land(world, 1, "echo two > app.py")
    other = commit(world, tip, "straight to the plan")
    world.sh("git", "update-ref", f"refs/heads/{BRANCH}", other)
    keep = f"refs/loopwright/attempts/{PLAN}/taken/{other}"
    home = Home()
    plan = replace(home.submit(planned("a")), branch=BRANCH, base_sha=world.base_sha)
    taken = {"was": tip, "tip": other, "keep": keep}
    assert await world.repository.put_back(BRANCH, to=tip, found=other, keep=keep)
    assert await take_back(home.world, world.repository, plan, **taken)
    later = commit(world, tip, "landed since")
    world.sh("git", "update-ref", f"refs/heads/{BRANCH}", later)
    assert await take_back(home.world, world.repository, plan, **taken)
    [told] = home.events("branch_restored")
    assert (told.payload["tip"], told.payload["was"]) == (tip, other)
    world.sh("git", "update-ref", f"refs/heads/{BRANCH}", commit(world, other, "on top of it"))
    assert not await take_back(home.world, world.repository, plan, **taken), "it is there again"


async def test_without_our_note_a_branch_is_taken_for_nothing_until_the_commits_that_landed_say_where_it_was(
    world: World,
) -> None:
    assert await world.repository.standing(BRANCH) == Standing(tip="", change="unnoted")
    tip = await land(world, 1, "echo two > app.py")
    world.sh("git", "update-ref", "-d", pin_of(BRANCH))
    other, later = commit(world, world.base_sha, "all of it anew"), commit(world, tip, "one more")
    world.sh("git", "branch", "-f", BRANCH, other)
    assert await world.repository.standing(BRANCH) == Standing(tip=other, change="unnoted")
    for among, newest in (((world.base_sha,), world.base_sha), ((world.base_sha, later, tip), later)):
        processes = world.repository.git.processes
        await world.repository.note(BRANCH, among=among)
        assert world.sh("git", "rev-parse", pin_of(BRANCH)) == newest
        assert world.repository.git.processes <= processes + 2, "however many have landed"
        world.sh("git", "update-ref", "-d", pin_of(BRANCH))
    await world.repository.note(BRANCH, among=(world.base_sha, tip))
    assert world.sh("git", "rev-parse", pin_of(BRANCH)) == tip
    with raises_code("branch_rewritten"):
        await world.repository.standing(BRANCH)
    world.sh("git", "branch", "-D", BRANCH)
    assert await world.repository.standing(BRANCH) == Standing(tip=tip, change="restored")


async def test_a_commit_of_status_keeps_a_program_a_program(world: World) -> None:
    for name, mode in (("plan.md", 0o755), ("notes.md", 0o644)):
        (world.user / name).write_text("- [ ] one\n")
        (world.user / name).chmod(mode)
    world.sh("git", "add", "plan.md", "notes.md")
    world.sh("git", "commit", "-qm", "plans")
    parent = world.sh("git", "rev-parse", "HEAD")
    files = {"plan.md": b"- [x] one\n", "notes.md": b"- [x] one\n", "new.md": b"new\n"}
    told = await world.repository.booked(parent, files, subject="told", plan_id=PLAN, at=AT, copies={})
    modes = [line.split()[0] for line in world.sh("git", "ls-tree", told, *sorted(files)).splitlines()]
    assert modes == ["100644", "100644", "100755"]
