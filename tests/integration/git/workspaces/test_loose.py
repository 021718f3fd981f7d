"""What is read and made from objects that are files is what git says of the same objects in packs."""

from typing import Any

import pytest
from tests.integration.git.branches.test_landing import candidate
from tests.integration.git.world import AT, World, sh, trailers

from loopwright.adapters.git import GitRepository
from loopwright.core.values.errors import GitFailed

WORK = """
mkdir -p a-b a/deep a.b/deep new/folder
for name in a-b/one a/deep/two a/three a.b/deep/four a0 new/folder/five 'new/é space' 'new/line
break'; do echo "$name" > "$name"; done
printf '\\377\\0binary' > raw
ln -s a/three link
chmod +x a/three
rm -f app.py; mkdir app.py; echo inner > app.py/inner
"""
TEXTS = {"a/three": "other\n", "a/added": "more\n", "top": "x\n", "new/é space": ""}


async def told(world: World, repository: GitRepository) -> list[Any]:
    """Return all that is read and made of some work."""
    snapshot = await world.snapshot()
    made = await repository.candidate(
        tip=world.base_sha, attempt_sha=snapshot.sha, subject="feat: land it", trailers=trailers(), at=AT
    )
    paths = [change.path for change in made.changes]
    asked = [*paths, "a", "new/folder", "missing", "a/missing", "link/three", "raw/below"]
    added = [change for change in made.changes if change.path.startswith("new/")]
    some = [change for change in made.changes if change.path in ("a0", "a.b/deep/four")]
    ids = [change.after.id for change in made.changes if change.after is not None]
    return [
        made,
        await repository.files_at(made.sha, asked),
        await repository.files_at(made.parent, asked),
        await repository.contents(ids),
        *[
            await repository.laid_over(made, restore=restore, texts=texts)
            for restore in ((), added, some, made.changes)
            for texts in ({}, TEXTS)
        ],
    ]


def pack(world: World) -> None:
    """Put every object of the user's repository and of our own git dir into packs."""
    (pins,) = world.home.rglob("loopwright-pins")
    for place in (world.user, pins.parent):
        sh(place, "git", "repack", "-a", "-d", "-k", "-l", "-q")
        sh(place, "git", "prune-packed", "-q")


async def test_it_is_what_git_says_of_the_same_objects_in_packs(world: World) -> None:
    await world.make()
    world.agent(WORK)
    loose = await told(world, world.repository)
    assert len(loose[0].changes) > 10
    pack(world)
    assert await told(world, world.another()) == loose


async def test_no_process_is_started_for_it(world: World) -> None:
    await world.make()
    world.agent("echo two > app.py; echo new > new.txt")
    made = await candidate(world, world.base_sha, (await world.snapshot()).sha)
    before = world.repository.git.processes
    laid = await world.repository.laid_over(made, restore=made.changes[1:], texts={"app.py": "three\n"})
    assert await world.repository.files_at(laid.sha, ["app.py", "new.txt"]) == {"app.py": b"three\n"}
    assert world.repository.git.processes == before


async def test_an_object_whose_file_is_damaged_is_left_to_git(world: World) -> None:
    await world.make()
    world.agent("echo two > app.py")
    made = await candidate(world, world.base_sha, (await world.snapshot()).sha)
    (change,) = made.changes
    assert change.after is not None
    for file in (world.user / ".git", world.home):
        for one in file.rglob(f"{change.after.id[:2]}/{change.after.id[2:]}"):
            one.chmod(0o644)
            one.write_bytes(b"damaged")
    with pytest.raises(GitFailed):
        await world.repository.contents([change.after.id])
