"""Writing and removing files so that a kill at any moment leaves something that is understood."""

import asyncio
import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path


def write_if_changed(path: Path, text: str) -> None:
    """Put `text` into a file atomically, unless that is what it holds already."""
    with contextlib.suppress(FileNotFoundError):
        if path.read_text(encoding="utf-8", errors="surrogateescape") == text:
            return
    write_atomically(path, text)


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
    """Say whether the path is a directory itself, not a link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def is_folder(top: Path, path: bytes) -> bool:
    """Say whether a path below `top` is a folder that no link leads to."""
    here = top
    for part in os.fsdecode(path).split("/"):
        here /= part
        if not is_real_dir(here):
            return False
    return True


def delete(path: Path) -> None:
    """Delete a file, a link or a whole tree; never follows a link, and makes read-only folders writable."""
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


@contextlib.asynccontextmanager
async def held(lock: Path) -> AsyncIterator[None]:
    """Hold a file lock, waiting without blocking the event loop; it ends with the process that held it."""
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
