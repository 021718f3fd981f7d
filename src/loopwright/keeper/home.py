"""A private HOME: a folder of links into the user's own, without what is hidden from the run.

New files stay in the folder and vanish with it. What belongs to an agent (settings, hooks, skills) is copied instead of
linked, so nothing of it flows back either. Two things outlive the run: its login, see `login`, and its conversations,
which are put into a folder of their own for the next run of the attempt.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from fnmatch import fnmatchcase

from loopwright.keeper import login, places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MOST_FILES = 5000
MOST_BYTES = 64 * 1024 * 1024
"""An entry of an agent's folder with more than this is linked instead: in a sandbox it can only be read then."""


class _TooBig(Exception):
    """There is more than is copied for one run."""


class Private:
    """Something of an agent's that the run has a copy of."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.told = told
        self.path = str(told["path"]).rstrip("/")
        self.is_folder = str(told["path"]).endswith("/")
        self.source = str(told["source"]).rstrip("/")
        self.left = [str(one) for one in told["left"]]
        self.sessions = [str(one) for one in told["sessions"]]
        self.logins = [login.Login(one, self.path, self.source) for one in told["logins"]]


class Home:
    """What a keeper is told about the run's HOME."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.place = str(told["place"])
        self.real = str(told["real"])
        self.hidden = [str(path) for path in told["hidden"]]
        self.shown = [str(path) for path in told["shown"]]
        self.everything = bool(told["everything"])
        self.private = [Private(one) for one in told["private"]]
        self.sessions = str(told["sessions"])
        self._logins = [one for each in self.private for one in each.logins]
        self._next = 0.0
        self._trouble = ""

    def shape(self) -> dict[str, Any]:
        """Return it as it was told."""
        return {
            "place": self.place,
            "real": self.real,
            "hidden": self.hidden,
            "shown": self.shown,
            "everything": self.everything,
            "private": [one.told for one in self.private],
            "sessions": self.sessions,
        }

    def make(self, directory: str) -> None:
        """Make the folder in the run's directory, and have its place point to it."""
        view = os.path.join(directory, places.HOME)
        os.mkdir(view, 0o700)
        for one in self.private:
            _copy(one, os.path.join(view, one.path))
        self._put_back_sessions(view)
        own = {one.path for one in self.private}
        if self.everything:
            self._link_below(view, "", {*self.hidden, *own})
        for path in self.shown:
            self._link_one(view, path.rstrip("/"), own)
        self._point(view)
        self.follow_logins(directory)

    def follow_logins(self, directory: str) -> None:
        """Carry over logins that were renewed, here or elsewhere."""
        self._next, troubles = time.monotonic() + login.EVERY_S, []
        for one in self._logins:
            try:
                one.follow(os.path.join(directory, places.HOME))
            except OSError as problem:
                troubles.append(f"the login {one.path} was not carried over: {problem.strerror}")
        self._trouble = "; ".join(troubles)

    def next_due(self) -> float:
        """Return when logins are looked at again."""
        return self._next if self._logins else float("inf")

    @property
    def login_renewed(self) -> bool:
        """Whether another process renewed a login that this run had."""
        return any(one.renewed for one in self._logins)

    def put_away(self, directory: str) -> str:
        """Keep login and conversations, remove the rest, return what went wrong. Calling it again is safe."""
        view = os.path.join(directory, places.HOME)
        self.follow_logins(directory)
        troubles = [self._trouble] if self._trouble else []
        try:
            self._keep_sessions(view)
        except OSError as problem:
            troubles.append(f"its conversation was not kept: {problem}")
        try:
            if os.path.islink(self.place) and os.readlink(self.place) == view:
                os.unlink(self.place)
            elif not os.path.islink(self.place):
                places.remove_tree(self.place)  # the run put a folder of its own there
            places.remove_tree(view)
        except OSError as problem:
            troubles.append(f"its private HOME stays: {problem}")
        return "; ".join(troubles)

    def _link_below(self, view: str, top: str, hidden: set[str]) -> None:
        """Link everything in a folder that is not hidden; what has something hidden in it is a folder itself."""
        above = {path[:cut] for path in hidden for cut, letter in enumerate(path) if letter == "/"}
        folders = [top]
        for folder in folders:
            try:
                names = os.listdir(os.path.join(self.real, folder))
            except OSError:
                # Missing or unreadable. What is shown by name may be there nevertheless.
                continue
            for name in names:
                path = f"{folder}/{name}" if folder else name
                if path in hidden:
                    continue
                target, made = os.path.join(self.real, path), os.path.join(view, path)
                if path in above and os.path.isdir(target):
                    os.makedirs(made, 0o700, exist_ok=True)
                    folders.append(path)
                elif not os.path.lexists(made):
                    os.symlink(target, made)

    def _link_one(self, view: str, path: str, own: set[str]) -> None:
        target = os.path.join(self.real, path)
        if path in own or not os.path.lexists(target):
            return
        *above, name = path.split("/")
        folder = view
        for part in above:
            folder = os.path.join(folder, part)
            if os.path.islink(folder):
                return  # the whole folder is shown
            if not os.path.isdir(folder):
                os.mkdir(folder, 0o700)
        if not os.path.lexists(os.path.join(folder, name)):
            os.symlink(target, os.path.join(folder, name))
        elif not os.path.islink(os.path.join(folder, name)):
            self._link_below(view, path, own)

    def _point(self, view: str) -> None:
        """Turn the place to this view, whatever a killed or careless run left there."""
        os.makedirs(os.path.dirname(self.place), 0o700, exist_ok=True)
        if not os.path.islink(self.place):
            places.remove_tree(self.place)
        draft = f"{self.place}.{os.path.basename(os.path.dirname(view))}"
        places.remove(draft)
        os.symlink(view, draft)
        os.rename(draft, self.place)

    def _put_back_sessions(self, view: str) -> None:
        for one in self.private:
            shelf = os.path.join(self.sessions, one.path)
            for name in os.listdir(shelf) if self.sessions and os.path.isdir(shelf) else ():
                os.rename(os.path.join(shelf, name), os.path.join(view, one.path, name))

    def _keep_sessions(self, view: str) -> None:
        """Move conversations aside, never through a link: the run may have put one there."""
        for one in self.private:
            if not self.sessions or not one.sessions or not _is_real_folder(view, one.path):
                continue
            folder = os.path.join(view, one.path)
            shelf = os.path.join(self.sessions, one.path)
            os.makedirs(shelf, 0o700, exist_ok=True)
            for name in _named(folder, one.sessions):
                places.remove_tree(os.path.join(shelf, name))
                os.rename(os.path.join(folder, name), os.path.join(shelf, name))


def _copy(one: Private, to: str) -> None:
    """Copy what the user has, as far as it can be read."""
    os.makedirs(to if one.is_folder else os.path.dirname(to), 0o700, exist_ok=True)
    if not one.is_folder:
        _copy_entry(one.source, to)
        return
    try:
        names = os.listdir(one.source)
    except OSError:
        return  # there is none, or it is not for us: the program begins as for a new user
    for name in names:
        if not any(fnmatchcase(name, pattern) for pattern in (*one.left, *one.sessions)):
            _copy_entry(os.path.join(one.source, name), os.path.join(to, name))


def _copy_entry(source: str, to: str) -> None:
    size = [MOST_FILES, MOST_BYTES]
    try:
        _copy_tree(source, to, size)
    except _TooBig:
        places.remove_tree(to)
        os.symlink(source, to)


def _copy_tree(source: str, to: str, size: list[int]) -> None:
    """Copy files and folders; what links lead to is copied, too: people keep their settings elsewhere."""
    todo = [(source, to)]
    for path, made in todo:
        try:
            found = os.stat(path)
            size[0] -= 1
            if stat.S_ISDIR(found.st_mode):
                names = os.listdir(path)
                os.mkdir(made, 0o700)
                todo += [(os.path.join(path, name), os.path.join(made, name)) for name in names]
            elif stat.S_ISREG(found.st_mode):
                size[1] -= found.st_size
                if min(size) >= 0:
                    _copy_file(path, made, stat.S_IMODE(found.st_mode) | stat.S_IRUSR | stat.S_IWUSR)
        except OSError as problem:
            if problem.errno not in {errno.ENOENT, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENOTDIR}:
                raise
            # It vanished, leads nowhere, or is not for us.
            continue
        if min(size) < 0:
            raise _TooBig


def _copy_file(path: str, made: str, mode: int) -> None:
    with open(path, "rb") as source, open(made, "xb") as copy:
        os.fchmod(copy.fileno(), mode)
        while piece := source.read(1 << 20):
            copy.write(piece)


def _is_real_folder(view: str, path: str) -> bool:
    folder = view
    for part in path.split("/"):
        if os.path.islink(folder):
            return False
        folder = os.path.join(folder, part)
    return os.path.isdir(folder) and not os.path.islink(folder)


def _named(folder: str, patterns: list[str]) -> Iterator[str]:
    for name in os.listdir(folder):
        kept = any(fnmatchcase(name, pattern) for pattern in patterns)
        if kept and not os.path.islink(os.path.join(folder, name)):
            yield name


def put_away(directory: str) -> str:
    """Put the HOME of a run away whose keeper was lost, by what that one had written down."""
    try:
        with open(os.path.join(directory, places.SPEC), encoding="utf-8") as file:
            told = json.load(file).get("home")
    except (OSError, ValueError):
        told = None
    if told is None:
        return ""
    return Home(told).put_away(directory)
