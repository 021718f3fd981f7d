"""Committing what a workspace holds."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.integration.git.world import AT, PLAN, TASK, World, sh, start_repository, trailers, write

from loopwright.core.values.errors import GitFailed

REF = f"refs/loopwright/attempts/{PLAN}/{TASK}/1"


async def test_a_snapshot_holds_changed_new_and_deleted_files(world: World) -> None:
    await world.make()
    world.agent("echo two > app.py; echo new > 'a file'; rm docs/readme.md")
    snapshot = await world.snapshot()
    assert set(snapshot.changed) == {"app.py", "a file", "docs/readme.md"}
    assert (snapshot.insertions, snapshot.deletions) == (2, 2)
    assert snapshot.agent_sha is None
    assert world.files_at(REF) == [".gitignore", "a file", "app.py"]
    assert world.sh("git", "rev-parse", REF) == snapshot.sha
    assert world.sh("git", "rev-parse", f"{REF}^{{tree}}") == snapshot.tree
    assert world.sh("git", "rev-parse", f"{REF}^@") == world.base_sha


@pytest.mark.capability("C036")
async def test_a_snapshot_says_whom_it_belongs_to(world: World) -> None:
    await world.make()
    world.agent("echo two > app.py")
    await world.snapshot(subject="feat: do\n\nLoopwright-Task: forged\n")
    shown = world.sh(
        "git", "log", "-1", "--format=%s|%an|%ae|%ct|%(trailers:only,unfold,separator=%x2c)", REF
    )
    assert shown == (
        f"feat: do Loopwright-Task: forged|Ada|ada@example.org|{int(AT.timestamp())}|"
        f"Loopwright-Plan: {PLAN},Loopwright-Task: {TASK},Loopwright-Attempt: att_1,Loopwright-Run: run_1"
    )


async def test_the_same_work_gives_the_same_commit(world: World) -> None:
    await world.make()
    world.agent("echo two > app.py")
    first = await world.snapshot()
    assert await world.snapshot() == first
    assert await world.snapshot(at=AT + timedelta(hours=1)) == first
    world.sh("git", "update-ref", "-d", REF)
    assert await world.snapshot() == first


async def test_two_snapshots_at_once_give_the_same_result(world: World) -> None:
    await world.make()
    world.agent("echo two > app.py; git commit -qam mine; echo three > app.py")
    other = replace(world, repository=world.another())
    found = await asyncio.gather(*(w.snapshot() for w in (world, other, world, other)))
    assert len(set(found)) == 1
    assert world.sh("git", "rev-parse", REF) == found[0].sha


@pytest.mark.parametrize("when", ["git.ref.before", "git.ref.after"])
async def test_a_snapshot_cut_short_at_the_ref_is_finished_by_the_next_call(world: World, when: str) -> None:
    class Killed(BaseException):
        pass

    def die(name: str) -> None:
        if name == when:
            raise Killed

    await world.make()
    world.agent("echo two > app.py; git commit -qam mine; echo three > app.py")
    whole = replace(world)
    world.repository = world.another(failpoint=die)
    with pytest.raises(Killed):
        await world.snapshot()
    snapshot = await whole.snapshot()
    assert world.sh(
        "git", "for-each-ref", "--format=%(refname) %(objectname)", "refs/loopwright"
    ).split() == [
        REF,
        snapshot.sha,
        f"{REF}-agent",
        snapshot.agent_sha,
    ]


async def test_an_earlier_snapshot_under_the_same_name_stays_reachable(world: World) -> None:
    await world.make()
    world.agent("echo two > app.py")
    first = await world.snapshot()
    world.agent("echo three > app.py")
    second = await world.snapshot()
    assert first.sha != second.sha
    assert world.sh("git", "rev-parse", f"{REF}-was-{first.sha[:12]}") == first.sha


async def test_a_workspace_without_changes_gives_an_empty_snapshot(world: World) -> None:
    await world.make()
    snapshot = await world.snapshot()
    assert (snapshot.changed, snapshot.insertions) == ((), 0)
    assert snapshot.tree == world.sh("git", "rev-parse", "HEAD^{tree}")


async def test_a_file_changed_in_place_with_its_old_times_is_seen(world: World) -> None:
    await world.make()
    world.agent("touch -r app.py stamp; printf \"print('two')\\n\" > app.py; touch -r stamp app.py; rm stamp")
    assert (await world.snapshot()).changed == ("app.py",)


async def test_modes_and_links_are_kept(world: World) -> None:
    await world.make()
    world.agent("chmod +x app.py; ln -s /etc/passwd leak; ln -s docs folder")
    snapshot = await world.snapshot()
    listed = world.sh("git", "ls-tree", snapshot.sha, "app.py", "leak", "folder")
    assert [line.split()[0] for line in listed.splitlines()] == ["100755", "120000", "120000"]
    assert world.sh("git", "show", f"{snapshot.sha}:leak") == "/etc/passwd"


async def test_strange_names_are_kept(world: World) -> None:
    await world.make()
    (world.workspace / "new\nline").write_text("x")
    (world.workspace / ":(exclude)star*").write_text("x")
    Path(bytes(world.workspace / "x").decode() + "\udcff").write_text("x")
    snapshot = await world.snapshot()
    assert len(snapshot.changed) == 3
    assert "new\nline" in snapshot.changed
    "".join(snapshot.changed).encode()


async def test_ignored_files_stay_out_and_tracked_ones_stay_in(
    make_world: Callable[..., World], tmp_path: Path
) -> None:
    user = start_repository(tmp_path / "user", {"kept.log": "1", "app.py": "1"})
    write(user, {".gitignore": "*.log\n"})
    sh(user, "git", "add", ".gitignore")
    sh(user, "git", "commit", "-qm", "ignore")
    world = make_world(user)
    await world.make()
    world.agent("echo 2 > kept.log; echo new > new.log")
    assert (await world.snapshot()).changed == ("kept.log",)


async def test_what_the_user_ignores_outside_the_repository_stays_out_too(
    world: World, own_git_configuration: Path
) -> None:
    write(own_git_configuration.parent, {"git/ignore": "*.swp\n"})
    write(world.user, {".git/info/exclude": "/local-notes\n"})
    await world.make()
    world.agent("touch a.swp local-notes b.txt")
    assert (await world.snapshot()).changed == ("b.txt",)


COPIED_MISDEEDS = {
    "nothing": "true",
    "force": "git add -A -f && git commit -qm everything",
    "gitignore": "echo '!.env' > .gitignore; echo '!.env' > .git/info/exclude",
    "edited": "echo MORE=1 >> .env",
    "folder": "rm .env; mkdir .env; echo x > .env/file; rm .gitignore",
    "intent": "git add -N -f .env; rm .gitignore",
}


@pytest.mark.parametrize("script", COPIED_MISDEEDS.values(), ids=COPIED_MISDEEDS.keys())
async def test_copied_files_are_never_in_a_snapshot(world: World, script: str) -> None:
    write(world.user, {".env": "KEY=1\n", "notes.local": "private\n"})
    await world.make(copy_files=[".env", "*.local"])
    world.agent(f"echo two > app.py; {script}")
    snapshot = await world.snapshot()
    assert "app.py" in snapshot.changed
    assert not [name for name in world.files_at(snapshot.sha) if name.startswith((".env", "notes"))]


async def test_many_copied_files_are_kept_out_as_well(world: World) -> None:
    write(world.user, {f"data/{n}.txt": str(n) for n in range(300)})
    await world.make(copy_files=["data"])
    world.agent("echo two > app.py; echo changed > data/7.txt; echo mine > data/mine.txt")
    assert set((await world.snapshot()).changed) == {"app.py", "data/mine.txt"}


async def test_loopwright_s_own_files_keep_what_the_base_has(
    make_world: Callable[..., World], tmp_path: Path
) -> None:
    user = start_repository(tmp_path / "user", {".loopwright/config.toml": "strict = true\n", "app.py": "1"})
    world = make_world(user)
    await world.make()
    world.agent(
        "echo 'strict = false' > .loopwright/config.toml; mkdir -p sub/.loopwright;"
        "touch .loopwright/token sub/.loopwright/log; echo 2 > app.py; git add -A -f; git commit -qm all"
    )
    snapshot = await world.snapshot()
    assert snapshot.changed == ("app.py",)
    world.agent("rm -rf .loopwright")
    assert (await world.snapshot()).tree == snapshot.tree


async def test_a_workspace_that_is_gone_or_became_a_link_is_an_error(world: World) -> None:
    await world.make()
    world.workspace.rename(world.home / "moved")
    with pytest.raises(GitFailed, match="is gone"):
        await world.snapshot()
    world.workspace.symlink_to(world.user)
    with pytest.raises(GitFailed, match="no longer a folder"):
        await world.snapshot()


async def test_only_our_own_refs_can_be_written(world: World) -> None:
    await world.make()
    for ref in ("refs/heads/trunk", "refs/loopwright/../heads/trunk", "refs/loopwright/a.lock", "HEAD"):
        with pytest.raises(GitFailed, match="not a ref"):
            await world.snapshot(ref=ref)


async def test_work_on_a_moved_base_is_compared_with_that_base(world: World) -> None:
    await world.make()
    world.agent("echo two > app.py")
    first = await world.snapshot()
    again = await world.snapshot(2, base_sha=first.sha)
    assert again.changed == ()


async def test_what_a_later_base_tracks_is_tracked_although_it_is_ignored(world: World) -> None:
    await world.make()
    world.agent("echo kept > kept.log")
    write(world.user, {"kept.log": "kept\n"})
    world.sh("git", "add", "-f", "kept.log")
    world.sh("git", "commit", "-qm", "kept")
    later = world.sh("git", "rev-parse", "HEAD")
    assert (await world.snapshot(base_sha=later)).changed == ()


async def test_the_user_s_checkout_and_index_are_left_alone(world: World) -> None:
    write(world.user, {"app.py": "dirty\n", "untracked": "x"})
    index = (world.user / ".git/index").read_bytes()
    config = (world.user / ".git/config").read_bytes()
    await world.make()
    world.agent("echo two > app.py")
    snapshot = await world.snapshot()
    await world.repository.candidate(
        tip=world.base_sha, attempt_sha=snapshot.sha, subject="land", trailers=trailers(), at=AT
    )
    assert (world.user / ".git/index").read_bytes() == index
    assert (world.user / ".git/config").read_bytes() == config
    assert (world.user / "app.py").read_text() == "dirty\n"
    assert not (world.user / ".git/FETCH_HEAD").exists()


async def test_unused_objects_of_our_own_can_be_tidied_without_harm(world: World) -> None:
    await world.make()
    world.agent("echo two > app.py")
    snapshot = await world.snapshot()
    left_over = world.home / "git/proj_1.git/scratch/killed"
    write(left_over, {"HEAD": "x"})
    os.utime(left_over, (0, 0))
    await world.repository.tidy()
    assert not left_over.exists()
    sh(world.home, "rm", "-rf", str(world.home / "git"))
    world.sh("git", "fsck", "--strict")
    assert world.sh("git", "show", f"{snapshot.sha}:app.py") == "two"


async def test_an_odd_but_whole_commit_of_the_agent_is_kept(world: World) -> None:
    await world.make()
    world.agent(
        "echo two > app.py; git add -A; tree=$(git write-tree);"
        " sha=$(printf 'tree %s\\nauthor <> 1 +0000\\ncommitter <> 1 +0000\\n\\nodd\\n' $tree"
        " | git hash-object -t commit -w --literally --stdin); git reset -q --soft $sha"
    )
    snapshot = await world.snapshot()
    assert snapshot.agent_sha is not None
    assert world.sh("git", "log", "-1", "--format=%s", snapshot.agent_sha) == "odd"


async def test_a_pin_that_git_packed_away_is_not_lost_when_it_is_replaced(world: World) -> None:
    await world.make()
    world.agent("echo two > app.py")
    first = await world.snapshot()
    world.sh("git", "pack-refs", "--all")
    world.agent("echo three > app.py")
    second = await world.snapshot()
    kept = world.sh("git", "for-each-ref", "--format=%(objectname)", "refs/loopwright").split()
    assert {first.sha, second.sha} <= set(kept)
