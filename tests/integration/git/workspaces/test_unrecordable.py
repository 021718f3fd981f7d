"""Work that git cannot take in: named, and kept as an archive."""

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.git.world import World, sh, start_repository, write
from tests.refusals import raises_code

from loopwright.adapters.machine.files import opened_below
from loopwright.core.values.errors import Unrecordable

DEEP = """
import os
for _ in range(25):
    os.mkdir("x" * 200)
    os.chdir("x" * 200)
open("deep.txt", "w").write("deep")
os.symlink("deep.txt", "link")
"""
UTF16 = "echo '*.txt working-tree-encoding=UTF-16' > .gitattributes; echo plain > a.txt"
CASES = {
    "no byte order mark": (UTF16, "BOM is required in 'a.txt'", {".gitattributes", "a.txt"}),
    "an unknown encoding": (
        "echo '*.py working-tree-encoding=KLINGON' > .gitattributes; echo two > app.py",
        "failed to encode 'app.py' from KLINGON",
        {".gitattributes", "app.py"},
    ),
    "a path that is too long": (
        f"python3 -c '{DEEP}'",
        f"paths that are this long: {'x' * 40}… (",
        {f"{'x' * 200}/" * 25 + "deep.txt", f"{'x' * 200}/" * 25 + "link"},
    ),
    "in a nested repository": (
        f"git init -q nested; cd nested; {UTF16}; cd ..",
        "BOM is required in 'nested/a.txt'",
        {"nested/.gitattributes", "nested/a.txt"},
    ),
}


def kept(archive: Path) -> dict[str, bytes]:
    """Return the files and links of an archive, without what is in a nested repository's own folder."""
    with tarfile.open(archive) as tar:
        found = {
            info.name: tar.extractfile(info) if info.isfile() else None for info in tar if not info.isdir()
        }
        return {name: file.read() if file else b"" for name, file in found.items() if "/.git/" not in name}


async def test_what_git_cannot_take_in_is_named_and_kept_as_an_archive(world: World) -> None:
    write(world.user, {".env": "KEY=1\n"})
    for n, (name, (script, told, files)) in enumerate(CASES.items(), 1):
        world.workspace = world.home / "workspaces" / f"att_{n}"
        await world.make(copy_files=[".env"])
        world.agent(
            f"{script}; cd {world.workspace}; echo new > new; ln -s /etc/passwd leak; mkfifo pipe;"
            "rm -r docs; mkdir build .loopwright; touch build/made .loopwright/x; echo LEAK >> .env"
        )
        with raises_code("unrecordable") as caught:
            await world.snapshot(n)
        assert told in str(caught.value), name
        archive = world.home / "archives" / f"{n}.tar.gz"
        await world.repository.archive(world.workspace, archive)
        found = kept(archive)
        assert set(found) == files | {"new", "leak"}, name
        assert found["new"] == b"new\n"
        assert found.get("a.txt", b"plain\n") == b"plain\n"
        assert archive.stat().st_mode & 0o077 == 0
        await world.repository.remove_workspace(world.workspace)
        assert not world.workspace.exists(), name
    assert world.sh("git", "for-each-ref", "refs/loopwright") == ""


async def test_nested_repositories_without_commits_are_recorded_however_many_and_deep(world: World) -> None:
    await world.make()
    world.agent(
        "for i in $(seq 12); do git init -q n; cd n; echo x > f; done; cd ../../../../../../../../../../../..;"
        "git init -q 'new\nline'; echo x > 'new\nline/f'"
    )
    chain = {"n/" * deep + "f" for deep in range(1, 13)}
    assert set((await world.snapshot()).changed) == chain | {"new\nline/f"}


async def test_a_submodule_that_cannot_be_recorded_is_in_the_archive(
    make_world: Callable[..., World], tmp_path: Path
) -> None:
    library = start_repository(tmp_path / "library", {"lib.py": "1\n"})
    user = start_repository(tmp_path / "user", {"app.py": "1\n"})
    sh(user, "git", "submodule", "--quiet", "add", str(library), "lib")
    sh(user, "git", "commit", "-qm", "library")
    world = make_world(user)
    await world.make()
    trap, sprung = tmp_path / "trap", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\n")
    trap.chmod(0o755)
    world.agent(f"echo 2 > app.py; cd lib; echo 2 > lib.py; {UTF16}; git config core.fsmonitor {trap}")
    with pytest.raises(Unrecordable):
        await world.snapshot()
    archive = world.home / "archives" / "1.tar.gz"
    await world.repository.archive(world.workspace, archive)
    assert set(kept(archive)) == {"app.py", "lib/lib.py", "lib/.gitattributes", "lib/a.txt"}
    assert not sprung.exists()


def test_no_folder_is_opened_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "users" / "b").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a").symlink_to(tmp_path / "users")
    for folder in (b"a", b"a/b"):
        with pytest.raises(OSError), opened_below(tmp_path / "work", folder):
            pass
