"""Keeping what a work tree holds beyond its base without git, and the paths that no snapshot changes."""

import asyncio
import contextlib
import errno
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.adapters.git.plumbing.runner import Git
from loopwright.adapters.machine.files import opened_below, too_long
from loopwright.core.values.state_folders import STATE_FOLDERS, is_state_path

# Paths that no snapshot changes, whatever was done to them in a workspace.

_SPELLED_OUT_LIMIT: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """Paths that keep what the base has there, or stay absent."""

    copied: frozenset[bytes] = frozenset()
    """Files that were copied from the user's checkout."""
    gitlinks: frozenset[bytes] = frozenset()
    """Submodules, which are looked at separately: git must never look inside by itself."""

    def covers(self, path: bytes) -> bool:
        """Return whether a path, or a folder above it, is protected."""
        if is_state_path(os.fsdecode(path)):
            return True
        parts = path.split(b"/")
        heads = (b"/".join(parts[:end]) for end in range(1, len(parts) + 1))
        return any(head in self.copied or head in self.gitlinks for head in heads)

    def pathspecs(self, also: Iterable[bytes] = ()) -> bytes:
        """Return what `git add` is to look at, NUL-separated.

        A long list of copied files would cost time for every path, so it is left out: the tree is checked
        afterwards in any case.
        """
        ours = [f":(exclude,glob,top)**/{one}{end}".encode() for one in STATE_FOLDERS for end in ("", "/**")]
        specs = [b".", *ours]
        listed = self.gitlinks.union(also)
        if len(self.copied) <= _SPELLED_OUT_LIMIT:
            listed |= self.copied
        return b"\0".join(specs + [b":(exclude,literal,top)" + path for path in sorted(listed)])


UNOPENED = "could not open directory"
"""What git says of a folder that it leaves out."""
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkTree:
    """A work tree with the index of the commit that it was made from."""

    top: Path
    prefix: bytes
    """Where it is in the workspace: empty, or a submodule's path with a slash."""
    depot: Depot
    index: Path
    protection: Protection


async def archive(git: Git, trees: Sequence[WorkTree], dest: Path) -> None:
    """Put every new and changed file of some work trees into a compressed tar file, whole or not at all."""
    found = [(tree, await _changed(git, tree)) for tree in trees]
    await asyncio.to_thread(_write, found, dest)


async def _changed(git: Git, tree: WorkTree) -> list[bytes]:
    """Return the paths that are new or differ; one that git cannot enter means everything below it.

    No file is read for that: what git would make of its content may be the trouble. Nor is any submodule, whose
    configuration is an agent's.
    """
    with tempfile.TemporaryDirectory(dir=tree.index.parent, prefix="snapshot-") as scratch:
        index = shutil.copy2(tree.index, scratch)
        env = tree.depot.env(work_tree=tree.top, index=Path(index))
        new = await git.run("ls-files", "-z", "--others", "--exclude-standard", env=env, cwd=tree.top)
        changed = await git.run(
            "diff-files", "-z", "--name-only", "--ignore-submodules=all", env=env, cwd=tree.top
        )
    found = {path.rstrip(b"/") for path in (new.out + changed.out).split(b"\0") if path}
    if UNOPENED in new.err:
        found |= set(await asyncio.to_thread(too_long, tree.top))
    return sorted(path for path in found if not tree.protection.covers(path))


def _write(found: Sequence[tuple[WorkTree, Sequence[bytes]]], dest: Path) -> None:
    dest.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, draft = tempfile.mkstemp(dir=dest.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            with tarfile.open(fileobj=file, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
                for tree, paths in found:
                    for path in paths:
                        _add(tar, tree, path)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(dest)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _add(tar: tarfile.TarFile, tree: WorkTree, path: bytes) -> None:
    """Add a file, a link or a folder with all that is in it; no link is followed."""
    waiting = [path]
    while waiting:
        here = waiting.pop()
        folder, _, name = here.rpartition(b"/")
        with contextlib.ExitStack() as stack:
            try:
                above = stack.enter_context(opened_below(tree.top, folder))
                about = os.stat(name, dir_fd=above, follow_symlinks=False)
            except OSError as problem:
                if problem.errno in _GONE:
                    continue  # deleted, perhaps with its folder: the base has it
                raise
            info = tarfile.TarInfo(os.fsdecode(tree.prefix + here))
            info.mode, info.mtime = stat.S_IMODE(about.st_mode), int(about.st_mtime)
            if stat.S_ISDIR(about.st_mode):
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
                try:
                    waiting += [here + b"/" + os.fsencode(one) for one in os.listdir(inner)]  # noqa: PTH208
                finally:
                    os.close(inner)
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            elif stat.S_ISLNK(about.st_mode):
                info.type, info.linkname = tarfile.SYMTYPE, os.fsdecode(os.readlink(name, dir_fd=above))
                tar.addfile(info)
            elif stat.S_ISREG(about.st_mode):
                file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=above)
                with os.fdopen(file, "rb") as content:
                    info.size = os.fstat(file).st_size
                    tar.addfile(info, content)
