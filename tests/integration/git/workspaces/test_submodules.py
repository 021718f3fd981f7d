"""Submodules in workspaces: from the user's own clones, and never trusted."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.git.world import PLAN, TASK, World, sh, start_repository, write

REF = f"refs/loopwright/attempts/{PLAN}/{TASK}/1"


@pytest.fixture
def world(make_world: Callable[..., World], tmp_path: Path) -> World:
    """Return a user whose repository has a submodule that has a submodule."""
    inner = start_repository(tmp_path / "origin" / "inner", {"inner.py": "1\n"})
    library = start_repository(tmp_path / "origin" / "library", {"lib.py": "1\n"})
    sh(library, "git", "submodule", "--quiet", "add", str(inner), "deps/inner")
    sh(library, "git", "commit", "-qm", "inner")
    user = start_repository(tmp_path / "user", {"app.py": "1\n"})
    sh(user, "git", "submodule", "--quiet", "add", "--name", "the library", str(library), "libs/library")
    sh(user, "git", "commit", "-qm", "library")
    sh(user, "git", "submodule", "--quiet", "update", "--init", "--recursive")
    (tmp_path / "origin").rename(tmp_path / "offline")
    return make_world(user)


async def test_submodules_are_set_up_without_the_network(world: World) -> None:
    await world.make()
    assert (world.workspace / "libs/library/lib.py").read_text() == "1\n"
    assert (world.workspace / "libs/library/deps/inner/inner.py").read_text() == "1\n"
    assert world.agent("git status --porcelain --ignore-submodules=none; git -C libs/library remote") == ""
    assert (await world.snapshot()).changed == ()


async def test_a_submodule_that_the_user_did_not_check_out_is_found_in_their_git_dir(world: World) -> None:
    world.sh("git", "submodule", "--quiet", "deinit", "-f", "libs/library")
    await world.make()
    assert (world.workspace / "libs/library/lib.py").exists()


async def test_a_submodule_without_a_local_clone_stays_empty(world: World) -> None:
    world.sh("git", "submodule", "--quiet", "deinit", "-f", "libs/library")
    sh(world.user, "rm", "-rf", ".git/modules")
    await world.make()
    assert list((world.workspace / "libs/library").iterdir()) == []
    world.agent("echo 2 > app.py")
    assert (await world.snapshot()).changed == ("app.py",)


async def test_work_committed_in_a_submodule_moves_its_pointer_and_is_pinned_there(world: World) -> None:
    await world.make()
    world.agent("cd libs/library; echo 2 > lib.py; git commit -qam mine")
    sha = world.agent("git -C libs/library rev-parse HEAD")
    snapshot = await world.snapshot()
    assert snapshot.changed == ("libs/library",)
    assert world.sh("git", "rev-parse", f"{REF}:libs/library") == sha
    assert sh(world.user / "libs/library", "git", "show", f"{REF}-agent:lib.py") == "2"


async def test_uncommitted_work_in_a_submodule_is_committed_and_pinned_there(world: World) -> None:
    await world.make()
    world.agent(
        "cd libs/library; echo 2 > lib.py; git commit -qam mine; echo 3 > lib.py; echo 4 > deps/inner/inner.py"
    )
    snapshot = await world.snapshot()
    assert await world.snapshot() == snapshot
    library, inner = world.user / "libs/library", world.user / "libs/library/deps/inner"
    pointer = world.sh("git", "rev-parse", f"{REF}:libs/library")
    assert sh(library, "git", "show", f"{pointer}:lib.py") == "3"
    assert sh(library, "git", "log", "--format=%s", "-2", pointer) == "feat: do it\nmine"
    below = sh(library, "git", "rev-parse", f"{pointer}:deps/inner")
    assert sh(inner, "git", "show", f"{below}:inner.py") == "4"
    world.sh("git", "fsck", "--strict")


async def test_a_gate_tree_of_a_moved_pointer_has_the_new_files(world: World) -> None:
    await world.make()
    world.agent("echo 2 > libs/library/lib.py")
    snapshot = await world.snapshot()
    tree = world.home / "trees" / "gate"
    await world.repository.checkout(tree, snapshot.sha)
    assert (tree / "libs/library/lib.py").read_text() == "2\n"


async def test_a_submodule_without_its_git_dir_is_still_a_submodule(world: World) -> None:
    await world.make()
    world.agent("rm -rf libs/library/.git; echo 2 > libs/library/lib.py")
    assert (await world.snapshot()).changed == ("libs/library",)


async def test_a_removed_submodule_is_removed(world: World) -> None:
    await world.make()
    world.agent("git rm -qf libs/library; rm -rf libs")
    snapshot = await world.snapshot()
    assert set(snapshot.changed) == {".gitmodules", "libs/library"}
    assert world.files_at(snapshot.sha) == [".gitmodules", "app.py"]


async def test_a_submodule_that_became_a_file_or_a_link_is_not_followed(world: World, tmp_path: Path) -> None:
    write(tmp_path, {"outside/library/secret": "s"})
    await world.make()
    world.agent("rm -rf libs/library; echo plain > libs/library")
    snapshot = await world.snapshot()
    assert world.sh("git", "show", f"{snapshot.sha}:libs/library") == "plain"
    world.agent(f"rm -rf libs; ln -s {tmp_path}/outside libs")
    snapshot = await world.snapshot()
    assert world.files_at(snapshot.sha) == [".gitmodules", "app.py", "libs"]


@pytest.mark.parametrize("where", ["libs/library", "libs/library/deps/inner"])
async def test_no_program_planted_in_a_submodule_ever_runs(world: World, tmp_path: Path, where: str) -> None:
    trap, sprung = tmp_path / "trap", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\n")
    trap.chmod(0o755)
    await world.make()
    world.agent(
        f"cd {where}; git config core.fsmonitor {trap}; echo 2 > new; git commit -qam x --allow-empty"
    )
    world.agent("git config -f .gitmodules submodule.x.ignore none; echo 2 > app.py")
    sprung.unlink(missing_ok=True)
    snapshot = await world.snapshot()
    assert not sprung.exists()
    assert "libs/library" in snapshot.changed
    world.agent("git status --ignore-submodules=none")
    assert sprung.exists(), "the trap is no trap"


async def test_nothing_outside_of_a_submodule_is_read_through_its_git_dir(
    world: World, tmp_path: Path
) -> None:
    hidden = start_repository(tmp_path / "hidden", {"secret": "s"})
    sha = sh(hidden, "git", "rev-parse", "HEAD")
    await world.make()
    world.agent(
        f"cd libs/library; echo 2 > lib.py; rm -r .git/refs/heads; ln -s {hidden}/.git/refs/heads .git/refs/;"
        f" for d in {hidden}/.git/objects/??; do ln -s $d .git/objects/; done; echo ref: refs/heads/trunk > .git/HEAD"
    )
    snapshot = await world.snapshot()
    assert snapshot.refused.startswith("libs/library/.git/")
    library = world.user / "libs/library"
    assert sh(library, "git", "show", f"{world.sh('git', 'rev-parse', f'{REF}:libs/library')}:lib.py") == "2"
    assert sha not in sh(library, "git", "cat-file", "--batch-check", "--batch-all-objects")


async def test_a_git_dir_that_git_moved_into_that_of_the_workspace_is_no_way_out(world: World) -> None:
    await world.make()
    world.agent("echo 2 > libs/library/lib.py; git submodule --quiet absorbgitdirs 2>/dev/null")
    assert (world.workspace / "libs/library/.git").is_file()
    snapshot = await world.snapshot()
    assert (snapshot.refused, snapshot.changed) == ("", ("libs/library",))


async def test_a_git_dir_planted_in_an_empty_submodule_is_never_used(world: World, tmp_path: Path) -> None:
    world.sh("git", "submodule", "--quiet", "deinit", "-f", "libs/library")
    sh(world.user, "rm", "-rf", ".git/modules")
    trap, sprung = tmp_path / "trap", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\n")
    trap.chmod(0o755)
    await world.make()
    world.agent(
        f"cd libs/library; git init -q; touch f; git add f; git commit -qm f; git config core.fsmonitor {trap}"
    )
    sprung.unlink(missing_ok=True)
    assert (await world.snapshot()).changed == ()
    assert not sprung.exists()
