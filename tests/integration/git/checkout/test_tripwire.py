"""The watch over the user's own checkout."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.integration.git.world import BRANCH, PLAN, TASK, World, sh, write
from tests.refusals import raises_code
from tests.wording_plugin import Wording

from loopwright.adapters.git import stray
from loopwright.adapters.git.plumbing.refs import RefFiles

DEEDS = {
    "changes a file": ("echo x > app.py", "app.py was changed"),
    "adds a file": ("mkdir n; echo x > n/new", "n/new was added"),
    "deletes a file": ("rm app.py", "app.py was changed"),
    "changes a dirty file": ("echo more >> dirty.txt", "dirty.txt was changed again"),
    "reverts a dirty file": ("rm dirty.txt", "dirty.txt is no longer changed or untracked"),
    "stages a file": ("git add dirty.txt", "dirty.txt was changed again"),
    "commits": ("git commit -q --allow-empty -m x", "HEAD moved from trunk "),
    "switches": ("git switch -q -c other", "refs/heads/other was created at "),
    "tags": ("git tag v1", "refs/tags/v1 was created at "),
    "notes": ("git notes add -m x HEAD", "refs/notes/commits was created at "),
    "replaces a commit": (
        "git replace $(git rev-parse HEAD) $(git commit-tree -m x HEAD^{tree})",
        "refs/replace/",
    ),
    "deletes a branch": ("git branch -D spare", "refs/heads/spare was deleted (it was at "),
    "moves a branch": (
        "git branch -f spare $(git commit-tree -m x HEAD^{tree})",
        "refs/heads/spare moved from ",
    ),
    "plants a hook": (
        "echo x > .git/hooks/pre-commit",
        "the repository's configuration or hooks were changed",
    ),
    "changes the configuration": ("git config a.b c", "the repository's configuration or hooks were changed"),
    "makes a link": ("ln -s /etc/passwd link", "link was added"),
}


@pytest.mark.parametrize(("script", "words"), DEEDS.values(), ids=DEEDS.keys())
async def test_whatever_happens_to_the_checkout_is_noticed_and_named(
    world: World, script: str, words: str
) -> None:
    write(world.user, {"dirty.txt": "mine\n"})
    world.sh("git", "branch", "spare")
    before = await world.repository.tripwire()
    world.sh("bash", "-e", "-c", script)
    found = stray(before, await world.repository.tripwire())
    assert any(line.startswith(words) for line in found), found


async def test_our_own_work_does_not_trip_it(world: World) -> None:
    write(world.user, {"dirty.txt": "mine\n"})
    before = await world.repository.tripwire()
    await world.repository.ensure_branch(BRANCH, world.base_sha)
    await world.make()
    world.agent("echo two > app.py; git commit -qam mine")
    await world.snapshot()
    write(world.user, {".loopwright/state.json": "{}"})
    assert stray(before, await world.repository.tripwire()) == ()


async def test_a_home_inside_the_checkout_does_not_trip_it(
    make_world: Callable[..., World], world: World
) -> None:
    inner = make_world(world.user)
    inner.home = world.user / "home"
    inner.repository = inner.another()
    inner.workspace = inner.home / "workspaces" / "a"
    before = await inner.repository.tripwire()
    await inner.make()
    assert stray(before, await inner.repository.tripwire()) == ()


async def test_taking_it_writes_nothing(world: World) -> None:
    world.sh("touch", "-d", "2001-01-01", "app.py")
    index = (world.user / ".git/index").read_bytes()
    await world.repository.tripwire()
    assert (world.user / ".git/index").read_bytes() == index


async def test_it_is_cheap_with_many_and_large_files(world: World) -> None:
    write(world.user, {f"many/{n}": str(n) for n in range(3000)})
    with (world.user / "large").open("wb") as file:
        file.truncate(4 << 30)
    await world.repository.base()
    started = time.process_time()
    before = await world.repository.tripwire()
    assert time.process_time() - started < 2
    assert len(before.status) == 3001
    with (world.user / "large").open("r+b") as file:
        file.write(b"x")
    assert stray(before, await world.repository.tripwire()) == ("large was changed again",)


async def test_changes_in_the_checkout_can_be_saved_as_a_patch(world: World, tmp_path: Path) -> None:
    clean = tmp_path / "clean"
    sh(tmp_path, "git", "clone", "-q", str(world.user), "clean")
    (world.user / "mine.txt").write_text("of the person, before any agent ran\n")
    clear = await world.repository.tripwire()
    assert not await world.repository.stray_patch(tmp_path / "patch", clear, clear)
    write(
        world.user, {"app.py": "stray\n", "new/file": "stray\n", ".loopwright/x": "ours", "a.log": "ignored"}
    )
    (world.user / "binary").write_bytes(bytes(range(256)))
    before = await world.repository.tripwire()
    index = (world.user / ".git/index").read_bytes()
    objects = set((world.user / ".git/objects").rglob("*"))
    assert await world.repository.stray_patch(tmp_path / "out" / "patch", clear, before)
    assert (world.user / ".git/index").read_bytes() == index
    assert set((world.user / ".git/objects").rglob("*")) == objects
    assert await world.repository.tripwire() == before
    sh(clean, "git", "apply", str(tmp_path / "out" / "patch"))
    assert (clean / "app.py").read_text() == "stray\n"
    assert (clean / "new/file").read_text() == "stray\n"
    assert (clean / "binary").read_bytes() == bytes(range(256))
    assert not (clean / ".loopwright").exists()
    assert not (clean / "mine.txt").exists(), "what was changed before is nobody's stray"


@pytest.mark.parametrize("packed", [False, True])
async def test_pins_that_somebody_took_away_or_moved_are_put_back(
    world: World, packed: bool, wording: Wording
) -> None:
    await world.make()
    world.agent("echo two > app.py")
    made = await world.snapshot()
    pin = world.sh("git", "for-each-ref", "--format=%(refname)", "refs/loopwright/attempts")
    other = f"{pin}-agent"
    world.sh("git", "update-ref", other, world.base_sha)
    assert await world.repository.repin(PLAN, near=world.base_sha) == (), "what nobody noted is noted now"
    world.sh("git", "update-ref", "-d", pin)
    world.sh("git", "update-ref", other, made.sha)
    if packed:
        world.sh("git", "update-ref", "-d", other)
        world.sh("git", "reflog", "expire", "--expire=now", "--all")
        world.sh("git", "gc", "-q", "--prune=now")
        gone = world.sh("git", "cat-file", "--batch-check", stdin=made.sha)
        assert gone.endswith("missing"), "what nothing names any more is brought back from our own git dir"
    # Whoever comes after a kill knows what was made before it.
    later = world.another()
    wording(await later.repin("plan_other", near=world.base_sha))
    assert world.sh("git", "rev-parse", pin, other).split() == [made.sha, world.base_sha]
    assert await world.repository.repin(PLAN, near=world.base_sha) == ()


def test_a_branch_that_git_packs_at_this_very_moment_is_not_missing(world: World) -> None:
    class Packed(RefFiles):
        def _packed_refs(self) -> Mapping[str, str]:
            known = super()._packed_refs()
            world.sh("git", "pack-refs", "--all")
            return known

    world.sh("git", "branch", "mine")
    found = Packed(world.user / ".git").listing(("refs/heads",), without="refs/heads/loopwright/")
    assert found["refs/heads/mine"] == world.base_sha


async def test_as_many_pins_are_looked_for_as_there_were(world: World) -> None:
    await world.make()
    world.agent("echo two > app.py")
    made = await world.snapshot()
    gone = [f"refs/loopwright/attempts/{PLAN}/{'task' * 20}/{n}" for n in range(25_000)]
    here = f"refs/loopwright/attempts/{PLAN}/{TASK}/1"
    refs = (await world.repository._ready()).refs
    assert {name: ref.sha for name, ref in (await refs.read(*gone, here)).items()} == {here: made.sha}


async def test_a_pin_that_we_moved_ourselves_is_no_loss(world: World) -> None:
    await world.make()
    world.agent("echo two > app.py")
    await world.snapshot()
    world.agent("echo three > app.py")
    await world.snapshot()
    assert await world.repository.repin(PLAN, near=world.base_sha) == ()


async def test_pins_that_we_let_go_of_stay_away(world: World) -> None:
    await world.make()
    world.agent("echo two > app.py")
    await world.snapshot()
    cleaning = world.another()
    await cleaning.let_go([one.ref for one in await cleaning.leftovers(PLAN, BRANCH)])
    assert await world.repository.repin(PLAN, near=world.base_sha) == ()
    assert world.sh("git", "for-each-ref", "refs/loopwright/attempts") == ""


async def test_many_pins_are_looked_at_only_now_and_then(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.make()
    world.agent("echo two > app.py")
    await world.snapshot()
    # All pins are looked at again after 102 s, and those of the plan alone after 106 s.
    moments = iter([0.0, 2.0, 50.0, 50.0, 51.1, 101.0, 101.0, 103.0, 103.1])
    monkeypatch.setattr("loopwright.adapters.git.branches.branches.monotonic", lambda: next(moments))
    assert await world.repository.repin(PLAN, near=world.base_sha) == ()
    assert await world.repository.repin(PLAN, near=world.base_sha) == (), "the plan's own alone"
    world.sh("git", "update-ref", "-d", f"refs/loopwright/attempts/{PLAN}/{TASK}/1")
    assert await world.repository.repin(PLAN, near=world.base_sha) == (), "the last looks took so long"
    [told] = await world.repository.repin(PLAN, near=world.base_sha)
    assert "was deleted" in told


async def test_a_repository_that_is_gone_is_said_so_even_inside_of_another_one(world: World) -> None:
    await world.repository.tripwire()
    sh(world.user.parent, "git", "init", "-q")
    (world.user / ".git").rename(world.home / "taken.git")
    with raises_code("repository_gone"):
        await world.repository.tripwire()
    (world.home / "taken.git").rename(world.user / ".git")
    await world.repository.tripwire()
