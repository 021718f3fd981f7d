"""Start a keeper: `python -I -S <this file> <run directory>`, with the spec as JSON on stdin.

It returns at once when the keeper holds the run's lock (0), when another one does (10), or when the run has
ended already (11); anything else is a failure with its reason on stderr. With `--nursery` instead of a directory it
stays and does this for every connection that it is handed, until its parent is gone; a program named after
that is loaded once, for all runs that are to start it.
"""

from __future__ import annotations

import os
import sys

# Isolated mode leaves our own folder out. At the end of the path it cannot stand in front of the standard library.
sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

import signal
import socket
import time

from loopwright.keeper import cgroup, home, nursery, places
from loopwright.keeper.desk import listen
from loopwright.keeper.keeping import Keeper
from loopwright.keeper.nursery import Loaded, load
from loopwright.keeper.processes import Tree
from loopwright.keeper.spec import BadSpec, Spec
from loopwright.keeper.status import Status, read_status

LOCK_S = 0.25
PAUSE_S = 0.01
SWEEP_S = 5.0


def main(directory: str, told: bytes, loaded: Loaded | None = None) -> int:
    """Take the run's lock and leave a keeper behind."""
    try:
        spec = Spec(told)
    except BadSpec as problem:
        sys.stderr.write(f"{problem}\n")
        return places.REFUSED
    umask = os.umask(0o077)
    os.chdir("/")
    lock = os.open(os.path.join(directory, places.LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    # A reader holds it only for a moment: wait for that.
    if not places.take(lock, LOCK_S):
        return places.HELD
    if os.path.exists(os.path.join(directory, places.EXIT)):
        return places.ENDED_ALREADY
    try:
        _put_earlier_life_away(directory, spec.run_id)
        places.write_json(directory, places.SPEC, spec.shown())
        places.reserve(directory, places.RESERVE, places.RESERVE_BYTES)
        places.reserve(directory, places.EXIT_RESERVE, places.EXIT_RESERVE_BYTES)
        status = Status(directory, spec.run_id)
        # Before the fork: a worker that knows that the keeper was started can call it.
        listener = listen(directory, places.SOCKET)
        log = os.open(os.path.join(directory, places.LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as problem:
        sys.stderr.write(f"the run directory cannot be used: {problem}\n")
        return places.REFUSED
    if os.fork():
        # The lock belongs to the open file, which the keeper has too: it stays taken.
        return places.STARTED
    os.setsid()
    # Before stderr is let go of, on whose end our caller waits: then it can read who keeps the run.
    status.keeper_started()
    null = os.open(os.devnull, os.O_RDWR)
    for target, fd in ((0, null), (1, null), (2, log)):
        os.dup2(fd, target)
    os.close(null)
    os.close(log)
    _keep(directory, spec, status, listener, umask=umask, loaded=loaded)
    # Interpreter shutdown could only fail; everything that matters is on disk.
    os._exit(0)


def _keep(
    directory: str,
    spec: Spec,
    status: Status,
    listener: socket.socket,
    *,
    umask: int,
    loaded: Loaded | None,
) -> None:
    try:
        Keeper(directory, spec, status, listener, umask=umask, loaded=loaded).run()
    except BaseException:  # noqa: BLE001 - a keeper that fails must not leave the tree running
        import traceback  # it loads the tokenizer too, which a keeper has no other use for

        problem = traceback.format_exc()
        sys.stderr.write(problem)
        sys.stderr.flush()
        _kill_left(directory, spec.run_id)
        _give_up(directory, spec.run_id, problem.strip().splitlines()[-1])


def _give_up(directory: str, run_id: str, problem: str) -> None:
    places.remove(os.path.join(directory, places.RESERVE))
    places.write_exit(
        directory,
        {
            "version": 1,
            "run_id": run_id,
            "code": None,
            "ended_by": "lost",
            "started_at": None,
            "ended_at": places.iso(time.time()),
            "output_bytes": 0,
            "output_sha256": "",
            "dropped_bytes": 0,
            "error": f"the keeper failed: {problem}",
        },
    )
    if trouble := home.put_away(directory):
        sys.stderr.write(f"{trouble}\n")


def _put_earlier_life_away(directory: str, run_id: str) -> None:
    """Make room after a keeper that was lost: end what it left, and move what it wrote aside."""
    if not os.path.exists(os.path.join(directory, places.STATUS)):
        return
    _kill_left(directory, run_id)
    places.remove_tree(os.path.join(directory, places.TMP))
    if trouble := home.put_away(directory):
        sys.stderr.write(f"{trouble}\n")
    earlier = os.path.join(directory, places.EARLIER)
    os.makedirs(earlier, exist_ok=True)
    shelf = os.path.join(earlier, str(len(os.listdir(earlier)) + 1))
    os.mkdir(shelf)
    # The status goes last: with it the directory still counts as lost, and this is done again.
    for name in (places.OUTPUT, places.WRITES, places.LOG, places.SPEC, places.STATUS):
        if os.path.exists(os.path.join(directory, name)):
            os.rename(os.path.join(directory, name), os.path.join(shelf, name))
    places.remove(os.path.join(directory, places.SOCKET))


def _kill_left(directory: str, run_id: str) -> None:
    cgroup.end(read_status(directory).get("cgroup", ""), run_id)
    tree = Tree(run_id)
    until = time.monotonic() + SWEEP_S
    while (living := tree.living()) and time.monotonic() < until:
        tree.signal(living, signal.SIGKILL)
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    if sys.argv[1] == nursery.OPTION:
        program = load(sys.argv[2]) if len(sys.argv) > 2 else None
        nursery.tend(lambda directory, told: main(directory, told, program))
    sys.exit(main(os.path.abspath(sys.argv[1]), nursery.everything_on_stdin()))
