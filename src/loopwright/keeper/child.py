"""Starts the program of a run: its own session, its own pipes, exactly its own environment. Feeds its stdin."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time

from loopwright.keeper import cgroup
from loopwright.keeper.nursery import forget_signals
from loopwright.keeper.places import MARKER, iso, write_all
from loopwright.keeper.processes import die_with

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import NoReturn

    from loopwright.keeper.nursery import Loaded
    from loopwright.keeper.redact import Redactor
    from loopwright.keeper.spec import Spec


# The child's stdin: numbered writes, each once, logged before they are acknowledged.

WAITING_LIMIT = 16 * 1024 * 1024


class CannotWrite(Exception):
    """The write was refused; nothing was written."""


class Feed:
    """Writes to the child without ever waiting for it."""

    def __init__(self, fd: int, log_path: str, redactor: Redactor) -> None:
        self.fd = fd
        """-1 without a pipe, or after it was closed."""
        self._waiting = bytearray()
        self._close_when_empty = False
        self._closed_by_child = False
        self._numbers: set[int] = set()
        self._redactor = redactor
        self._log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._log_size = os.fstat(self._log).st_size

    @property
    def wants_to_write(self) -> bool:
        """Whether something waits for the child to read."""
        return self.fd >= 0 and bool(self._waiting)

    def write(self, number: int, data: str, *, close: bool, output_at: int) -> bool:
        """Take in a numbered write; False when this number was written before."""
        if number in self._numbers:
            return False
        if not self._closed_by_child:
            if self.fd < 0 or self._close_when_empty:
                raise CannotWrite("the process has no stdin that is open")
            if len(self._waiting) + len(data) > WAITING_LIMIT:
                raise CannotWrite("the process does not read its stdin, and too much waits for it already")
        self._note(number, data, close=close, output_at=output_at)
        self._numbers.add(number)
        self.put(data)
        if close:
            self.close()
        return True

    def put(self, data: str) -> None:
        """Queue a text that has no number: the first input, or the polite interrupt."""
        if self.fd >= 0 and not self._close_when_empty:
            self._waiting += data.encode(errors="surrogateescape")
            self.flush()

    def close(self) -> None:
        """Close stdin once everything is written."""
        self._close_when_empty = True
        self.flush()

    def flush(self) -> None:
        """Write as much as the child takes now."""
        try:
            while self.wants_to_write:
                del self._waiting[: os.write(self.fd, self._waiting[: 64 * 1024])]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._closed_by_child = True
            self._waiting.clear()
            self._close_when_empty = True
        if self._close_when_empty and self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _note(self, number: int, data: str, *, close: bool, output_at: int) -> None:
        shown = self._redactor.redact(data.encode(errors="replace")).decode(errors="replace")
        entry = {"n": number, "data": shown, "close": close, "output_at": output_at, "at": iso(time.time())}
        line = json.dumps(entry).encode() + b"\n"
        try:
            write_all(self._log, line)
            os.fsync(self._log)
        except OSError as problem:
            os.ftruncate(self._log, self._log_size)
            raise CannotWrite(f"the write could not be logged: {problem.strerror}") from problem
        self._log_size += len(line)


# Without it (macOS) the child is waited for at once; orphans are not adopted there, so none have to be.
_WAITS_GENTLY = hasattr(os, "waitid")
PIPE_BYTES = 256 * 1024


class NotStarted(Exception):
    """The program could not be started; the text says why."""


class Child:
    """A started program and our ends of its pipes, none of which blocks."""

    def __init__(
        self,
        spec: Spec,
        *,
        private: dict[str, str],
        umask: int,
        group: str = "",
        loaded: Loaded | None = None,
    ) -> None:
        environment = {**spec.env, MARKER: spec.run_id, **private}
        stdin, self.stdin = os.pipe() if spec.stdin_pipe else (os.open(os.devnull, os.O_RDONLY), -1)
        self.stdout, stdout = _wide_pipe()
        self.stderr, stderr = _wide_pipe()
        trouble, report = os.pipe()
        self._code: int | None = None
        keeper = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            stdio = (stdin, stdout, stderr)
            _become(spec, environment, stdio, report, keeper=keeper, umask=umask, group=group, loaded=loaded)
        for fd in (stdin, stdout, stderr, report):
            os.close(fd)
        said = os.read(trouble, 4096)
        os.close(trouble)
        for fd in (self.stdin, self.stdout, self.stderr):
            if fd >= 0:
                os.set_blocking(fd, False)
        if said:
            os.waitpid(self.pid, 0)
            raise NotStarted(said.decode(errors="replace"))

    def exit_code(self) -> int | None:
        """Return how it ended without reaping it: its pid stays taken, so no other process can be mistaken for it."""
        if self._code is not None or not _WAITS_GENTLY:
            return self._waited_for()
        found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def reap(self) -> None:
        """Let the kernel forget the program, if it has ended."""
        self._waited_for()

    def _waited_for(self) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code


def reap_orphans(child: int) -> None:
    """Wait for adopted processes that ended, but not for the child itself."""
    while _WAITS_GENTLY:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None or found.si_pid == child:
            return
        os.waitpid(found.si_pid, os.WNOHANG)


def _wide_pipe() -> tuple[int, int]:
    ours, theirs = os.pipe()
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        try:
            fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            # The user's allowance for pipes is used up: the usual size works too, only slower.
            return ours, theirs
    return ours, theirs


def _become(
    spec: Spec,
    environment: dict[str, str],
    stdio: tuple[int, int, int],
    report: int,
    *,
    keeper: int,
    umask: int,
    group: str,
    loaded: Loaded | None,
) -> NoReturn:
    what = f"cannot start {spec.argv[0]!r}"
    try:
        die_with(keeper)
        if group:
            cgroup.enter(group)
        os.setsid()
        for target, fd in enumerate(stdio):
            os.dup2(fd, target)
        forget_signals()
        os.umask(umask)
        what = f"cannot enter the working directory {spec.cwd!r}"
        os.chdir(spec.cwd)
        what = f"cannot start {spec.argv[0]!r}"
        if loaded is not None and loaded.fits(spec.argv):
            loaded.become(spec.argv, environment)
        os.execvpe(spec.argv[0], spec.argv, environment)
    except BaseException as problem:  # noqa: BLE001 - between fork and exec nothing else can report it
        reason = _words(problem, spec.argv[0])
        os.write(report, f"{what}: {reason}".encode(errors="replace")[:4000])
    os._exit(127)


def _words(problem: BaseException, program: str) -> str:
    if not isinstance(problem, OSError):
        return str(problem)
    if problem.errno == errno.ENOENT and "/" not in program:
        return "no such file or directory; is it installed, and in the PATH that the run was given?"
    if problem.errno == errno.EACCES:
        return "permission denied; is it an executable file?"
    return os.strerror(problem.errno or 0).lower()
