"""The one place that starts git, with an environment that nothing from outside bends."""

import asyncio
import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Final

from loopwright.adapters.git.plumbing.names import printable
from loopwright.adapters.git.plumbing.started import Started
from loopwright.core.values.errors import GitFailed, UserError

# The environment that git processes get: ours to the last variable, so nothing from outside bends a command.

OVERRIDES: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.filesRefLockTimeout=1000",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "log.showSignature=false",
    "submodule.recurse=false",
    "advice.addEmbeddedRepo=false",
    # Only local paths that we name ourselves are ever fetched from: no network, no helper programs.
    "protocol.allow=never",
    "protocol.file.allow=always",
)
"""Settings that win over every configuration file."""

_KEPT: Final = ("HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME")
_KEPT_FOR_USER: Final = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")


def config_flags() -> tuple[str, ...]:
    """Return the overrides as git's own command line takes them."""
    return tuple(part for setting in OVERRIDES for part in ("-c", setting))


@cache
def _absolute(path: str) -> str:
    """Leave out relative entries: they would find programs in the folder that git runs in, perhaps an agent's."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if Path(entry).is_absolute())


def _plain() -> dict[str, str]:
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    env["PATH"] = _absolute(os.environ.get("PATH", os.defpath))
    env |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_PAGER": "cat"}
    env["GIT_NO_REPLACE_OBJECTS"] = "1"
    return env


def user_env() -> dict[str, str]:
    """Return the environment for the user's own repository: their configuration, our overrides."""
    return _plain() | {name: os.environ[name] for name in _KEPT_FOR_USER if name in os.environ}


def own_env(git_dir: Path, *, work_tree: Path | None = None, index: Path | None = None) -> dict[str, str]:
    """Return the environment for a git dir that we wrote: no configuration but its own."""
    env = _plain() | {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_DIR": str(git_dir),
        "GIT_LFS_SKIP_DOWNLOAD_ERRORS": "1",
    }
    if work_tree is not None:
        env["GIT_WORK_TREE"] = str(work_tree)
    if index is not None:
        env["GIT_INDEX_FILE"] = str(index)
    return env


def workspace_env(path: Path) -> Mapping[str, str]:
    """Return the variables for work in a workspace, so that git never looks above it."""
    parents = dict.fromkeys((str(path.parent), str(path.parent.resolve())))
    return {
        "GIT_CEILING_DIRECTORIES": os.pathsep.join(parents),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "true",
        "GIT_SEQUENCE_EDITOR": "true",
    }


OLDEST: Final = (2, 38)
"""The first git whose `merge-tree` merges without a work tree."""

_LOCKED = re.compile(r"Unable to create '(.+?\.lock)': File exists")
_LOCK_PATIENCE: Final = 2.0
_LONGEST_PAUSE: Final = 0.5
_MOST_KILLS: Final = 3
"""So often in a row a command that was killed is run again."""
_TIME_LIMIT: Final = 900.0
_UNWRITABLE = ("Permission denied", "Read-only file system", "insufficient permission")
_WORDS_LIMIT: Final = 2000
_NEW_ENOUGH: set[str] = set()
"""The programs that were asked for their version: each is asked once."""


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
    """Runs git with our own environment, and turns its refusals into `GitFailed`."""

    def __init__(self, started: Started | None = None) -> None:
        self._noted = started
        self.processes = 0
        """How many git commands were started."""

    async def run(
        self,
        *args: str,
        env: Mapping[str, str],
        cwd: Path | None = None,
        stdin: bytes | IO[bytes] = b"",
        ok: Collection[int] = (0,),
        sink: Callable[[bytes], object] | None = None,
        locks: Sequence[Path] = (),
    ) -> Done:
        """Run one command; raise `GitFailed` unless its exit code is in `ok`.

        A git that was killed is run again: each command finds its own work when it is repeated. A lock that another
        git holds is waited for briefly. `locks` are those that the command takes: where one of our dead gits left
        one of them, it is removed. With `sink`, output goes there piece by piece.
        """
        if _found(env.get("PATH", os.defpath)) not in _NEW_ENOUGH:
            await self._check_version(env)
        give_up_at = time.monotonic() + _LOCK_PATIENCE
        kills, pause = 0, 0.05
        while True:
            if self._noted is not None and locks:
                self._noted.remove_left(locks)
            done = await self._start(
                (*config_flags(), *args), env=env, cwd=cwd, stdin=stdin, sink=sink, locks=locks
            )
            if done.code in ok:
                return done
            locked = _LOCKED.search(done.err)
            if done.code < 0 and kills < _MOST_KILLS and sink is None and isinstance(stdin, bytes):
                kills += 1
            elif locked is None:
                raise GitFailed(_explained(args, done, where=cwd or Path(env.get("GIT_DIR", "."))))
            elif time.monotonic() >= give_up_at:
                raise GitFailed(
                    f"git {args[0]} could not continue: {locked.group(1)} is held by another git. If no git is running"
                    " in this repository, a killed one left it behind: delete that file and retry."
                )
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _check_version(self, env: Mapping[str, str]) -> None:
        done = await self._start(("version",), env=env, cwd=None, stdin=b"", sink=None)
        found = re.search(r"(\d+)\.(\d+)", done.text)
        if found is None or (int(found[1]), int(found[2])) < OLDEST:
            raise UserError(
                f"this machine's git is too old: {done.text or 'no version'}",
                code="git_too_old",
                hint=f"Install git {OLDEST[0]}.{OLDEST[1]} or newer.",
            )
        _NEW_ENOUGH.add(_found(env.get("PATH", os.defpath)))

    async def _start(
        self,
        args: tuple[str, ...],
        *,
        env: Mapping[str, str],
        cwd: Path | None,
        stdin: bytes | IO[bytes],
        sink: Callable[[bytes], object] | None,
        locks: Sequence[Path] = (),
    ) -> Done:
        folder = cwd or Path("/")
        self.processes += 1
        # In a thread with plain blocking calls: asyncio's own processes cost several times as much to start.
        noted = self._noted if locks else None
        running = _Running(args, env=env, folder=folder, stdin=stdin, sink=sink, noted=noted, locks=locks)
        work = asyncio.get_running_loop().run_in_executor(None, running.finish)
        try:
            async with asyncio.timeout(_TIME_LIMIT):
                return await asyncio.shield(work)
        except TimeoutError as error:
            raise GitFailed(f"git {' '.join(args[-4:])} took longer than {_TIME_LIMIT:.0f} s") from error
        finally:
            if not work.done():
                await _end(running, work)


class _Running:
    """One git process."""

    def __init__(
        self,
        args: tuple[str, ...],
        *,
        env: Mapping[str, str],
        folder: Path,
        stdin: bytes | IO[bytes],
        sink: Callable[[bytes], object] | None,
        noted: Started | None,
        locks: Sequence[Path],
    ) -> None:
        self._args = args
        self._env = env
        self._folder = folder
        self._stdin = stdin
        self._sink = sink
        self._noted = noted
        self._locks = locks
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._unwanted = False

    def finish(self) -> Done:
        """Start it and wait for its end, in a thread."""
        process = self._started()
        # Before it is told what to do: `update-ref` takes no lock as long as its input is empty.
        note = self._noted.note(process.pid, self._locks) if self._noted is not None else None
        with process:
            out, err = self._communicate(process)
        if self._noted is not None and note is not None:
            self._noted.ended(note, process.returncode)
        return Done(code=process.returncode, out=out, err=err.decode("utf-8", "surrogateescape"))

    def signal(self, number: int) -> None:
        """Send a signal to its group, or keep it from being started."""
        with self._lock:
            self._unwanted = True
            if self._process is not None and self._process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._unwanted:
                raise GitFailed("git was not started: its caller was cancelled")
            try:
                self._process = subprocess.Popen(
                    ["git", *self._args],
                    # Looked up once: each folder of PATH that has no git would cost a failed start.
                    executable=_found(self._env.get("PATH", os.defpath)),
                    env=dict(self._env),
                    cwd=self._folder,
                    stdin=self._input(),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
            except (FileNotFoundError, NotADirectoryError) as error:
                if not self._folder.is_dir():
                    raise GitFailed(f"the folder {self._folder} does not exist") from error
                raise UserError(
                    "git was not found on this machine",
                    code="git_missing",
                    hint=f"Install git {OLDEST[0]}.{OLDEST[1]} or newer and see that it is on PATH.",
                ) from error
            except PermissionError as error:
                raise GitFailed(f"git cannot be run in {self._folder}: {error.strerror}") from error
            return self._process

    def _input(self) -> int | IO[bytes]:
        if isinstance(self._stdin, bytes):
            return subprocess.PIPE if self._stdin else subprocess.DEVNULL
        return self._stdin

    def _communicate(self, process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
        text = self._stdin if isinstance(self._stdin, bytes) else b""
        if self._sink is None:
            return process.communicate(text or None)
        out, err = process.stdout, process.stderr
        assert out is not None
        assert err is not None
        if process.stdin is not None:
            # What goes in beside a long output is short: it fits into the pipe.
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(text)
                process.stdin.close()
        errors: list[bytes] = []
        listening = threading.Thread(target=lambda: errors.append(err.read()))
        listening.start()
        try:
            while piece := os.read(out.fileno(), 1 << 16):
                self._sink(piece)
        finally:
            listening.join()
        process.wait()
        return b"", b"".join(errors)


@functools.cache
def _found(path: str) -> str:
    return shutil.which("git", path=path) or "git"


async def _end(running: _Running, work: "asyncio.Future[Done]") -> None:
    """End git politely first: on TERM it removes its lock files."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        running.signal(number)
        await asyncio.wait([work], timeout=5)
        if work.done():
            break
    if work.done() and not work.cancelled():
        work.exception()  # read here, because nothing else does


def _explained(args: tuple[str, ...], done: Done, *, where: Path) -> str:
    words = (printable(done.err) or done.text or f"exit code {done.code}")[-_WORDS_LIMIT:]
    message = f"git {args[0]} failed in {where}: {words}"
    if any(sign in words for sign in _UNWRITABLE):
        message += " (the repository must be writable for this user: attempts are kept in it)"
    if "No space left" in words:
        message += " (free some disk space, then resume)"
    return message
