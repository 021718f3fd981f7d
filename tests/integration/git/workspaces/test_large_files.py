"""Git LFS: nothing is downloaded a second time, and pointers survive where git-lfs is not installed."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.git.world import World, sh, start_repository, write

needs_lfs = pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
FILTER = (
    '[filter "lfs"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n'
    "\tprocess = git-lfs filter-process\n\trequired = true\n"
)
POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 5\n"
)


@pytest.fixture
def lfs_world(make_world: Callable[..., World], tmp_path: Path, own_git_configuration: Path) -> World:
    """Return a user with one large file."""
    with own_git_configuration.open("a") as file:
        file.write(FILTER)
    return make_world(
        start_repository(
            tmp_path / "user", {".gitattributes": "*.bin filter=lfs -text\n", "a.bin": "large content"}
        )
    )


@needs_lfs
async def test_large_files_are_there_without_a_download(lfs_world: World) -> None:
    await lfs_world.make()
    assert (lfs_world.workspace / "a.bin").read_text() == "large content"
    assert lfs_world.agent("git status --porcelain") == ""
    assert (await lfs_world.snapshot()).changed == ()


@needs_lfs
async def test_a_new_large_file_becomes_a_pointer_and_its_content_reaches_the_user(lfs_world: World) -> None:
    await lfs_world.make()
    lfs_world.agent("echo more > b.bin; echo changed > a.bin")
    snapshot = await lfs_world.snapshot()
    assert lfs_world.sh("git", "show", f"{snapshot.sha}:b.bin").startswith("version https://git-lfs")
    lfs_world.sh("git", "checkout", "-q", snapshot.sha)
    assert (lfs_world.user / "b.bin").read_text() == "more\n"
    assert (lfs_world.user / "a.bin").read_text() == "changed\n"


@needs_lfs
async def test_a_large_file_that_is_not_on_this_machine_stays_a_pointer(lfs_world: World) -> None:
    write(lfs_world.user, {".lfsconfig": "[lfs]\n\turl = http://127.0.0.1:9/none\n"})
    lfs_world.sh("git", "add", "-A")
    lfs_world.sh("git", "commit", "-qm", "configured")
    sh(lfs_world.user, "rm", "-rf", ".git/lfs")
    lfs_world.base_sha = lfs_world.sh("git", "rev-parse", "HEAD")
    await lfs_world.make()
    assert (lfs_world.workspace / "a.bin").read_text().startswith("version https://git-lfs")
    lfs_world.agent("echo x > c.txt")
    assert (await lfs_world.snapshot()).changed == ("c.txt",)


@needs_lfs
async def test_a_storage_of_the_user_s_own_is_used(lfs_world: World, tmp_path: Path) -> None:
    (lfs_world.user / ".git/lfs").rename(tmp_path / "storage")
    lfs_world.sh("git", "config", "lfs.storage", str(tmp_path / "storage"))
    await lfs_world.make()
    assert (lfs_world.workspace / "a.bin").read_text() == "large content"
    lfs_world.agent("echo more > b.bin")
    await lfs_world.snapshot()
    assert not (lfs_world.user / ".git/lfs").exists()


async def test_without_git_lfs_pointers_pass_through_unchanged(
    make_world: Callable[..., World],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    own_git_configuration: Path,
) -> None:
    world = make_world(
        start_repository(tmp_path / "user", {".gitattributes": "*.bin filter=lfs -text\n", "a.bin": POINTER})
    )
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("git", "bash", "sh"):
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(programs))
    with own_git_configuration.open("a") as file:
        file.write(FILTER)
    await world.make()
    assert (world.workspace / "a.bin").read_text() == POINTER
    (world.workspace / "new.txt").write_text("x")
    snapshot = await world.snapshot()
    assert snapshot.changed == ("new.txt",)
