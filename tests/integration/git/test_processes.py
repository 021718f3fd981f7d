"""How git itself is run."""

import asyncio
import json
import os
import shutil
import subprocess
import time
from collections.abc import Awaitable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from tests.integration.git.world import ANY, AT, BRANCH, PLAN, TASK, World, trailers, write
from tests.refusals import raises_code
from tests.waiting import eventually_async

from loopwright.adapters.git.plumbing.runner import Git, own_env, user_env
from loopwright.adapters.git.plumbing.started import Started
from loopwright.core.values.errors import GitFailed

REF = f"refs/loopwright/attempts/{PLAN}/{TASK}/1"


async def test_a_machine_without_git_is_told_so(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with raises_code("git_missing") as caught:
        await world.repository.base()
    assert "Install git 2.38" in str(caught.value.hint)


async def test_a_git_that_is_too_old_is_told_so(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"bin/git": "#!/bin/sh\necho git version 2.37.9\n"})
    (tmp_path / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    with raises_code("git_too_old") as caught:
        await world.repository.base()
    assert "2.38" in str(caught.value.hint)


async def test_variables_from_outside_do_not_bend_git(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"):
        monkeypatch.setenv(name, str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Mallory")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    await world.repository.make_workspace(world.workspace, world.base_sha)
    (world.workspace / "app.py").write_text("two")
    await world.snapshot()
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"):
        monkeypatch.delenv(name)
    assert world.sh("git", "log", "-1", "--format=%an", REF) == "Ada"


def test_no_program_is_found_relative_to_where_git_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", "bin", "/usr/bin"]))
    assert user_env()["PATH"] == "/usr/bin"
    assert own_env(Path("/x"))["PATH"] == "/usr/bin"


async def test_hooks_and_monitors_of_the_user_s_repository_do_not_run(world: World, tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    for hook in ("reference-transaction", "post-index-change", "pre-auto-gc"):
        write(world.user, {f".git/hooks/{hook}": f"#!/bin/sh\ntouch {sprung}\n"})
        (world.user / ".git/hooks" / hook).chmod(0o755)
    world.sh("git", "config", "core.fsmonitor", str(world.user / ".git/hooks/pre-auto-gc"))
    sprung.unlink(missing_ok=True)
    await world.repository.base()
    await world.repository.ensure_branch(BRANCH, world.base_sha)
    await world.make()
    (world.workspace / "app.py").write_text("two")
    await world.snapshot()
    await world.repository.tripwire()
    assert not sprung.exists()


async def test_git_s_own_words_are_in_the_error(world: World) -> None:
    with pytest.raises(GitFailed, match=r"read-tree failed in .*: fatal: failed to unpack tree object"):
        await world.repository.make_workspace(world.workspace, "a" * 40)
    with pytest.raises(GitFailed, match="not a full commit id"):
        await world.repository.make_workspace(world.workspace, "HEAD")


# --- locks -------------------------------------------------------------------------------------------


async def test_a_lock_that_is_let_go_soon_is_waited_for(world: World) -> None:
    await world.repository.base()
    lock = world.user / ".git" / "refs" / "heads" / f"{BRANCH}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    making = asyncio.create_task(world.repository.ensure_branch(BRANCH, world.base_sha))
    await eventually_async(lambda: world.repository.git.processes >= 5)
    lock.unlink()
    assert await making == world.base_sha


async def test_a_lock_that_stays_is_named(world: World) -> None:
    await world.make()
    (world.workspace / "app.py").write_text("two")
    lock = world.user / ".git" / f"{REF}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    with pytest.raises(GitFailed, match=r"/1\.lock is held by another git.* delete that file"):
        await world.snapshot()
    assert lock.exists()


KILLED = """#!/bin/bash
case "$*" in
*update-ref*--stdin)
    if rm {flag} 2>/dev/null; then
        exec 3> >(exec {git} "$@")
        printf 'start\\n%s\\nprepare\\n' "$(cat)" >&3
        until test -e {lock}; do :; done
        kill -9 $!
        kill -9 $$
    fi ;;
esac
exec {git} "$@"
"""
"""A git that is killed once, with the locks of its refs taken."""


async def test_a_plan_branch_is_created_although_git_is_killed_over_it(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag, pin = tmp_path / "flag", world.user / f".git/refs/loopwright/branches/{PLAN}/main.lock"
    git = KILLED.format(flag=flag, git=shutil.which("git"), lock=pin)
    write(tmp_path, {"bin/git": git, "flag": ""})
    (tmp_path / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    assert await world.repository.ensure_branch(BRANCH, world.base_sha) == world.base_sha
    assert not flag.exists()
    assert (await world.repository.standing(BRANCH)).change == "", "its pin was made as well"
    assert list(world.user.glob(".git/**/*.lock")) == []
    await world.repository.tidy()
    assert list((world.home / "git/proj_1.git/started").iterdir()) == []


def test_only_a_lock_that_a_dead_git_of_ours_can_have_made_is_removed(tmp_path: Path) -> None:
    started = Started(tmp_path / "started")
    ours, other = tmp_path / "ours.lock", tmp_path / "other.lock"
    made_at = time.time() - 30

    def lock(age: float = 0.0) -> None:
        for path in (ours, other):
            path.touch()
            os.utime(path, (made_at - age, made_at - age))

    with subprocess.Popen(["sleep", "1000"]) as process:
        note = started.note(process.pid, [ours])
        assert note is not None
        about = json.loads(note.read_text())
        note.write_text(json.dumps({**about, "at": made_at - 1}))
        lock()
        assert not started.remove_left([ours, other]), "it lives"
        process.kill()
    lock(age=60)
    assert not started.remove_left([ours, other]), "that was there before"
    lock()
    assert not started.remove_left([other]), "it is another's"
    assert started.remove_left([ours, other])
    assert (ours.exists(), other.exists()) == (False, True)
    assert not started.remove_left([ours])
    # Its number may belong to another process by now.
    note.write_text(json.dumps({**about, "at": made_at - 1, "pid": os.getpid(), "started": 1}))
    lock()
    assert started.remove_left([ours])
    note.write_text(json.dumps({**about, "at": made_at - 90, "died": made_at - 60}))
    lock()
    assert not started.remove_left([ours]), "it was made after its end"
    ours.unlink()
    started.tidy()
    assert not note.exists()


async def test_an_old_lock_of_the_user_s_is_named_and_left_alone(world: World) -> None:
    await world.make()
    (world.workspace / "app.py").write_text("two")
    ref = "refs/loopwright/quarantine/p/t/1"
    await world.repository.quarantine(world.workspace, ref=ref, reason="left", at=AT)
    lock = world.user / ".git" / "packed-refs.lock"
    lock.touch()
    os.utime(lock, (time.time() - 300, time.time() - 300))
    with pytest.raises(GitFailed, match=r"packed-refs\.lock is held"):
        await world.repository.drop_quarantine(AT + timedelta(days=1))
    assert lock.exists()


# --- ending ------------------------------------------------------------------------------------------


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_a_cancelled_command_leaves_no_process(world: World) -> None:
    git = Git()
    await git.run("version", env=user_env())
    waiting = asyncio.create_task(
        git.run("-c", "alias.hang=!sleep 1000", "hang", env=user_env(), cwd=world.user)
    )
    mine = psutil.Process()

    def sleeping() -> list[psutil.Process]:
        found = []
        for child in mine.children(recursive=True):
            with suppress(psutil.Error):  # what other tests left may end just now
                found += [child] if child.cmdline()[-1:] == ["1000"] else []
        return found

    found = await eventually_async(sleeping)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    # Killed it is by now; when it is gone is the kernel's affair.
    await eventually_async(lambda: not any(map(_is_alive, found)))


# --- cost --------------------------------------------------------------------------------------------


async def test_each_operation_takes_few_processes(world: World, tmp_path: Path) -> None:
    """The numbers are a budget: raise one only with a reason."""
    repository = world.repository
    counts: dict[str, int] = {}

    async def count(name: str, work: Awaitable[object]) -> object:
        before = repository.git.processes
        found = await work
        counts[name] = repository.git.processes - before
        return found

    await repository.git.run("version", env=user_env())  # asked by the first command of a process
    await count("first base", repository.base())
    await count("base", repository.base())
    await count("ensure_branch", repository.ensure_branch(BRANCH, world.base_sha))
    await count("make_workspace", world.make())
    world.agent("echo two > app.py; echo new > new.txt")
    await count("snapshot", world.snapshot())
    await count("snapshot again", world.snapshot())
    snapshot = await world.snapshot()
    world.agent("git add -A; git commit -qm mine")
    await count("snapshot with commits of the agent", world.snapshot())
    made = await repository.candidate(
        tip=world.base_sha,
        attempt_sha=snapshot.sha,
        subject="land",
        trailers=trailers(),
        at=AT + timedelta(1),
    )
    await count(
        "candidate",
        repository.candidate(
            tip=world.base_sha, attempt_sha=snapshot.sha, subject="land", trailers=trailers(), at=AT
        ),
    )
    await count("checkout", repository.checkout(world.home / "trees" / "g", made.sha))
    await count("tip", repository.tip(BRANCH))
    await count(
        "landed",
        repository.landed(world.base_sha, since=world.base_sha, task_id=TASK, among=ANY, reverts=ANY),
    )
    await count("advance", repository.advance(BRANCH, new=made.sha, old=world.base_sha))
    await count("tripwire", repository.tripwire())
    await count("proven", repository.proven(snapshot.sha, made.sha))
    await count("remove_workspace", repository.remove_workspace(world.workspace))
    assert counts == {
        "first base": 3,
        "base": 3,
        "ensure_branch": 2,
        "make_workspace": 1,
        "snapshot": 6,
        "snapshot again": 4,
        "snapshot with commits of the agent": 7,
        "candidate": 1,
        "checkout": 1,
        "tip": 0,
        "landed": 0,
        "advance": 1,
        "tripwire": 1,
        "proven": 0,
        "remove_workspace": 0,
    }
