"""Find out which run of Loopwright a process belongs to: this one, or the one behind a connection."""

import os
from collections.abc import Iterable
from typing import Final

import psutil

_MARKER: Final = "LOOPWRIGHT_RUN"
"""Every process of a run inherits this variable from its keeper; its value is the id of the run."""

Address = tuple[str, int]


def own_run() -> str | None:
    """Return the run that this process belongs to.

    Some agents give their tools an environment without the marker, so parent processes are checked too.
    """
    return os.environ.get(_MARKER) or _run_above(psutil.Process())


def is_inside_run() -> bool:
    """Return whether this process or a parent of it has the marker of a run."""
    return own_run() is not None


def run_of_client(client: Address, server: Address) -> str | None:
    """Return the run that the process at the other end of a connection on this machine belongs to.

    None for a process of another machine or another user.
    """
    for pid in _holders(client[1], server[1]):
        try:
            process = psutil.Process(pid)
            return process.environ().get(_MARKER) or _run_above(process)
        except psutil.Error:
            continue  # it has just ended, or belongs to another user: a run's processes belong to this user
    return None


def _run_above(process: psutil.Process) -> str | None:
    for above in process.parents():
        try:
            if run := above.environ().get(_MARKER):
                return run
        except psutil.Error:
            continue  # as above
    return None


def _holders(client_port: int, server_port: int) -> Iterable[int]:
    """Return the processes that hold the client's end of a connection."""
    for one in psutil.net_connections("tcp"):
        ends = (one.laddr.port, one.raddr.port) if one.laddr and one.raddr else None
        if ends == (client_port, server_port) and one.pid is not None:
            yield one.pid
