"""Private clones for agents and gates."""

import asyncio
import os
import stat
from pathlib import Path

import pytest
from tests.integration.git.world import AT, World, sh, start_repository, trailers, write
from tests.refusals import raises_code

from loopwright.adapters.git import workspace_env
from loopwright.core.values.errors import GitFailed, Refused


async def test_a_workspace_is_a_clean_clone_at_the_commit(world: World) -> None:
    await world.make()
    assert world.agent("git status --porcelain; git rev-parse HEAD; cat app.py") == (
        f"{world.base_sha}\nprint('one')"
    )
    assert world.agent("git log --format=%s") == "first"


async def test_a_workspace_has_no_hooks_and_no_remote(world: World) -> None:
    write(world.user, {".git/hooks/pre-commit": "#!/bin/sh\nexit 1\n"})
    (world.user / ".git/hooks/pre-commit").chmod(0o755)
    await world.make()
    assert not (world.workspace / ".git/hooks").exists()
    assert world.agent("git remote") == ""
    world.agent("echo two > app.py && git commit -qam two")


async def test_hooks_of_the_user_s_global_configuration_do_not_run_in_a_workspace(
    world: World, tmp_path: Path, own_git_configuration: Path
) -> None:
    write(tmp_path / "hooks", {"pre-commit": "#!/bin/sh\nexit 1\n"})
    (tmp_path / "hooks/pre-commit").chmod(0o755)
    with own_git_configuration.open("a") as file:
        file.write(f"[core]\n\thooksPath = {tmp_path}/hooks\n")
    await world.make()
    world.agent("echo two > app.py && git commit -qam two")


async def test_an_agent_can_commit_under_the_user_s_name(world: World) -> None:
    await world.make()
    world.agent("echo two > app.py && git commit -qam two")
    assert world.agent("git log -1 --format='%an <%ae>'") == "Ada <ada@example.org>"


async def test_without_a_name_in_the_configuration_a_name_of_our_own_is_used(
    world: World, own_git_configuration: Path
) -> None:
    own_git_configuration.write_text("")
    await world.make()
    world.agent("echo two > app.py && git commit -qam two")
    assert world.agent("git log -1 --format='%an <%ae>'") == "Loopwright <loopwright@localhost>"


async def test_git_never_looks_above_a_workspace_whose_git_dir_is_gone(world: World) -> None:
    start_repository(world.home, {"outer": "x"})
    await world.make()
    world.agent("rm -rf .git")
    env = dict(workspace_env(world.workspace))
    assert sh(world.workspace / "docs", "git", "rev-parse", "--git-dir", check=False, env=env) == ""
    assert sh(world.workspace / "docs", "git", "rev-parse", "--git-dir", check=False) != ""


async def test_making_a_finished_workspace_again_keeps_the_work_in_it(world: World) -> None:
    await world.make(marker="a")
    world.agent("echo two > app.py")
    await world.make(marker="a")
    assert (world.workspace / "app.py").read_text() == "two\n"


async def test_an_unfinished_workspace_is_made_anew(world: World) -> None:
    await world.make()
    records = list((world.home / "git/proj_1.git/records").iterdir())
    records[0].write_text(records[0].read_text().replace('"made"', '"unfinished"'))
    (world.workspace / "app.py").unlink()
    (world.workspace / "half").write_text("half")
    await world.make()
    assert world.agent("git status --porcelain") == ""
    assert not (world.workspace / "half").exists()


async def test_a_workspace_whose_making_is_cut_short_is_not_taken_for_finished(world: World) -> None:
    await world.repository.base()
    making = asyncio.create_task(world.make())
    git_dir = world.workspace / ".git"
    while not git_dir.exists():
        await asyncio.sleep(0)
    making.cancel()
    with pytest.raises(asyncio.CancelledError):
        await making
    with pytest.raises(GitFailed, match="not a finished workspace"):
        await world.snapshot()
    await world.make()
    assert world.agent("git status --porcelain") == ""


async def test_a_workspace_for_another_commit_replaces_the_old_one_and_keeps_its_work(world: World) -> None:
    await world.make()
    world.agent("echo precious > new.txt")
    write(world.user, {"app.py": "print('two')\n"})
    world.sh("git", "commit", "-qam", "second")
    await world.repository.make_workspace(world.workspace, world.sh("git", "rev-parse", "HEAD"))
    assert world.agent("cat app.py; ls") == "print('two')\napp.py\ndocs"
    [kept] = await world.repository.quarantined()
    assert world.sh("git", "show", f"{kept.sha}:new.txt") == "precious"


async def test_files_that_nobody_recorded_are_never_deleted(world: World) -> None:
    write(world.workspace, {"mine": "do not touch"})
    with pytest.raises(GitFailed, match="no record"):
        await world.make()
    assert (world.workspace / "mine").exists()


async def test_two_at_once_make_one_workspace(world: World) -> None:
    other = world.another()
    await asyncio.gather(world.make(), other.make_workspace(world.workspace, world.base_sha), world.make())
    assert world.agent("git status --porcelain") == ""
    assert (await world.snapshot()).changed == ()


async def test_many_workspaces_can_be_made_at_once(world: World) -> None:
    paths = [world.home / "workspaces" / f"att_{n}" for n in range(12)]
    await asyncio.gather(*(world.repository.make_workspace(path, world.base_sha) for path in paths))
    for path in paths:
        assert (path / "app.py").read_text() == "print('one')\n"


async def test_a_gate_tree_has_history_and_the_files_of_its_commit(world: World) -> None:
    await world.make()
    world.agent("echo two > app.py")
    snapshot = await world.snapshot()
    tree = world.home / "trees" / "gate_1"
    await world.repository.checkout(tree, snapshot.sha)
    assert sh(tree, "git", "log", "--format=%s") == "feat: do it\nfirst"
    assert (tree / "app.py").read_text() == "two\n"
    await world.repository.checkout(tree, world.base_sha)
    assert (tree / "app.py").read_text() == "print('one')\n"


# --- copied files ------------------------------------------------------------------------------------


async def test_untracked_files_are_copied_with_their_mode(world: World) -> None:
    write(world.user, {".env": "KEY=1", "docs/local.cfg": "x", "docs/deep/local.cfg": "y", "other": "z"})
    (world.user / ".env").chmod(0o600)
    await world.make(copy_files=[".env", "**/local.cfg"])
    assert stat.S_IMODE((world.workspace / ".env").stat().st_mode) == 0o600
    assert (world.workspace / "docs/local.cfg").read_text() == "x"
    assert (world.workspace / "docs/deep/local.cfg").read_text() == "y"
    assert not (world.workspace / "other").exists()


async def test_a_folder_of_untracked_files_is_copied_whole(world: World) -> None:
    write(world.user, {"certs/a.pem": "a", "certs/sub/b.pem": "b"})
    await world.make(copy_files=["certs"])
    assert (world.workspace / "certs/sub/b.pem").read_text() == "b"


async def test_tracked_files_are_not_copied(world: World) -> None:
    write(world.user, {"app.py": "changed but not committed"})
    await world.make(copy_files=["app.py"])
    assert (world.workspace / "app.py").read_text() == "print('one')\n"


async def test_no_link_is_followed_out_of_the_checkout(world: World, tmp_path: Path) -> None:
    write(tmp_path, {"outside/secret": "s", "outside/folder/x": "x"})
    (world.user / ".env").symlink_to(tmp_path / "outside/secret")
    (world.user / "linked").symlink_to(tmp_path / "outside/folder")
    (world.user / "inner").symlink_to("docs/readme.md")
    await world.make(copy_files=[".env", "linked", "linked/x", "inner"])
    assert not os.path.lexists(world.workspace / ".env")
    assert not os.path.lexists(world.workspace / "linked")
    assert (world.workspace / "inner").read_text() == "hello\n"


async def test_a_copied_file_does_not_pass_a_link_in_the_workspace(world: World, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (world.user / "conf").symlink_to(outside)
    world.sh("git", "add", "conf")
    world.sh("git", "commit", "-qm", "a link")
    with_link = world.sh("git", "rev-parse", "HEAD")
    world.sh("git", "rm", "-q", "conf")
    world.sh("git", "commit", "-qm", "no link")
    write(world.user, {"conf/.env": "KEY=1"})
    await world.repository.make_workspace(world.workspace, with_link, copy_files=["conf/.env"])
    assert (world.workspace / "conf").is_symlink()
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("pattern", ["../x", "/etc/passwd", ""])
async def test_a_pattern_that_leaves_the_project_is_refused(world: World, pattern: str) -> None:
    with raises_code("copy_files_outside"):
        await world.make(copy_files=[pattern])


# --- deleting ----------------------------------------------------------------------------------------


async def test_a_workspace_is_deleted_with_its_read_only_files(world: World) -> None:
    await world.make()
    world.agent("mkdir -p a/b && touch a/b/c && chmod 400 a/b/c && chmod 500 a/b a")
    await world.repository.remove_workspace(world.workspace)
    await world.repository.remove_workspace(world.workspace)
    assert not world.workspace.exists()
    assert list((world.home / "git/proj_1.git/records").iterdir()) == []
    assert list((world.home / "git/proj_1.git/indexes").iterdir()) == []


async def test_deleting_follows_no_link(world: World, tmp_path: Path) -> None:
    write(tmp_path, {"precious/file": "keep"})
    await world.make()
    world.agent(f"ln -s {tmp_path}/precious link")
    await world.repository.remove_workspace(world.workspace)
    assert (tmp_path / "precious/file").exists()
    world.workspace.symlink_to(tmp_path / "precious")
    await world.repository.remove_workspace(world.workspace)
    assert (tmp_path / "precious/file").exists()


async def test_only_workspaces_and_gate_trees_can_be_deleted(world: World, tmp_path: Path) -> None:
    (world.home / "workspaces").mkdir()
    (world.home / "workspaces" / "linked").symlink_to(world.user)
    for path in (
        world.user,
        world.home,
        world.home / "workspaces",
        world.home / "git" / "proj_1.git",
        world.home / "workspaces" / ".." / ".." / "user",
        world.home / "workspaces" / "linked" / "docs",
        tmp_path / "elsewhere",
    ):
        with pytest.raises(Refused):
            await world.repository.remove_workspace(path)
    assert (world.user / "docs/readme.md").exists()


async def test_a_workspace_outside_the_home_is_refused(world: World, tmp_path: Path) -> None:
    with raises_code("not_a_workspace"):
        await world.repository.make_workspace(tmp_path / "elsewhere", world.base_sha)


# --- a workspace that waits for its agent ------------------------------------------------------------


async def landed(world: World, files: dict[str, str]) -> str:
    """Let others land something; return where the branch is then."""
    write(world.user, files)
    world.sh("git", "add", "-A")
    world.sh("git", "commit", "-qm", "others")
    return world.sh("git", "rev-parse", "HEAD")


async def test_a_workspace_that_nobody_worked_in_follows_the_branch(world: World) -> None:
    assert await world.repository.make_workspace(world.workspace, world.base_sha, marker="att_1")
    write(world.workspace, {"build/cache": "from the setup"})
    inode = (world.workspace / "docs" / "readme.md").stat().st_ino
    now = await landed(world, {"app.py": "print('two')\n", "new/file.txt": "new\n"})
    assert await world.repository.make_workspace(world.workspace, now, marker="att_1")
    assert not await world.repository.make_workspace(world.workspace, now, marker="att_1")
    assert (world.workspace / "docs" / "readme.md").stat().st_ino == inode, "it was not made anew"
    assert world.agent("cat app.py new/file.txt build/cache") == "print('two')\nnew\nfrom the setup"
    assert world.agent("git status --porcelain; git rev-parse HEAD") == now
    assert await world.repository.quarantined() == []
    world.agent("echo three > app.py")
    snapshot = await world.repository.snapshot(
        world.workspace,
        base_sha=now,
        ref="refs/loopwright/attempts/p/t/1",
        subject="three",
        trailers=trailers(),
        at=AT,
    )
    assert snapshot.changed == ("app.py",)


async def test_a_workspace_that_its_setup_changed_is_made_anew_and_nothing_of_it_is_lost(
    world: World,
) -> None:
    await world.repository.make_workspace(world.workspace, world.base_sha, marker="att_1")
    world.agent("echo mine > app.py")
    now = await landed(world, {"app.py": "print('two')\n"})
    assert await world.repository.make_workspace(world.workspace, now, marker="att_1")
    assert world.agent("cat app.py; git status --porcelain") == "print('two')"
    [kept] = await world.repository.quarantined()
    assert world.sh("git", "show", f"{kept.sha}:app.py") == "mine"


@pytest.mark.parametrize(
    "script",
    [
        "git checkout -qb other",
        "git commit -q --allow-empty -m own",
        "rm -rf .git/refs/heads; mkdir elsewhere; ln -s ../../elsewhere .git/refs/heads",
        "git config core.fsmonitor 'touch ../tripped; false'; git config core.hooksPath .",
    ],
)
async def test_a_git_dir_that_a_setup_bent_is_not_trusted(world: World, script: str) -> None:
    await world.repository.make_workspace(world.workspace, world.base_sha, marker="att_1")
    world.agent(script)
    now = await landed(world, {"app.py": "print('two')\n"})
    assert await world.repository.make_workspace(world.workspace, now, marker="att_1")
    assert (world.workspace / "app.py").read_text() == "print('two')\n"
    assert not (world.workspace.parent / "tripped").exists()
    assert (world.workspace / ".git" / "refs" / "heads" / "work").read_text().strip() == now


async def test_a_workspace_that_gets_a_submodule_meanwhile_is_made_anew_with_it(
    world: World, tmp_path: Path
) -> None:
    other = start_repository(tmp_path / "other", {"lib.py": "1\n"})
    await world.repository.make_workspace(world.workspace, world.base_sha, marker="att_1")
    world.sh("git", "submodule", "add", "-q", str(other), "lib")
    world.sh("git", "commit", "-qm", "with lib")
    now = world.sh("git", "rev-parse", "HEAD")
    assert await world.repository.make_workspace(world.workspace, now, marker="att_1")
    assert (world.workspace / "lib" / "lib.py").read_text() == "1\n"


async def test_a_gate_s_tree_is_made_anew_whatever_is_there(world: World) -> None:
    tree = world.home / "trees" / "run_1"
    await world.repository.checkout(tree, world.base_sha)
    write(tree, {"left": "by a gate"})
    for record in (world.home / "git").glob("*.git/records/*.json"):
        record.write_text("")  # as a power cut may leave it
    now = await landed(world, {"app.py": "print('two')\n"})
    await world.repository.checkout(tree, now)
    assert sorted(one.name for one in tree.iterdir()) == [".git", ".gitignore", "app.py", "docs"]
