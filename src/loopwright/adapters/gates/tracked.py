"""Which tracked files of a gate's tree a command changed. Loaded by the gate's runner, outside of what it runs.

Standard library only. What git has in the tree is asked once, of a git dir and our own index; after each command
every file is looked at, and only one that was touched is read. No process can put back when the system says that a file
was changed last, and a tree is older than what runs in it by more than the clock of the file system can miss.
"""

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterable
from typing import Any

MOST = 1000
PIECE = 256 * 1024
LINK, FILE, PROGRAM, SUBMODULE = b"120000", b"100644", b"100755", b"160000"


def looked_at(path: bytes) -> tuple[int, ...] | None:
    """Return what changes with every change of a file; None if there is no file."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def named(paths: Iterable[bytes]) -> list[str]:
    """Return paths as they can be told, as many as are kept."""
    names = sorted(os.fsdecode(path).encode("utf-8", "replace").decode() for path in paths)
    return names if len(names) <= MOST else [*names[:MOST], f"{len(names) - MOST} more"]


class Tracked:
    """The files that git has in one tree, as they were when they were last looked at."""

    def __init__(self, given: dict[str, Any] | None) -> None:
        self._git = given
        self._ids: dict[bytes, tuple[bytes, str]] = {}
        self._looks: dict[bytes, tuple[int, ...] | None] = {}
        if given is None:
            return
        self._top = os.fsencode(given["top"]) + b"/"
        for entry in self._asked("ls-files", "-s", "-z").split(b"\0")[:-1]:
            facts, _, path = entry.partition(b"\t")
            mode, name, _ = facts.split(b" ")
            if mode != SUBMODULE:
                self._ids[path] = (mode, name.decode("ascii"))
        self._hash: Any = hashlib.sha1
        if any(len(name) > 40 for _, name in self._ids.values()):
            self._hash = hashlib.sha256
        for path in self._ids:
            self._looks[path] = looked_at(self._top + path)
        for path in map(os.fsencode, given["laid"]):
            if path in self._ids:
                self._ids[path] = self._now(path)

    def changed(self) -> tuple[list[str], list[str]]:
        """Return the files that are others than at the last look, and those that were only written.

        They are taken as they are from now on.
        """
        touched = []
        for path, look in self._looks.items():
            now = looked_at(self._top + path)
            if now != look:
                touched.append(path)
                self._looks[path] = now
        found = [path for path in touched if self._now(path) != self._ids[path]]
        # What git converts when it writes a file (line ends, large files) has another hash as it lies there.
        same = self._converted([path for path in found if self._is_plain(path)])
        found = [path for path in found if path not in same]
        for path in found:
            self._ids[path] = self._now(path)
        return named(found), named(set(touched) - set(found))

    def _now(self, path: bytes) -> tuple[bytes, str]:
        """Return the mode and the id that git would give to a file as it lies there."""
        try:
            mode = os.lstat(self._top + path).st_mode
            if stat.S_ISLNK(mode):
                target = os.readlink(self._top + path)  # noqa: PTH115 - paths are bytes here
                return LINK, self._id(len(target), [target])
            if not stat.S_ISREG(mode):
                return b"", ""
            fd = os.open(self._top + path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(fd, "rb") as file:
                size = os.fstat(fd).st_size
                pieces = iter(lambda: file.read(PIECE), b"")
                return (PROGRAM if mode & stat.S_IXUSR else FILE), self._id(size, pieces)
        except OSError:
            return b"", ""

    def _id(self, size: int, pieces: Iterable[bytes]) -> str:
        found = self._hash(b"blob %d\0" % size)
        for piece in pieces:
            found.update(piece)
        return str(found.hexdigest())

    def _is_plain(self, path: bytes) -> bool:
        return self._now(path)[0] == self._ids[path][0] and self._ids[path][0] in (FILE, PROGRAM)

    def _converted(self, paths: list[bytes]) -> set[bytes]:
        """Return the files that are what git has once they are converted as git does."""
        known = [path for path in paths if b"\n" not in path]
        if not known:
            return set()
        said = self._asked("hash-object", "--stdin-paths", given=b"\n".join(known) + b"\n").split()
        names = [self._ids[path][1].encode("ascii") for path in known]
        return {path for path, name, now in zip(known, names, said, strict=False) if name == now}

    def _asked(self, *args: str, given: bytes = b"") -> bytes:
        """Ask our own git; None if it cannot answer."""
        assert self._git is not None
        done = subprocess.run(
            [*self._git["git"], *args],
            cwd=self._git["top"],
            env=self._git["env"],
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        if done.returncode and args[0] == "ls-files":
            raise OSError("what git has in the tree of the gate cannot be listed")
        return done.stdout
