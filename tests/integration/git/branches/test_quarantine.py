"""Proof that work has arrived, and a place for work that has not."""

from datetime import timedelta

import pytest
from tests.integration.git.world import AT, World, trailers, write

from loopwright.core.values.errors import GitFailed

REF = "refs/loopwright/quarantine/plan_1/task_1/1"


async def made(world: World, script: str = "seq 1 9 > app.py; echo new > new.txt") -> str:
    """Return the commit of an attempt."""
    await world.make()
    world.agent(script)
    return (await world.snapshot()).sha


@pytest.mark.capability("C069")
async def test_merged_work_is_proven(world: World) -> None:
    sha = await made(world)
    assert not await world.repository.proven(sha, "trunk")
    world.sh("git", "merge", "-q", "--no-ff", "-m", "merge", sha)
    assert await world.repository.proven(sha, "trunk")
    assert await world.repository.proven(sha, world.sh("git", "rev-parse", "trunk"))


@pytest.mark.capability("C069")
async def test_squashed_work_is_proven_even_when_the_target_went_on(world: World) -> None:
    await world.make()
    world.agent("seq 1 9 > app.py; git commit -qam one; echo new > new.txt; git add .; git commit -qm two")
    sha = (await world.snapshot()).agent_sha
    assert sha is not None
    world.sh("git", "merge", "-q", "--squash", sha)
    world.sh("git", "commit", "-qm", "squashed")
    assert await world.repository.proven(sha, "trunk")
    write(world.user, {"app.py": "all different now\n"})
    world.sh("git", "commit", "-qam", "went on")
    assert await world.repository.proven(sha, "trunk")


async def test_picked_work_is_proven(world: World) -> None:
    sha = await made(world)
    write(world.user, {"other": "x"})
    world.sh("git", "add", "other")
    world.sh("git", "commit", "-qm", "meanwhile")
    world.sh("git", "cherry-pick", sha)
    write(world.user, {"app.py": "all different now\n"})
    world.sh("git", "commit", "-qam", "went on")
    assert await world.repository.proven(sha, "trunk")


async def test_work_that_arrived_in_part_is_not_proven(world: World) -> None:
    sha = await made(world)
    world.sh("git", "checkout", sha, "--", "new.txt")
    world.sh("git", "commit", "-qm", "only a part")
    assert not await world.repository.proven(sha, "trunk")


async def test_unrelated_history_is_not_proven(world: World) -> None:
    other = world.sh("git", "commit-tree", "-m", "alone", "HEAD^{tree}")
    sha = await made(world)
    assert not await world.repository.proven(sha, other)


async def test_what_an_attempt_left_behind_is_pinned_and_listed(world: World) -> None:
    await world.make()
    world.agent("echo half > half.txt")
    kept = await world.repository.quarantine(
        world.workspace, ref=REF, reason="The worker died", at=AT, trailers=trailers()
    )
    assert kept is not None
    await world.repository.remove_workspace(world.workspace)
    assert world.sh("git", "show", f"{REF}:half.txt") == "half"
    assert await world.repository.quarantined() == [kept]
    assert (kept.ref, kept.reason, kept.at) == (REF, "The worker died", AT)


async def test_nothing_is_pinned_when_nothing_was_left(world: World) -> None:
    await world.make()
    keep = world.repository.quarantine
    assert await keep(world.workspace, ref=REF, reason="x", at=AT) is None
    world.agent("echo two > app.py")
    snapshot = await world.snapshot()
    assert await keep(world.workspace, ref=REF, reason="x", at=AT, known=[snapshot.sha]) is None
    world.agent("echo three > app.py")
    assert await keep(world.workspace, ref=REF, reason="x", at=AT, known=[snapshot.sha]) is not None


async def test_commits_that_the_agent_undid_are_kept(world: World) -> None:
    await world.make()
    world.agent("echo two > app.py; git commit -qam mine; git reset -q --hard HEAD~1")
    assert await world.repository.quarantine(world.workspace, ref=REF, reason="x", at=AT) is not None
    assert "mine" in world.sh("git", "log", "--format=%s", "--glob=refs/loopwright/quarantine/*")


async def test_quarantine_is_dropped_when_its_time_is_over(world: World) -> None:
    await world.make()
    world.agent("echo two > app.py; GIT_COMMITTER_DATE='2040-01-01T00:00' git commit -qam mine")
    keep = world.repository.quarantine
    await keep(world.workspace, ref=f"{REF}0", reason="old", at=AT)
    world.agent("echo three > app.py")
    await keep(world.workspace, ref=f"{REF}1", reason="new", at=AT + timedelta(days=30))
    dropped = await world.repository.drop_quarantine(AT + timedelta(days=1))
    assert [thing.reason for thing in dropped] == ["old"]
    assert [thing.reason for thing in await world.repository.quarantined()] == ["new"]
    left = world.sh("git", "for-each-ref", "--format=%(refname)", "refs/loopwright/quarantine").split()
    assert left == [f"{REF}1", f"{REF}1-agent"]
    assert await world.repository.drop_quarantine(AT + timedelta(days=1)) == []


async def test_quarantine_has_its_own_refs(world: World) -> None:
    await world.make()
    with pytest.raises(GitFailed, match="quarantine"):
        await world.repository.quarantine(
            world.workspace, ref="refs/loopwright/attempts/a/b/1", reason="x", at=AT
        )
