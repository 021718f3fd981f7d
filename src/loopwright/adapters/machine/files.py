"""Writing and removing files so that a kill at any moment leaves something that is understood."""

import contextlib
import errno
import fcntl
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

# Whether a live process holds the lock of a file. The lock ends with the process, whatever ended it.


def is_locked(path: Path | str) -> bool:
    """Return whether a process holds the file's lock; False when there is no such file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # Shared, so that two processes that look at once do not take each other for the owner.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


_COPY: Final = ("cp", "-a", "--reflink=auto") if sys.platform == "linux" else ("cp", "-a")


def write_if_changed(path: Path, text: str) -> None:
    """Put `text` into a file atomically, unless that is what it holds already.

    A power cut may leave it as it was, or empty: each process that uses it puts it in again.
    """
    with contextlib.suppress(FileNotFoundError):
        if path.read_text(encoding="utf-8", errors="surrogateescape") == text:
            return
    write_atomically(path, text, durably=False)


def write_atomically(path: Path, text: str, *, durably: bool = True) -> None:
    """Replace a file's content so that it survives a kill whole, old or new; `durably`, a power cut too."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
            if durably:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)  # noqa: PTH105 - several times per task
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    if not durably:
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def is_real_dir(path: Path) -> bool:
    """Return whether the path is a directory itself, not a link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def is_folder(top: Path, path: bytes) -> bool:
    """Return whether a path below `top` is a folder that no link leads to."""
    here = top
    for part in os.fsdecode(path).split("/"):
        here /= part
        if not is_real_dir(here):
            return False
    return True


def read_regular(path: Path, *, limit: int) -> bytes | None:
    """Return the beginning of a regular file that an agent could have replaced; None for a link, a pipe or nothing."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read(limit) if stat.S_ISREG(os.fstat(handle).st_mode) else None


def regular_text(path: Path, *, limit: int) -> str:
    """Return the stripped text of such a file; empty where there is none."""
    return (read_regular(path, limit=limit) or b"").decode("utf-8", "replace").strip()


def copy_tree(source: Path, target: Path) -> None:
    """Copy a file, a link or a whole tree as it is; raise `OSError` if any part could not be copied."""
    done = subprocess.run([*_COPY, str(source), str(target)], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{source} could not be copied: {done.stderr.strip()[-500:]}")


async def copy_folder(source: Path, target: Path) -> None:
    """Copy a folder that has files to a new place; raise `OSError` and leave nothing there if that fails."""
    import asyncio  # `status` does without it

    await asyncio.to_thread(_copy_folder, source, target)


def _copy_folder(source: Path, target: Path) -> None:
    if not source.is_dir() or not any(source.iterdir()):
        return
    try:
        copy_tree(source, target)
    except OSError:
        delete(target)
        raise


def delete(path: Path) -> None:
    """Delete a file, a link or a whole tree; never follows a link, and makes read-only folders writable."""
    try:
        _delete(path)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        _delete_deep(path)


def _delete_deep(path: Path) -> None:
    """Delete a tree with paths in it that the system does not take in one piece."""
    emptied = []
    for here, _, others in folders_below(path):
        emptied.append(here)
        with opened_below(path, here) as handle:
            for name in others:
                os.unlink(name, dir_fd=handle)
    for here in reversed(emptied[1:]):
        above, _, name = here.rpartition(b"/")
        with opened_below(path, above) as handle:
            os.rmdir(name, dir_fd=handle)
    path.rmdir()


def _delete(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(mode):
        path.unlink(missing_ok=True)
        return
    # With texts: a task has some hundred files and folders, and a path costs more than to delete what is there.
    folders = [str(path)]
    emptied: list[str] = []
    while folders:
        folder = folders.pop()
        emptied.append(folder)
        if os.lstat(folder).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(folder, stat.S_IRWXU)  # noqa: PTH101
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(entry.path)  # noqa: PTH108
    for folder in reversed(emptied):
        os.rmdir(folder)  # noqa: PTH106


def make_readable(root: Path) -> None:
    """Let us read everything in a tree that is ours; links are left alone."""
    folders = [root]
    while folders:
        folder = folders.pop()
        folder.chmod(folder.lstat().st_mode | stat.S_IRWXU)
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(folder / entry.name)
                elif entry.is_file(follow_symlinks=False):
                    found = folder / entry.name
                    found.chmod(found.lstat().st_mode | stat.S_IRUSR)


@contextlib.contextmanager
def opened_below(top: Path, folder: bytes) -> Iterator[int]:
    """Open a folder below another, however long its path is, never through a link, and close it afterwards."""
    here = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in folder.split(b"/") if folder else ():
            above = here
            here = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
            os.close(above)
        yield here
    finally:
        os.close(here)


def folders_below(top: Path) -> Iterator[tuple[bytes, list[bytes], list[bytes]]]:
    """Yield every folder below another with the folders and the other things in it; links are not followed.

    Remove a folder from the list to skip it. What cannot be opened is passed over.
    """
    waiting = [b""]
    while waiting:
        here = waiting.pop()
        folders: list[bytes] = []
        others: list[bytes] = []
        with contextlib.suppress(OSError), opened_below(top, here) as handle, os.scandir(handle) as entries:
            for entry in entries:
                is_dir = entry.is_dir(follow_symlinks=False)
                (folders if is_dir else others).append(os.fsencode(entry.name))
        yield here, folders, others
        waiting += [joined(here, one) for one in folders]


def joined(folder: bytes, name: bytes) -> bytes:
    """Return the path of something in a folder below the top."""
    return folder + b"/" + name if folder else name


def too_long(top: Path) -> list[bytes]:
    """Return what lies below a folder at a path that the system does not take in one piece."""
    limit = os.pathconf(top, "PC_PATH_MAX") - len("/\0")
    found = []
    for here, folders, others in folders_below(top):
        long = [name for name in (*folders, *others) if len(joined(here, name)) > limit]
        found += [joined(here, name) for name in long]
        folders[:] = [name for name in folders if name not in long]
    return sorted(found)


@contextlib.asynccontextmanager
async def held(lock: Path) -> AsyncIterator[None]:
    """Hold a file lock, waiting without blocking the event loop; it ends with the process that held it."""
    import asyncio  # `status` does without it

    lock.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(0.02)
        yield
    finally:
        os.close(handle)
