"""Starts keepers without loading the program each time: one process has it loaded, and forks for every start.

It never reads a spec itself, so nothing of one run can be found in the memory of another run's keeper.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys

from loopwright.keeper import places

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


# A program that the nursery has loaded for all runs: a child that is to be it need not start an interpreter
# for it.
#
# Loading takes five times the processor time of what it then does in a small gate. Linux alone: elsewhere a
# process that was forked and not started by exec may not use every part of the system.

_FIRST_FD = 3
_LAST_FD = 1 << 20


class Loaded:
    """One program, found by the command line that would start it."""

    def __init__(self, path: str, main: Callable[[str], int]) -> None:
        self._command = [sys.executable, "-I", "-S", path]
        self._main = main

    def fits(self, argv: list[str]) -> bool:
        """Return whether this command line is that program with one argument."""
        return len(argv) == len(self._command) + 1 and argv[:-1] == self._command

    def become(self, argv: list[str], environment: dict[str, str]) -> NoReturn:
        """Be that program in this process, which was forked for it. Its stdio and folder are as they should be."""
        # Above all the lock of the run: a child that held it would be taken for the keeper.
        os.closerange(_FIRST_FD, _LAST_FD)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = argv[-2:]
        status = 1
        try:
            status = self._main(argv[-1])
        except BaseException:  # noqa: BLE001 - told where the program itself would tell it
            # Only a failure needs it, and every run pays for what is loaded.
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)


def load(path: str) -> Loaded | None:
    """Load a program; None where it has to be started as usual."""
    if sys.platform != "linux":
        return None
    # Other platforms do without it.
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("loaded", path)
    if spec is None or spec.loader is None:
        return None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return Loaded(path, module.main)


def forget_signals() -> None:
    """Take every signal as a fresh process would."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGPIPE, signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


OPTION = "--nursery"
NOTE = b"+"
"""What a connection is handed over with: a descriptor cannot travel alone."""
END = b"\0"
"""Stands after the directory in what is asked, and before the exit status at the end of what is answered."""
REAP_MS = 50


def tend(start: Callable[[str, bytes], int]) -> NoReturn:
    """Serve every connection that comes over stdin, until its other end is closed."""
    gc.freeze()
    line = socket.socket(fileno=0)
    poll = select.poll()
    poll.register(line, select.POLLIN)
    starting = 0
    while True:
        # By the clock and not by signal: a forked process finds every signal as a fresh process would.
        ready = poll.poll(REAP_MS if starting else None)
        starting -= _reaped()
        if not ready:
            continue
        note, connections, _, _ = socket.recv_fds(line, len(NOTE), 1)
        if not note:
            os._exit(0)
        for connection in connections:
            starting += _fork(connection, start)


def everything_on_stdin() -> bytes:
    """Read until the other end says that this was all."""
    pieces = []
    while piece := os.read(0, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces)


def _fork(connection: int, start: Callable[[str, bytes], int]) -> int:
    """Leave a connection to a new process; return how many came of it."""
    try:
        pid = os.fork()
    except OSError:
        pid = -1  # closed without an answer, which its other end knows how to deal with
    if pid == 0:
        _serve(connection, start)
    os.close(connection)
    return int(pid > 0)


def _serve(connection: int, start: Callable[[str, bytes], int]) -> NoReturn:
    """Be what a process of its own would be: the spec on stdin, the reason of a failure on stderr."""
    status, starter = places.REFUSED, os.getpid()
    try:
        # In the place of the line to the worker, of which a keeper must not hold an end.
        for target in (0, 2):
            os.dup2(connection, target)
        os.close(connection)
        directory, _, spec = everything_on_stdin().partition(END)
        status = start(os.fsdecode(directory), spec)
    except BaseException:  # noqa: BLE001 - reported to the caller, as the interpreter would
        # Only a failure needs it, and every run pays for what is loaded.
        import traceback

        traceback.print_exc()
    finally:
        # A keeper that failed on its first steps comes by here too, and has nothing to answer.
        if os.getpid() == starter:
            sys.stderr.flush()
            os.write(2, END + str(status).encode())
        os._exit(status)


def _reaped() -> int:
    count = 0
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return count
        if not pid:
            return count
        count += 1
