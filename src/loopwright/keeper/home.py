"""A private HOME: a folder of links into the user's own, without what is hidden from the run.

New files stay in the folder and vanish with it. A file that the run may keep up to date (a login, say) can be
replaced there instead of being written through its link; that one is carried back when the run has ended.
"""

from __future__ import annotations

import errno
import json
import os
import stat

from loopwright.keeper import places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST_KEPT = 16 * 1024 * 1024
LOCK_S = 2.0


class Home:
    """What a keeper is told about the run's HOME."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.place = str(told["place"])
        self.real = str(told["real"])
        self.hidden = [str(path) for path in told["hidden"]]
        self.shown = [str(path) for path in told["shown"]]
        self.kept = [str(path) for path in told["kept"]]
        self.everything = bool(told.get("everything", True))

    def shape(self) -> dict[str, Any]:
        """Return it as it was told."""
        return {
            "place": self.place,
            "real": self.real,
            "hidden": self.hidden,
            "shown": self.shown,
            "kept": self.kept,
            "everything": self.everything,
        }

    def make(self, directory: str) -> None:
        """Make the folder in the run's directory, and have its place point to it."""
        view = os.path.join(directory, places.HOME)
        os.mkdir(view, 0o700)
        self._make_kept_folders()
        if self.everything:
            self._link_everything(view)
        for path in (*self.shown, *self.kept):
            self._link_one(view, path.rstrip("/"))
        self._point(view)

    def put_away(self, directory: str) -> str:
        """Carry back what is to be kept and remove the rest; done again it does no harm. Return what went wrong."""
        view = os.path.join(directory, places.HOME)
        troubles = []
        for path in self.kept:
            if path.endswith("/"):
                continue
            try:
                self._carry_back(view, path, os.path.basename(directory))
            except OSError as problem:
                troubles.append(f"{path} of the run's HOME was not kept: {problem.strerror}")
        try:
            if os.path.islink(self.place) and os.readlink(self.place) == view:
                os.unlink(self.place)
            elif not os.path.islink(self.place):
                places.remove_tree(self.place)  # the run put a folder of its own there
            places.remove_tree(view)
        except OSError as problem:
            troubles.append(f"its private HOME stays: {problem}")
        return "; ".join(troubles)

    def _make_kept_folders(self) -> None:
        """Make the folders that the run keeps things in: made inside the view they would vanish with it."""
        if not os.path.isdir(self.real):
            return
        for path in self.kept:
            if path.endswith("/"):
                try:
                    os.makedirs(os.path.join(self.real, path), 0o700, exist_ok=True)
                except OSError:
                    # Not writable, or a file: the run finds what it would find without us.
                    continue

    def _link_everything(self, view: str) -> None:
        hidden = set(self.hidden)
        above = {path[:cut] for path in hidden for cut, letter in enumerate(path) if letter == "/"}
        folders = [""]
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
                target = os.path.join(self.real, path)
                if path in above and os.path.isdir(target):
                    os.mkdir(os.path.join(view, path), 0o700)
                    folders.append(path)
                else:
                    os.symlink(target, os.path.join(view, path))

    def _link_one(self, view: str, path: str) -> None:
        target = os.path.join(self.real, path)
        if not os.path.lexists(target):
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

    def _point(self, view: str) -> None:
        """Turn the place to this view, whatever a killed or careless run left there."""
        os.makedirs(os.path.dirname(self.place), 0o700, exist_ok=True)
        if not os.path.islink(self.place):
            places.remove_tree(self.place)
        draft = f"{self.place}.{os.path.basename(os.path.dirname(view))}"
        places.remove(draft)
        os.symlink(view, draft)
        os.rename(draft, self.place)

    def _carry_back(self, view: str, path: str, run: str) -> None:
        data, ours = _replaced(view, path)
        if not data or ours is None or not os.path.isdir(self.real):
            return
        # The file may be a link of the user's own, which stays one.
        target = os.path.realpath(os.path.join(self.real, path))
        folder = os.path.dirname(target)
        os.makedirs(folder, 0o700, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY)
        try:
            # Others may carry back too; a lock that nobody gives back must not hold the run up.
            if not places.take(lock, LOCK_S):
                raise OSError(errno.EAGAIN, "another process keeps the folder locked")
            mode = stat.S_IMODE(ours.st_mode)
            if os.path.exists(target):
                theirs = os.stat(target)
                if theirs.st_mtime_ns >= ours.st_mtime_ns:
                    return  # another run or the user wrote it later: theirs is the fresher login
                mode = stat.S_IMODE(theirs.st_mode)
            draft = f"{target}.{run}"
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                places.write_all(fd, data)
                os.fchmod(fd, mode)
                # With its own time, so that of two runs the one that wrote last wins, not the one that ended last.
                os.utime(fd, ns=(ours.st_mtime_ns, ours.st_mtime_ns))
                os.fsync(fd)
                os.rename(draft, target)
            except OSError:
                places.remove(draft)
                raise
            finally:
                os.close(fd)
            places.sync_directory(folder)
        finally:
            os.close(lock)


def _replaced(view: str, path: str) -> tuple[bytes, os.stat_result | None]:
    """Return a file that took the place of its link, or nothing: half a file is never carried back."""
    *above, name = path.split("/")
    folder = view
    for part in above:
        folder = os.path.join(folder, part)
        if os.path.islink(folder):
            return b"", None  # written through the link already, or no folder of ours
    try:
        fd = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as problem:
        if problem.errno in {errno.ELOOP, errno.ENOENT, errno.ENOTDIR, errno.ENXIO}:
            return b"", None
        raise
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LONGEST_KEPT:
            return b"", None
        data = b""
        while piece := os.read(fd, 1 << 20):
            data += piece
    finally:
        os.close(fd)
    if name.endswith(".json"):
        try:
            json.loads(data)
        except ValueError:
            return b"", None
    return data, found


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
