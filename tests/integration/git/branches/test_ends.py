"""The end of a plan on real git: what is built, what is moved, and what of the user's is never touched."""

import asyncio
from pathlib import Path

import pytest
from tests.integration.git.world import AT, BRANCH, World, sh, write

from loopwright.adapters.git.branches.ends import GitEnds
from loopwright.core.values.errors import MergeConflict, Refused
from loopwright.ports import Pick

KEY = "finish_00000000-0000-4000-8000-000000000001"


def ends_of(world: World) -> GitEnds:
    return asyncio.run(world.repository.ends())


def commit(where: Path, files: dict[str, str], *, message: str = "more") -> str:
    write(where, files)
    sh(where, "git", "add", "-A")
    sh(where, "git", "commit", "-q", "-m", message)
    return sh(where, "git", "rev-parse", "HEAD")


def aside(world: World, files: dict[str, str], *, message: str = "theirs") -> str:
    """Make a commit on top of trunk that no branch of the user's has."""
    sh(world.user, "git", "switch", "-q", "--detach", "trunk")
    sha = commit(world.user, files, message=message)
    sh(world.user, "git", "switch", "-q", "trunk")
    return sha


def trunk(world: World) -> str:
    return sh(world.user, "git", "rev-parse", "trunk")


def move(world: World, new: str, old: str) -> bool:
    return asyncio.run(ends_of(world).move("trunk", new=new, old=old))


@pytest.mark.parametrize("ref", ["HEAD", "trunk~0", "nowhere", "", "-x", "v1", BRANCH])
def test_only_a_branch_of_the_users_is_a_base(world: World, ref: str) -> None:
    sh(world.user, "git", "tag", "v1")
    asyncio.run(world.repository.ensure_branch(BRANCH, world.base_sha))
    ends = ends_of(world)
    assert asyncio.run(ends.base_tip(ref)) is None
    assert asyncio.run(ends.base_tip("trunk")) == world.base_sha
    assert not asyncio.run(ends.move(ref, new=world.base_sha, old=world.base_sha))


def test_a_branch_moves_with_its_checkout_and_files_of_the_user_stay(world: World) -> None:
    new = aside(world, {"app.py": "two\n", "new/file": "n\n"})
    write(world.user, {"mine": "m\n", "run.log": "ignored\n"})
    assert move(world, new, world.base_sha)
    assert move(world, new, world.base_sha), "a second time finds its own work"
    assert trunk(world) == new
    assert (world.user / "app.py").read_text() == "two\n"
    assert (world.user / "mine").read_text() == "m\n"
    assert sh(world.user, "git", "status", "--porcelain") == "?? mine"


@pytest.mark.parametrize(
    ("mine", "staged"),
    [
        ({"app.py": "changed\n"}, False),
        ({"docs/readme.md": "other place\n"}, False),
        ({"added": "a\n"}, True),
    ],
)
def test_a_checkout_with_changes_is_refused_and_left(
    world: World, mine: dict[str, str], staged: bool
) -> None:
    new = aside(world, {"app.py": "two\n"})
    write(world.user, mine)
    if staged:
        sh(world.user, "git", "add", "-A")
    before = sh(world.user, "git", "status", "--porcelain")
    with pytest.raises(Refused, match=next(iter(mine))):
        move(world, new, world.base_sha)
    assert (trunk(world), sh(world.user, "git", "status", "--porcelain")) == (world.base_sha, before)
    assert all((world.user / name).read_text() == text for name, text in mine.items())


@pytest.mark.parametrize("name", ["new", "new.log", "deep/er"])
def test_a_file_that_git_does_not_track_is_never_overwritten_not_even_an_ignored_one(
    world: World, name: str
) -> None:
    sh(world.user, "git", "switch", "-q", "--detach")
    write(world.user, {name: "theirs\n"})
    sh(world.user, "git", "add", "-f", name)
    sh(world.user, "git", "commit", "-q", "-m", "theirs")
    new = sh(world.user, "git", "rev-parse", "HEAD")
    sh(world.user, "git", "switch", "-q", "trunk")
    write(
        world.user, {name: "mine\n"} if name != "deep/er" else {"deep": "a file where a folder should be\n"}
    )
    with pytest.raises(Refused):
        move(world, new, world.base_sha)
    assert trunk(world) == world.base_sha
    assert (world.user / ("deep" if name == "deep/er" else name)).read_text() != "theirs\n"


def test_a_branch_that_moved_meanwhile_is_not_moved(world: World) -> None:
    new = aside(world, {"app.py": "two\n"})
    mine = commit(world.user, {"mine": "m\n"})
    assert not move(world, new, world.base_sha)
    assert trunk(world) == mine


def test_a_branch_that_nobody_has_checked_out_is_moved_alone(world: World) -> None:
    new = aside(world, {"app.py": "two\n"})
    sh(world.user, "git", "switch", "-q", "-c", "elsewhere")
    write(world.user, {"app.py": "half done\n"})
    assert move(world, new, world.base_sha)
    assert trunk(world) == new
    assert (world.user / "app.py").read_text() == "half done\n"
    assert not move(world, world.base_sha, "0" * 40)


def test_a_checkout_that_is_gone_does_not_hold_the_branch(world: World, tmp_path: Path) -> None:
    new = aside(world, {"app.py": "two\n"})
    sh(world.user, "git", "switch", "-q", "-c", "elsewhere")
    sh(world.user, "git", "worktree", "add", "-q", str(tmp_path / "gone"), "trunk")
    (tmp_path / "gone").rename(tmp_path / "moved")
    assert move(world, new, world.base_sha)
    assert trunk(world) == new


def test_no_hook_of_the_users_runs_and_no_option_of_theirs_bends_the_move(world: World) -> None:
    new = aside(world, {"app.py": "two\n"})
    hook = world.user / ".git" / "hooks" / "post-merge"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch hooked\n")
    hook.chmod(0o755)
    sh(world.user, "git", "config", "branch.trunk.mergeOptions", "--no-ff --squash")
    assert move(world, new, world.base_sha)
    assert trunk(world) == new
    assert not (world.user / "hooked").exists()


def test_what_was_moved_is_found_again_even_after_an_amend(world: World) -> None:
    ends = ends_of(world)
    new = aside(world, {"app.py": "two\n"}, message=f"Title\n\nLoopwright-Finish: {KEY}")

    def found() -> str | None:
        return asyncio.run(ends.arrived(new, "trunk", since=world.base_sha, key=KEY))

    assert found() is None
    assert move(world, new, world.base_sha)
    commit(world.user, {"mine": "m\n"})
    assert found() == new
    sh(world.user, "git", "reset", "-q", "--hard", new)
    sh(world.user, "git", "commit", "-q", "--amend", "--date=2001-01-01T00:00:00Z", "--no-edit")
    amended = trunk(world)
    assert (found(), amended != new) == (amended, True)


def test_the_same_end_built_twice_is_the_same_commit(world: World) -> None:
    ends = ends_of(world)
    source = aside(world, {"app.py": "two\n"})
    mine = commit(world.user, {"mine": "m\n"})
    tree = asyncio.run(ends.joined(mine, source))
    first, second = (
        asyncio.run(ends.commit(tree, parents=(mine,), message="Title\n\nKey: value", at=AT))
        for _ in range(2)
    )
    assert first == second
    assert sh(world.user, "git", "show", f"{first}:app.py") == "two"
    assert sh(world.user, "git", "show", f"{first}:mine") == "m"
    with pytest.raises(MergeConflict) as conflict:
        asyncio.run(ends.joined(commit(world.user, {"app.py": "mine\n"}), source))
    assert conflict.value.paths == ("app.py",)


def test_some_commits_are_built_on_another_base_without_the_others(world: World) -> None:
    ends = ends_of(world)
    sh(world.user, "git", "switch", "-q", "--detach")
    one = commit(world.user, {"app.py": "print('one')\nprint('added')\n"})
    two = commit(world.user, {"two": "2\n"})
    three = commit(world.user, {"two": "2\n3\n"})
    sh(world.user, "git", "switch", "-q", "trunk")
    target = commit(world.user, {"mine": "m\n"})

    def picked(*picks: tuple[str, str]) -> str:
        wanted = [Pick(sha=sha, parent=parent, message=f"pick {sha[:4]}") for sha, parent in picks]
        return asyncio.run(ends.picked(target, wanted, at=AT)).sha

    got = picked((two, one), (three, two))
    assert sh(world.user, "git", "show", f"{got}:two") == "2\n3"
    assert sh(world.user, "git", "show", f"{got}:app.py") == "print('one')"
    assert sh(world.user, "git", "rev-list", "--count", f"{target}..{got}") == "2"
    assert picked((one, world.base_sha), (one, world.base_sha)) == picked((one, world.base_sha))
    with pytest.raises(MergeConflict):
        picked((three, two))
    assert sh(world.user, "git", "status", "--porcelain") == ""


def test_a_push_says_what_is_wrong_and_keeps_a_login_to_itself(world: World, tmp_path: Path) -> None:
    ends = ends_of(world)
    assert asyncio.run(ends.remote("origin")) is None
    sh(world.user, "git", "remote", "add", "origin", "https://me:hunter2@127.0.0.1:1/acme/app.git")
    with pytest.raises(Refused) as refused:
        asyncio.run(ends.push("origin", world.base_sha, BRANCH))
    assert "hunter2" not in f"{refused.value} {refused.value.hint}"
    bare = tmp_path / "bare.git"
    sh(tmp_path, "git", "init", "-q", "--bare", str(bare))
    sh(world.user, "git", "config", f"url.{bare}.insteadOf", "https://me:hunter2@127.0.0.1:1/acme/app.git")
    for _ in range(2):
        asyncio.run(ends.push("origin", world.base_sha, BRANCH))
    assert sh(bare, "git", "rev-parse", BRANCH) == world.base_sha
    assert (asyncio.run(ends.remote("origin")) or "").endswith("/acme/app.git")
