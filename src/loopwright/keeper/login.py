"""The login of an agent: each run has a copy, and all copies follow the user's own file while the runs live.

A program that renews its login makes the old one void, for everyone. So what one run renews is carried to the user's
file at once, and from there to every other run. The later expiry wins. A login without its tokens is logged out, and
is never carried anywhere.
"""

from __future__ import annotations

import errno
import json
import os
import stat

from loopwright.keeper import places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Part = tuple[str, ...]

LONGEST = 1024 * 1024
EVERY_S = 0.1
LOCK_S = 0.5


class Login:
    """One file with logins in it, in the user's folder and in that of the run."""

    def __init__(self, told: dict[str, Any], path: str, source: str) -> None:
        self.path = os.path.join(path, told["file"])
        self.source = os.path.join(source, told["file"])
        self._at = _keys(told["at"])
        self._expires = _keys(told["expires"])
        self._tokens = [_keys(one) for one in told["tokens"]]
        self._given: dict[Part, Any] = {}
        self._seen: object = None
        self.renewed = False
        """Another process renewed it while the run had it."""

    def follow(self, view: str) -> None:
        """Carry over what is newer, in either direction, if a file changed since this was last asked."""
        seen = (_sign(self.source), _sign(os.path.join(view, self.path)))
        if seen == self._seen:
            return
        folder = os.path.dirname(os.path.realpath(self.source))
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            return  # the user has none
        try:
            if not places.take(lock, LOCK_S):
                raise OSError(errno.EAGAIN, "another process keeps the folder locked", self.source)
            if self._even_out(view):
                # As it was before it was read: what is written in between is looked at next time.
                self._seen = seen
        finally:
            os.close(lock)

    def _even_out(self, view: str) -> bool:
        """Copy what is newer; return whether both files could be read."""
        target = os.path.realpath(self.source)
        try:
            theirs = _read(os.open(target, os.O_RDONLY | os.O_NONBLOCK))
            user = _parsed(theirs)
        except FileNotFoundError:
            return True  # logged out by the user, or never logged in: no run makes a login
        except ValueError:
            return False  # half written: it is looked at again
        folder = _folder(view, os.path.dirname(self.path))
        if folder is None:
            return True
        try:
            name = os.path.basename(self.path)
            try:
                ours = _read(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder))
                mine = _parsed(ours)
            except ValueError:
                return False
            except OSError as problem:
                if problem.errno not in {errno.ENOENT, errno.ELOOP}:
                    raise
                ours, mine = theirs, {}
            back, forth = self._compared(user, mine)
            for part in back:
                user = _with(user, part, _part(mine, part))
            for part in forth:
                self.renewed = self.renewed or bool(mine)
                mine = _with(mine, part, _part(user, part))
            if back:
                _replace(os.open(os.path.dirname(target), os.O_RDONLY), target, _text(user, theirs))
            if forth:
                _replace(os.dup(folder), name, _text(mine, ours))
            self._given = {part: _part(mine, part) for part in self._parts(mine)}
        finally:
            os.close(folder)
        return True

    def _compared(self, user: Any, mine: Any) -> tuple[list[Part], list[Part]]:
        """Return what is carried to the user, and what to the run."""
        back, forth = [], []
        for part in self._parts(user):
            own, other = _part(user, part), _part(mine, part)
            if own == other:
                continue
            if other != self._given.get(part) and self._is_alive(other) and self._is_later(other, own):
                back.append(part)
            elif self._is_alive(own):
                forth.append(part)
        return back, forth

    def _parts(self, document: Any) -> Iterator[Part]:
        """Yield where in a file the logins are."""
        found: list[Part] = [()]
        for key in self._at:
            inner = [(part, _part(document, part)) for part in found]
            tables = [(part, value) for part, value in inner if isinstance(value, dict)]
            found = [(*part, name) for part, value in tables for name in value if key == "*" or name == key]
        yield from found

    def _is_alive(self, login: Any) -> bool:
        tokens = [_part(login, keys) for keys in self._tokens]
        return all(isinstance(one, str) and one for one in tokens)

    def _is_later(self, login: Any, than: Any) -> bool:
        new, old = _part(login, self._expires), _part(than, self._expires)
        if isinstance(new, str) and isinstance(old, str):
            return new.rstrip("Z") > old.rstrip("Z")
        numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in (new, old))
        return numbers and new > old


def _keys(dotted: str) -> tuple[str, ...]:
    return tuple(dotted.split(".")) if dotted else ()


def _part(document: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _with(document: Any, keys: tuple[str, ...], value: Any) -> Any:
    """Return a document with another value at a place."""
    if not keys:
        return value
    known = document if isinstance(document, dict) else {}
    return {**known, keys[0]: _with(known.get(keys[0]), keys[1:], value)}


def _parsed(data: bytes) -> Any:
    """Return what a file says; raise ValueError for half a file, and for what could not be written again."""
    try:
        document = json.loads(data)
        # Half surrogates and NaN: a run must not put into the user's file what no program can read.
        json.dumps(document, allow_nan=False, ensure_ascii=False).encode()
        return document
    except RecursionError as problem:
        raise ValueError("too deep") from problem


def _text(document: Any, like: bytes) -> bytes:
    """Write a document in the way of another one: on one line, or on many."""
    indent = 2 if b"\n" in like.strip() else None
    separators = (",", ":") if b'": ' not in like else None
    end = b"\n" if like.endswith(b"\n") else b""
    return json.dumps(document, indent=indent, separators=separators, ensure_ascii=False).encode() + end


def _read(fd: int) -> bytes:
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LONGEST:
            raise ValueError("not a login")
        data = b""
        while piece := os.read(fd, LONGEST):
            data += piece
        return data
    finally:
        os.close(fd)


def _folder(view: str, path: str) -> int | None:
    """Open a folder of the run, never through a link: the run may have put one there."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        fd = os.open(view, flags)
        for part in path.split("/") if path else ():
            above = fd
            try:
                fd = os.open(part, flags, dir_fd=above)
            finally:
                os.close(above)
    except OSError:
        return None
    return fd


def _replace(folder: int, path: str, data: bytes) -> None:
    """Put a new file in the place of another one, in one step and with its mode; close the folder."""
    name, mode = os.path.basename(path), 0o600
    draft = f"{name}.{os.getpid()}.new"
    try:
        try:
            mode = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            mode = 0o600
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        fd = os.open(draft, flags, 0o600, dir_fd=folder)
        try:
            places.write_all(fd, data)
            os.fchmod(fd, mode)
            os.fsync(fd)
            os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            os.unlink(draft, dir_fd=folder)
            raise
        finally:
            os.close(fd)
        os.fsync(folder)
    finally:
        os.close(folder)


def _sign(path: str) -> tuple[int, ...]:
    """Return what changes when a file does; nothing where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
