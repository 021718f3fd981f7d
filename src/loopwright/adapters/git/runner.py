"""The one place that starts git."""

import asyncio
import contextlib
import os
import re
import signal
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopwright.adapters.git.environment import config_flags
from loopwright.adapters.git.names import printable
from loopwright.core.errors import GitFailed, UserError

OLDEST: Final = (2, 38)
"""The first git whose `merge-tree` merges without a work tree."""

_LOCKED = re.compile(r"Unable to create '(.+?\.lock)': File exists")
_OUR_LOCK = re.compile(r"/refs/(heads/)?loopwright/.+\.lock$")
_LOCK_PATIENCE: Final = 2.0
_LOCK_STALE_AFTER: Final = 60.0
_TIME_LIMIT: Final = 900.0
_UNWRITABLE = ("Permission denied", "Read-only file system", "insufficient permission")
_WORDS_LIMIT: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How a git command ended."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        """Its output as one stripped text."""
        return self.out.decode("utf-8", "replace").strip()


class Git:
    """Runs git with an environment of our own, and turns its refusals into `GitFailed`."""

    def __init__(self) -> None:
        self.processes = 0
        """How many git commands were started."""
        self._checked = False

    async def run(
        self,
        *args: str,
        env: Mapping[str, str],
        cwd: Path | None = None,
        stdin: bytes = b"",
        ok: Collection[int] = (0,),
        sink: Callable[[bytes], object] | None = None,
    ) -> Done:
        """Run one command; raise `GitFailed` unless its exit code is in `ok`.

        A lock that another git holds is waited for briefly. With `sink`, output goes there piece by piece.
        """
        if not self._checked:
            await self._check_version(env)
        give_up_at = time.monotonic() + _LOCK_PATIENCE
        while True:
            done = await self._start((*config_flags(), *args), env=env, cwd=cwd, stdin=stdin, sink=sink)
            if done.code in ok:
                return done
            locked = _LOCKED.search(done.err)
            if locked is None:
                raise GitFailed(_explained(args, done, where=cwd or Path(env.get("GIT_DIR", "."))))
            lock = Path(locked.group(1))
            if _removed_stale(lock):
                continue
            if time.monotonic() >= give_up_at:
                raise GitFailed(
                    f"git {args[0]} could not go on: {lock} is held by another git. If no git is running"
                    " in this repository, a killed one left it behind: delete that file and retry."
                )
            await asyncio.sleep(0.1)

    async def _check_version(self, env: Mapping[str, str]) -> None:
        done = await self._start(("version",), env=env, cwd=None, stdin=b"", sink=None)
        found = re.search(r"(\d+)\.(\d+)", done.text)
        if found is None or (int(found[1]), int(found[2])) < OLDEST:
            raise UserError(
                f"this machine's git is too old: {done.text or 'no version'}",
                hint=f"Install git {OLDEST[0]}.{OLDEST[1]} or newer.",
            )
        self._checked = True

    async def _start(
        self,
        args: tuple[str, ...],
        *,
        env: Mapping[str, str],
        cwd: Path | None,
        stdin: bytes,
        sink: Callable[[bytes], object] | None,
    ) -> Done:
        folder = cwd or Path("/")
        self.processes += 1
        try:
            process = await asyncio.create_subprocess_exec(
                "git",
                *args,
                env=dict(env),
                cwd=folder,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except (FileNotFoundError, NotADirectoryError) as error:
            if not folder.is_dir():
                raise GitFailed(f"the folder {folder} does not exist") from error
            raise UserError(
                "git was not found on this machine",
                hint=f"Install git {OLDEST[0]}.{OLDEST[1]} or newer and see that it is on PATH.",
            ) from error
        except PermissionError as error:
            raise GitFailed(f"git cannot be run in {folder}: {error.strerror}") from error
        try:
            async with asyncio.timeout(_TIME_LIMIT):
                out, err = await _communicate(process, stdin, sink)
        except TimeoutError as error:
            raise GitFailed(f"git {' '.join(args[-4:])} took longer than {_TIME_LIMIT:.0f} s") from error
        finally:
            if process.returncode is None:
                await _end(process)
        assert process.returncode is not None
        return Done(code=process.returncode, out=out, err=err.decode("utf-8", "surrogateescape"))


async def _communicate(
    process: asyncio.subprocess.Process, stdin: bytes, sink: Callable[[bytes], object] | None
) -> tuple[bytes, bytes]:
    if sink is None:
        return await process.communicate(stdin)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdin is not None
    process.stdin.close()
    errors = asyncio.ensure_future(process.stderr.read())
    try:
        while piece := await process.stdout.read(1 << 16):
            sink(piece)
        err = await errors
    finally:
        errors.cancel()
    await process.wait()
    return b"", err


async def _end(process: asyncio.subprocess.Process) -> None:
    """End git politely first: on TERM it removes its lock files."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            async with asyncio.timeout(5):
                await process.communicate()
            return
        except TimeoutError:
            continue


def _removed_stale(lock: Path) -> bool:
    """Remove a lock on a ref of ours that no living update can still hold: one takes milliseconds."""
    if _OUR_LOCK.search(str(lock)) is None:
        return False
    try:
        if time.time() - lock.stat().st_mtime < _LOCK_STALE_AFTER:
            return False
        lock.unlink()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _explained(args: tuple[str, ...], done: Done, *, where: Path) -> str:
    words = (printable(done.err) or done.text or f"exit code {done.code}")[-_WORDS_LIMIT:]
    message = f"git {args[0]} failed in {where}: {words}"
    if any(sign in words for sign in _UNWRITABLE):
        message += " (the repository must be writable for this user: attempts are kept in it)"
    if "No space left" in words:
        message += " (free some disk space, then resume)"
    return message
