"""Starts keepers without loading the program each time: one process has it loaded, and forks for every start.

It never reads a spec itself, so nothing of one run can be found in the memory of another run's keeper.
"""

from __future__ import annotations

import gc
import os
import select
import socket
import sys

from loopwright.keeper import places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

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
