"""Plan branches, candidates, and landing exactly once."""

import asyncio
import hashlib
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.git.world import ANY, AT, BRANCH, TASK, World, sh, trailers, write
from tests.refusals import raises_code

from loopwright.adapters.git import DIFF_COMMAND, GitRepository
from loopwright.core.values.errors import GitFailed, MergeConflict, Refused
from loopwright.ports import Candidate

OTHER = TASK.replace("0001", "0002")


async def attempt(world: World, n: int, script: str) -> str:
    """Make an attempt's commit from the base."""
    one = replace(world)
    one.workspace = world.home / "workspaces" / f"att_{n}"
    await one.make()
    one.agent(script)
    return (await one.snapshot(n)).sha


async def candidate(world: World, tip: str, attempt_sha: str, task: str = TASK) -> Candidate:
    """Merge an attempt into a tip."""
    return await world.repository.candidate(
        tip=tip, attempt_sha=attempt_sha, subject="feat: land it", trailers=trailers(task), at=AT
    )


async def test_the_plan_branch_is_made_once(world: World) -> None:
    assert await world.repository.ensure_branch(BRANCH, world.base_sha) == world.base_sha
    landed = await candidate(world, world.base_sha, await attempt(world, 1, "echo two > app.py"))
    assert await world.repository.advance(BRANCH, new=landed.sha, old=world.base_sha)
    assert await world.repository.ensure_branch(BRANCH, world.base_sha) == landed.sha
    assert await world.repository.tip(BRANCH) == landed.sha
    assert world.sh("git", "rev-parse", BRANCH) == landed.sha


async def test_a_branch_that_is_gone_is_said_so(world: World) -> None:
    with raises_code("branch_gone"):
        await world.repository.tip(BRANCH)
    assert not await world.repository.advance(BRANCH, new=world.base_sha, old="a" * 40)


async def test_a_branch_of_the_user_s_in_the_way_is_named(world: World) -> None:
    world.sh("git", "branch", "loopwright")
    with pytest.raises(Refused, match="refs/heads/loopwright") as caught:
        await world.repository.ensure_branch(BRANCH, world.base_sha)
    assert "rename it" in str(caught.value.hint)


@pytest.mark.parametrize(
    "name", ["trunk", "loopwright", "loopwright/../trunk", "loopwright/x.lock", "refs/heads/x"]
)
async def test_no_other_branch_is_ever_written(world: World, name: str) -> None:
    with pytest.raises(GitFailed, match="not a branch under loopwright/"):
        await world.repository.ensure_branch(name, world.base_sha)
    with pytest.raises(GitFailed, match="not a branch under loopwright/"):
        await world.repository.advance(name, new=world.base_sha, old=world.base_sha)


async def test_a_candidate_joins_both_lines_and_says_whose_it_is(world: World) -> None:
    first = await candidate(world, world.base_sha, await attempt(world, 1, "echo two > app.py"))
    second_attempt = await attempt(world, 2, "echo new > new.txt")
    second = await candidate(world, first.sha, second_attempt)
    await world.repository.ensure_branch(BRANCH, world.base_sha)
    assert await world.repository.advance(BRANCH, new=second.sha, old=world.base_sha)
    assert not second.empty
    assert second.parent == first.sha
    assert world.sh("git", "rev-parse", f"{second.sha}^1", f"{second.sha}^2").split() == [
        first.sha,
        second_attempt,
    ]
    assert world.files_at(second.sha) == [".gitignore", "app.py", "docs/readme.md", "new.txt"]
    values = (f"%(trailers:key=Loopwright-{key},valueonly,separator=)" for key in ("Task", "Run"))
    form = "|".join(("--format=%s", *values))
    assert world.sh("git", "log", "-1", form, second.sha) == f"feat: land it|{TASK}|run_1"


async def test_the_same_merge_gives_the_same_candidate(world: World) -> None:
    made = await attempt(world, 1, "echo two > app.py")
    assert await candidate(world, world.base_sha, made) == await candidate(world, world.base_sha, made)


async def test_a_merge_that_changes_nothing_is_empty(world: World) -> None:
    made = await attempt(world, 1, "true")
    found = await candidate(world, world.base_sha, made)
    assert found.empty
    assert found.tree == await world.repository.tree_of(world.base_sha)


@pytest.mark.capability("C069")
async def test_a_conflict_names_the_files_and_shows_both_sides(world: World) -> None:
    first = await candidate(world, world.base_sha, await attempt(world, 1, "echo ours > app.py"))
    other = await attempt(world, 2, "echo theirs > app.py; git rm -q docs/readme.md")
    with pytest.raises(MergeConflict) as caught:
        await candidate(world, first.sha, other)
    assert caught.value.paths == ("app.py",)
    assert "<<<<<<<" in caught.value.detail
    assert "ours" in caught.value.detail
    assert "theirs" in caught.value.detail


async def test_the_text_of_a_conflict_is_bounded(world: World) -> None:
    first = await attempt(world, 1, "seq 100000 > app.py; seq 2 > a; seq 2 > b")
    other = await attempt(world, 2, "seq 100000 200000 > app.py; seq 3 > a; seq 3 > b")
    with pytest.raises(MergeConflict) as caught:
        await candidate(world, first, other)
    assert caught.value.paths == ("a", "app.py", "b")
    assert len(caught.value.detail) <= 8000


# --- finding a landing -------------------------------------------------------------------------------


@pytest.mark.capability("C036")
async def test_a_landing_is_found_by_its_task_and_only_by_it(world: World) -> None:
    landed = await candidate(
        world, world.base_sha, await attempt(world, 1, "echo two > app.py"), task="ptask_10"
    )
    find = world.repository.landed
    assert (
        await find(landed.sha, since=world.base_sha, task_id="ptask_10", among=ANY, reverts=ANY) == landed.sha
    )
    assert await find(landed.sha, since=world.base_sha, task_id="ptask_1", among=ANY, reverts=ANY) is None
    assert (
        await find(world.base_sha, since=world.base_sha, task_id="ptask_10", among=ANY, reverts=ANY) is None
    )
    assert await find(landed.sha, since=landed.sha, task_id="ptask_10", among=ANY, reverts=ANY) is None


@pytest.mark.trap("quoted success")
async def test_a_message_that_only_quotes_a_trailer_is_no_landing(world: World) -> None:
    write(world.user, {"x": "x"})
    world.sh("git", "add", "x")
    message = "quote\n\nLoopwright-Task: ptask_1\nis what the other commit said\n\nMore text.\n"
    world.sh("git", "commit", "-qm", message)
    tip = world.sh("git", "rev-parse", "HEAD")
    assert (
        await world.repository.landed(tip, since=world.base_sha, task_id="ptask_1", among=ANY, reverts=ANY)
        is None
    )


async def test_an_attempt_beside_the_first_parent_line_is_no_landing(world: World) -> None:
    """The attempt's own commit carries the same trailer, but only its merge is the landing."""
    made = await attempt(world, 1, "echo two > app.py")
    landed = await candidate(world, world.base_sha, made)
    assert (
        await world.repository.landed(landed.sha, since=world.base_sha, task_id=TASK, among=ANY, reverts=ANY)
        == landed.sha
    )
    by_hand = world.sh("git", "commit-tree", landed.tree, "-p", world.base_sha, "-p", made, "-m", "by hand")
    assert (
        await world.repository.landed(by_hand, since=world.base_sha, task_id=TASK, among=ANY, reverts=ANY)
        is None
    )


# --- moving the branch -------------------------------------------------------------------------------


async def test_a_branch_that_moved_is_not_overwritten(world: World) -> None:
    await world.repository.ensure_branch(BRANCH, world.base_sha)
    first = await candidate(world, world.base_sha, await attempt(world, 1, "echo two > app.py"))
    second = await candidate(world, world.base_sha, await attempt(world, 2, "echo new > new.txt"))
    assert await world.repository.advance(BRANCH, new=first.sha, old=world.base_sha)
    assert not await world.repository.advance(BRANCH, new=second.sha, old=world.base_sha)
    assert await world.repository.tip(BRANCH) == first.sha


async def test_advancing_again_after_a_crash_is_a_success(world: World) -> None:
    await world.repository.ensure_branch(BRANCH, world.base_sha)
    first = await candidate(world, world.base_sha, await attempt(world, 1, "echo two > app.py"))
    assert await world.repository.advance(BRANCH, new=first.sha, old=world.base_sha)
    assert await world.another().advance(BRANCH, new=first.sha, old=world.base_sha)


async def test_a_branch_that_the_user_has_checked_out_is_left_alone(world: World, tmp_path: Path) -> None:
    await world.repository.ensure_branch(BRANCH, world.base_sha)
    world.sh("git", "worktree", "add", "-q", str(tmp_path / "look"), BRANCH)
    first = await candidate(world, world.base_sha, await attempt(world, 1, "echo two > app.py"))
    with pytest.raises(GitFailed, match=rf"checked out in {tmp_path}/look"):
        await world.repository.advance(BRANCH, new=first.sha, old=world.base_sha)
    assert sh(tmp_path / "look", "git", "status", "--porcelain") == ""
    sh(tmp_path / "look", "git", "switch", "-q", "--detach")
    assert await world.repository.advance(BRANCH, new=first.sha, old=world.base_sha)


async def land(world: World, repository: GitRepository, task: str, attempt_sha: str) -> str:
    """Land as an engine does: look and swap on the same snapshot of the branch."""
    while True:
        tip = await repository.tip(BRANCH)
        found = await repository.landed(tip, since=world.base_sha, task_id=task, among=ANY, reverts=ANY)
        if found is not None:
            return found
        made = await repository.candidate(
            tip=tip, attempt_sha=attempt_sha, subject=f"land {task}", trailers=trailers(task), at=AT
        )
        if await repository.advance(BRANCH, new=made.sha, old=tip):
            return made.sha


async def test_eight_racers_land_four_tasks_exactly_once(world: World) -> None:
    await world.repository.ensure_branch(BRANCH, world.base_sha)
    tasks = {f"ptask_{n}": await attempt(world, n, f"echo {n} > file_{n}") for n in (1, 2, 10, 11)}
    racers = [(world.another(), task, sha) for task, sha in tasks.items() for _ in range(2)]
    found = await asyncio.gather(*(land(world, repository, task, sha) for repository, task, sha in racers))
    line = await world.repository.steps(await world.repository.tip(BRANCH), since=world.base_sha)
    assert sorted(step.subject for step in line) == sorted(f"land {task}" for task in tasks)
    assert {step.sha for step in line} == set(found)
    assert [name for name in world.files_at(BRANCH) if name.startswith("file_")] == [
        "file_1",
        "file_10",
        "file_11",
        "file_2",
    ]
    world.sh("git", "fsck", "--strict")


@pytest.mark.parametrize("when", ["git.ref.before", "git.ref.after"])
async def test_a_landing_cut_short_at_the_ref_is_finished_by_the_next_call(world: World, when: str) -> None:
    class Killed(BaseException):
        pass

    def die(name: str) -> None:
        if name == when:
            raise Killed

    await world.repository.ensure_branch(BRANCH, world.base_sha)
    made = await attempt(world, 1, "echo two > app.py")
    first = await candidate(world, world.base_sha, made)
    with pytest.raises(Killed):
        await world.another(failpoint=die).advance(BRANCH, new=first.sha, old=world.base_sha)
    landed = await land(world, world.another(), TASK, made)
    assert await world.repository.tree_of(landed) == first.tree
    tip = await world.repository.tip(BRANCH)
    assert len(await world.repository.steps(tip, since=world.base_sha)) == 1


async def test_every_ref_update_passes_both_failpoints(world: World) -> None:
    seen: list[str] = []
    world.repository = world.another(failpoint=seen.append)
    await world.repository.ensure_branch(BRANCH, world.base_sha)
    assert seen == ["git.ref.before", "git.ref.after"]
    await attempt(world, 1, "echo two > app.py")
    assert seen == ["git.ref.before", "git.ref.after"] * 2


# --- reading -----------------------------------------------------------------------------------------


async def test_history_and_differences_can_be_read(world: World) -> None:
    made = await attempt(world, 1, "echo two > app.py; printf '\\0\\1' > binary")
    repository = world.repository
    assert await repository.is_ancestor(world.base_sha, made)
    assert not await repository.is_ancestor(made, world.base_sha)
    assert await repository.tree_of(made) == world.sh("git", "rev-parse", f"{made}^{{tree}}")
    assert await repository.file_at(made, "app.py") == "two\n"
    assert await repository.file_at(made, "docs/readme.md") == "hello\n"
    for absent in ("nothing", "docs", "../app.py", "/app.py", "", "a\nb"):
        assert await repository.file_at(made, absent) is None
    with raises_code("commit_gone"):
        await repository.tree_of("a" * 40)


async def test_anyone_can_compute_the_hash_of_a_change(world: World) -> None:
    world.sh("git", "config", "diff.noprefix", "true")
    made = await attempt(
        world, 1, "echo two > app.py; printf '\\0\\1' > binary; git mv docs/readme.md docs/moved.md"
    )
    long = await attempt(world, 2, "seq 100000 > long.txt; printf '%s ' a b > docs/readme.md")
    pairs = [(world.base_sha, made), (made, made), (made, long), (long, world.base_sha)]
    found = await world.repository.diff_hashes(pairs)
    for (old, new), sha256 in zip(pairs, found, strict=True):
        command = DIFF_COMMAND.replace("OLD", old).replace("NEW", new)
        shown = subprocess.run(["sh", "-c", command], cwd=world.user, capture_output=True, text=True).stdout
        assert shown.split()[0] == sha256
    assert (found[0] == hashlib.sha256(b"").hexdigest(), found[1] == hashlib.sha256(b"").hexdigest()) == (
        False,
        True,
    )


async def test_a_packed_branch_is_read_as_well_as_a_loose_one(world: World) -> None:
    await world.repository.ensure_branch(BRANCH, world.base_sha)
    before = world.repository.git.processes
    assert await world.repository.tip(BRANCH) == world.base_sha
    assert world.repository.git.processes == before
    world.sh("git", "pack-refs", "--all")
    assert await world.repository.tip(BRANCH) == world.base_sha


async def test_a_large_change_arrives_as_one_pack(world: World) -> None:
    await world.make()
    world.agent("for n in $(seq 300); do echo $n > file-$n; done")
    taken = await world.snapshot()
    assert len(world.files_at(taken.sha)) >= 300
    assert list((world.user / ".git" / "objects" / "pack").glob("*.pack"))
    assert world.sh("git", "fsck", "--connectivity-only", "--no-dangling") == ""


async def test_work_is_brought_in_without_asking_every_ref(world: World) -> None:
    """A broken ref of someone else's made `git fetch` fail, because it goes through all of them."""
    stray = world.user / ".git" / "refs" / "heads" / "theirs"
    stray.write_text("1" * 40 + "\n")
    await world.make()
    world.agent("echo new > new.txt")
    taken = await world.snapshot()
    assert "new.txt" in world.files_at(taken.sha)


async def test_what_lands_is_complete_even_if_our_own_git_dir_had_it_already(world: World) -> None:
    first = await candidate(
        world, world.base_sha, await attempt(world, 1, "mkdir -p deep; echo 1 > deep/one")
    )
    second = await attempt(world, 2, "mkdir -p deep; echo 2 > deep/two")
    # The very tree that the merge will come to, in a git dir that the user's repository knows nothing of.
    third = replace(world)
    third.workspace = world.home / "workspaces" / "att_3"
    await third.make()
    third.agent("mkdir -p deep; echo 1 > deep/one; echo 2 > deep/two")
    own = next((world.home / "git").glob("*.git"))
    git = ("git", f"--git-dir={own}", f"--work-tree={third.workspace}")
    sh(third.workspace, *git, "add", "-A")
    sh(third.workspace, *git, "write-tree")
    merged = await candidate(world, first.sha, second)
    await world.repository.ensure_branch(BRANCH, world.base_sha)
    assert await world.repository.advance(BRANCH, new=merged.sha, old=world.base_sha)
    objects = world.sh("git", "rev-list", "--objects", BRANCH)
    assert merged.tree in objects
    assert world.sh("git", "fsck", "--connectivity-only", "--no-dangling", merged.sha) == ""


async def test_a_landing_is_found_by_someone_who_did_not_write_it(world: World) -> None:
    first = await candidate(world, world.base_sha, await attempt(world, 1, "echo two > app.py"), "task_1")
    second = await candidate(world, first.sha, await attempt(world, 2, "echo new > new.txt"), "task_2")
    fresh = GitRepository(world.user, project_id="proj_1", home=world.home)
    third = await fresh.candidate(
        tip=second.sha,
        attempt_sha=await attempt(world, 3, "echo more > more.txt"),
        subject="feat: land it",
        trailers=trailers("task_3"),
        at=AT,
    )
    for one, sha in {"task_1": first.sha, "task_2": second.sha, "task_3": third.sha, "task_4": None}.items():
        assert await fresh.landed(third.sha, since=world.base_sha, task_id=one, among=ANY, reverts=ANY) == sha
        assert (
            await world.repository.landed(
                third.sha, since=world.base_sha, task_id=one, among=ANY, reverts=ANY
            )
            == sha
        )


async def test_a_commit_of_ours_is_the_one_that_git_would_write(world: World) -> None:
    made = await candidate(world, world.base_sha, await attempt(world, 1, "echo ü > app.py"))
    raw = subprocess.run(
        ["git", "cat-file", "commit", made.sha], cwd=world.user, capture_output=True, check=True
    ).stdout
    again = subprocess.run(
        ["git", "hash-object", "-t", "commit", "--stdin"],
        cwd=world.user,
        input=raw,
        capture_output=True,
        check=True,
    )
    assert again.stdout.decode().strip() == made.sha


async def test_what_landed_since_is_told_with_whose_it_is_and_what_it_changed(world: World) -> None:
    repository = world.repository
    first = await candidate(
        world, world.base_sha, await attempt(world, 1, "echo two > app.py; echo x > 'a b*'")
    )
    second = await candidate(world, first.sha, await attempt(world, 2, "rm docs/readme.md"), task=OTHER)
    foreign = world.sh("git", "commit-tree", f"{second.sha}^{{tree}}", "-p", second.sha, "-m", "by hand")
    found = await repository.steps(foreign, since=world.base_sha)
    assert [(one.sha, one.parent, one.tasks) for one in found] == [
        (foreign, second.sha, ()),
        (second.sha, first.sha, (OTHER,)),
        (first.sha, world.base_sha, (TASK,)),
    ]
    changed = [await repository.changed(one.parent, one.sha) for one in found]
    assert changed == [(), ("docs/readme.md",), ("a b*", "app.py")]
    assert await repository.steps(foreign, since=world.base_sha, most=2) == found[:2]
    assert await repository.steps(first.sha, since=first.sha) == ()


async def test_a_difference_is_told_at_the_paths_that_were_asked_for_and_cut_short(world: World) -> None:
    script = "seq 1000 > app.py; echo x > 'a b*'; printf '\\0\\1' > picture"
    made = await attempt(world, 1, script)
    told = world.repository.difference
    assert "+x\n" in await told(world.base_sha, made, paths=["a b*"], limit=1000)
    assert "app.py" not in await told(world.base_sha, made, paths=["a b*"], limit=1000)
    short = await told(world.base_sha, made, limit=500)
    assert short.endswith("\n[cut short]\n")
    assert len(short) < 520
    assert "Binary files" in await told(world.base_sha, made, paths=["picture"], limit=1000)


async def test_no_side_is_ever_picked_whatever_the_repository_says_about_merging(world: World) -> None:
    write(world.user, {".gitattributes": "* merge=union\n", "app.py": "one\n"})
    world.sh("git", "add", "-A")
    world.sh("git", "commit", "-q", "-m", "a driver")
    world.sh("git", "config", "merge.union.driver", "true")
    world.base_sha = world.sh("git", "rev-parse", "HEAD")
    first = await candidate(world, world.base_sha, await attempt(world, 1, "echo theirs > app.py"))
    with pytest.raises(MergeConflict) as caught:
        await candidate(world, first.sha, await attempt(world, 2, "echo mine > app.py"))
    assert caught.value.paths == ("app.py",)


async def test_what_an_earlier_attempt_did_can_be_looked_at_from_the_next_workspace(world: World) -> None:
    made = await attempt(world, 1, "echo mine > app.py")
    later = replace(world)
    later.workspace = world.home / "workspaces" / "att_2"
    await later.make()
    assert "+mine" in later.agent(f"git diff {world.base_sha} {made}")


async def test_a_commit_that_nobody_here_made_is_no_landing_whatever_its_trailer_says(world: World) -> None:
    first = await candidate(world, world.base_sha, await attempt(world, 1, "echo two > app.py"))
    forged = world.sh(
        "git", "commit-tree", first.tree, "-p", first.sha, "-m", f"x\n\nLoopwright-Task: {TASK}"
    )
    for repository in (world.repository, GitRepository(world.user, project_id="proj_1", home=world.home)):
        find = repository.landed
        assert await find(forged, since=world.base_sha, task_id=TASK, among=ANY, reverts=ANY) == forged
        assert (
            await find(forged, since=world.base_sha, task_id=TASK, among={first.sha}, reverts=ANY)
            == first.sha
        )
        assert await find(forged, since=world.base_sha, task_id=TASK, among=(), reverts=ANY) is None
