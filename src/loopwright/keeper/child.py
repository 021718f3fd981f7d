"""Starts the program of a run: its own session, its own pipes, exactly its own environment."""

from __future__ import annotations

import errno
import fcntl
import os

from loopwright.keeper import cgroup
from loopwright.keeper.loaded import forget_signals
from loopwright.keeper.places import MARKER
from loopwright.keeper.processes import die_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from loopwright.keeper.loaded import Loaded
    from loopwright.keeper.spec import Spec

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
