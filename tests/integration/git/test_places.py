"""Every kind of repository that a user may have."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.git.world import AT, BRANCH, World, sh, start_repository, trailers, write
from tests.refusals import raises_code
from tests.wording_plugin import Wording

from loopwright.adapters.git import GitRepository
from loopwright.core.values.errors import NotARepository


async def whole_way(world: World, prefix: str = "") -> None:
    """Make a workspace, change something, and land it."""
    repository = world.repository
    base = await repository.base()
    assert base.sha == world.base_sha
    await repository.ensure_branch(BRANCH, base.sha)
    await world.make()
    world.agent(f"echo two > {prefix}app.py")
    snapshot = await world.snapshot()
    assert snapshot.changed == (f"{prefix}app.py",)
    made = await repository.candidate(
        tip=base.sha, attempt_sha=snapshot.sha, subject="land", trailers=trailers(), at=AT
    )
    assert await repository.advance(BRANCH, new=made.sha, old=base.sha)
    assert world.sh("git", "show", f"{BRANCH}:{prefix}app.py") == "two"
    assert await repository.file_at(made.sha, "app.py") == "two\n"


async def test_a_plain_repository_whose_branch_is_not_main(world: World) -> None:
    assert (await world.repository.base()).ref == "trunk"
    await whole_way(world)


async def test_a_detached_head(world: World) -> None:
    world.sh("git", "checkout", "-q", "--detach")
    assert (await world.repository.base()).ref == "HEAD"
    await whole_way(world)


async def test_a_given_base(world: World) -> None:
    world.sh("git", "tag", "v1")
    write(world.user, {"app.py": "2"})
    world.sh("git", "commit", "-qam", "second")
    base = await world.repository.base("v1")
    assert (base.ref, base.sha) == ("v1", world.base_sha)
    for unknown in ("nowhere", "--all", ""):
        with raises_code("commit_not_found"):
            await world.repository.base(unknown)


async def test_a_dirty_checkout_is_named_and_not_included(world: World) -> None:
    write(world.user, {"app.py": "dirty", "new/file": "x", ".loopwright/state": "ours", "a.log": "ignored"})
    world.sh("git", "rm", "-q", "--cached", "docs/readme.md")
    base = await world.repository.base()
    assert base.dirty == ("app.py", "docs/readme.md", "new/file")
    await world.make()
    assert (world.workspace / "app.py").read_text() == "print('one')\n"
    assert (world.user / "app.py").read_text() == "dirty"


async def test_a_folder_inside_a_repository(make_world: Callable[..., World], tmp_path: Path) -> None:
    start_repository(tmp_path / "user", {"sub/app.py": "1", "top": "1"})
    write(tmp_path, {"user/sub/.env": "KEY=1", "user/.env": "OTHER=1"})
    world = make_world(tmp_path / "user" / "sub")
    assert await world.repository.prefix() == "sub/"
    await world.make(copy_files=[".env"])
    assert (world.workspace / "sub/.env").exists()
    assert not (world.workspace / ".env").exists()
    await world.repository.remove_workspace(world.workspace)
    world.user = tmp_path / "user"
    await whole_way(world, "sub/")


async def test_a_linked_worktree(make_world: Callable[..., World], tmp_path: Path) -> None:
    user = start_repository(tmp_path / "user", {"app.py": "1"})
    sh(user, "git", "worktree", "add", "-q", str(tmp_path / "linked"))
    world = make_world(tmp_path / "linked")
    assert (await world.repository.base()).ref == "linked"
    await whole_way(world)


async def test_a_submodule_as_the_project(make_world: Callable[..., World], tmp_path: Path) -> None:
    library = start_repository(tmp_path / "library", {"app.py": "1"})
    outer = start_repository(tmp_path / "outer", {"x": "1"})
    sh(outer, "git", "submodule", "--quiet", "add", str(library), "library")
    sh(outer, "git", "commit", "-qm", "submodule")
    await whole_way(make_world(outer / "library"))


async def test_a_shallow_clone(make_world: Callable[..., World], tmp_path: Path) -> None:
    full = start_repository(tmp_path / "full", {"app.py": "0"})
    write(full, {"app.py": "1"})
    sh(full, "git", "commit", "-qam", "second")
    sh(tmp_path, "git", "clone", "-q", "--depth=1", f"file://{full}", "user")
    world = make_world(tmp_path / "user")
    await whole_way(world)
    assert world.agent("git log --format=%s") == "second"
    world.agent("git commit -qam mine")
    assert (await world.snapshot()).agent_sha is not None
    world.sh("git", "fsck", "--strict")


async def test_a_bare_repository(make_world: Callable[..., World], tmp_path: Path) -> None:
    full = start_repository(tmp_path / "full", {"app.py": "0"})
    sh(tmp_path, "git", "clone", "-q", "--bare", str(full), "user.git")
    world = make_world(tmp_path / "user.git")
    base = await world.repository.base()
    assert (base.ref, base.dirty) == ("trunk", ())
    before = await world.repository.tripwire()
    await whole_way(world)
    after = await world.repository.tripwire()
    assert after == before
    assert not await world.repository.stray_patch(tmp_path / "patch", before, after)


async def test_a_repository_with_sha256_ids(make_world: Callable[..., World], tmp_path: Path) -> None:
    user = start_repository(tmp_path / "user", {"app.py": "1"}, "--object-format=sha256")
    world = make_world(user)
    assert len(world.base_sha) == 64
    await whole_way(world)
    world.agent("git init -q --object-format=sha256 nested; touch nested/f; rm app.py; mkfifo app.py")
    assert set((await world.snapshot(2)).changed) == {"app.py", "nested/f"}


async def test_a_repository_that_borrows_objects_itself(
    make_world: Callable[..., World], tmp_path: Path
) -> None:
    full = start_repository(tmp_path / "full", {"app.py": "0"})
    sh(tmp_path, "git", "clone", "-q", "--shared", str(full), "user")
    await whole_way(make_world(tmp_path / "user"))


async def test_a_partial_clone(make_world: Callable[..., World], tmp_path: Path) -> None:
    full = start_repository(tmp_path / "full", {"app.py": "0"})
    sh(full, "git", "config", "uploadpack.allowFilter", "true")
    write(full, {"app.py": "1"})
    sh(full, "git", "commit", "-qam", "second")
    sh(tmp_path, "git", "clone", "-q", "--filter=blob:none", f"file://{full}", "user")
    full.rename(tmp_path / "offline")
    await whole_way(make_world(tmp_path / "user"))


async def test_a_path_with_spaces_and_odd_letters(tmp_path: Path) -> None:
    user = start_repository(tmp_path / 'a "b" ü\\c', {"app.py": "1"})
    home = tmp_path / "the home: ü"
    home.mkdir()
    repository = GitRepository(user, project_id="proj_1", home=home)
    await whole_way(
        World(user=user, home=home, repository=repository, base_sha=sh(user, "git", "rev-parse", "HEAD"))
    )


async def test_a_repository_that_moved_is_found_again(world: World) -> None:
    await world.make()
    moved = world.user.rename(world.user.parent / "moved")
    repository = GitRepository(moved, project_id="proj_1", home=world.home)
    await repository.base()
    await repository.make_workspace(world.home / "workspaces" / "att_2", world.base_sha)
    assert sh(world.home / "workspaces" / "att_2", "git", "status", "--porcelain") == ""


# --- what cannot be used -----------------------------------------------------------------------------


async def refusal(path: Path, home: Path) -> NotARepository:
    """Return why a folder is refused."""
    with pytest.raises(NotARepository) as caught:
        await GitRepository(path, project_id="proj_1", home=home).base()
    assert caught.value.hint
    return caught.value


async def test_what_is_no_repository_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    plain, empty, home = tmp_path / "plain", tmp_path / "empty", tmp_path / "home"
    plain.mkdir()
    empty.mkdir()
    sh(empty, "git", "init", "-q")
    wording(str(await refusal(plain, home)))
    wording(str(await refusal(tmp_path / "nowhere", home)))
    wording(str(await refusal(empty, home)))
    assert "inside a .git folder" in str(await refusal(empty / ".git", home))
    sh(tmp_path, "git", "init", "-q", "--bare", "bare.git")
    wording(str(await refusal(tmp_path / "bare.git", home)))


NOBODY = 65534
SCRIPT = """
import asyncio, sys
from datetime import UTC, datetime
from pathlib import Path
from loopwright.adapters.git import GitRepository
from loopwright.core.values.errors import LoopwrightError
from loopwright.ports import Trailers

async def main(user, home, what):
    repository = GitRepository(user, project_id="proj_1", home=home)
    if what == "base":
        print((await repository.base()).sha)
        return
    sha = what
    workspace = home / "workspaces" / "a"
    await repository.make_workspace(workspace, sha)
    (workspace / "app.py").write_text("two")
    (workspace / "closed").mkdir()
    (workspace / "closed" / "file").write_text("x")
    (workspace / "secret").write_text("x")
    (workspace / "secret").chmod(0)
    (workspace / "closed").chmod(0)
    snapshot = await repository.snapshot(workspace, base_sha=sha, ref="refs/loopwright/attempts/p/t/1",
        subject="s", trailers=Trailers(plan="p", task="t", attempt="a", run="r"), at=datetime.now(UTC))
    print(" ".join(snapshot.changed))
    (workspace / "closed").chmod(0)
    await repository.remove_workspace(workspace)
    assert not workspace.exists()

try:
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
except LoopwrightError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Return a folder whose permissions may be taken away."""
    folder = Path(tempfile.mkdtemp())
    yield folder
    for found, _, _ in os.walk(folder):
        Path(found).chmod(0o700)
    shutil.rmtree(folder)


def as_somebody(folder: Path, what: str) -> str:
    """Run the script without the privilege to overlook permissions, which root has."""
    command = [sys.executable, "-c", SCRIPT, str(folder / "user"), str(folder / "home"), what]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("runs as root, and there is no setpriv to give up its privileges")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_read_only_repository_is_a_clear_error(open_folder: Path) -> None:
    user = start_repository(open_folder / "user", {"app.py": "1"})
    (open_folder / "home").mkdir()
    for found, _, _ in os.walk(user / ".git"):
        Path(found).chmod(0o555)
    said = as_somebody(open_folder, "base")
    assert said.startswith("Refused")
    assert f"{user}/.git/objects is read-only" in said


def test_files_that_the_agent_made_unreadable_are_recorded_and_deleted(open_folder: Path) -> None:
    user = start_repository(open_folder / "user", {"app.py": "1"})
    (open_folder / "home").mkdir()
    assert as_somebody(open_folder, sh(user, "git", "rev-parse", "HEAD")) == "app.py closed/file secret"


async def test_a_repository_of_another_user_is_refused_with_git_s_own_remedy(open_folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to give files away")
    user = start_repository(open_folder / "user", {"app.py": "1"})
    for found in [user, *user.rglob("*")]:
        os.lchown(found, NOBODY, NOBODY)
    with raises_code("repository_of_another_user") as caught:
        await GitRepository(user, project_id="proj_1", home=open_folder / "home").base()
    assert "safe.directory" in str(getattr(caught.value, "hint", ""))
