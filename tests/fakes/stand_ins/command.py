"""Plays a program that knows nothing of us: `python command.py BEHAVIOUR`, the prompt on stdin.

Only what an exit code and output can say. The rest, with the reason, is in the table at the end.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def done() -> None:
    """Do the work."""
    Path("made.txt").write_text("made\n", encoding="utf-8")
    say("made.txt is made")


def garbage() -> None:
    """Print what nobody can read, then do the work."""
    sys.stderr.buffer.write(b'{"gibberish": \n\xff\xfe\x00 gibberish \x1b[31m\n' + b"[" * 5000 + b"\n")
    sys.stderr.flush()
    done()


def huge_output() -> None:
    """Print 20 MB, then do the work."""
    for _ in range(20 * 64):
        sys.stdout.write("x" * (16 * 1024 - 1) + "\n")
    done()


def children() -> None:
    """Leave a process behind that goes on writing."""
    quiet = subprocess.DEVNULL
    late = "while :; do echo late >> late.txt; sleep 0.02; done"
    child = subprocess.Popen(
        ["/bin/sh", "-c", late], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
    )
    child.returncode = 0  # it is meant to outlive us
    while not Path("late.txt").exists():
        time.sleep(0.005)
    done()


def work() -> None:
    """Work until somebody stops it."""
    n = 0
    while True:
        say(f"working {n}")
        n += 1
        time.sleep(0.05)


def ignores_sigint() -> None:
    """Work on, whatever is politely asked."""
    for polite in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(polite, signal.SIG_IGN)
    work()


def interrupt() -> None:
    """Work until it is interrupted, then end in order."""
    try:
        work()
    except KeyboardInterrupt:
        say("interrupted")


def crash_mid_write() -> None:
    """Die in the middle of a line."""
    sys.stdout.write("the work is alm")
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def hang() -> None:
    """Show no sign of life."""
    signal.pause()


PARTS = {
    "done": done,
    "garbage": garbage,
    "huge_output": huge_output,
    "children": children,
    "ignores_sigint": ignores_sigint,
    "interrupt": interrupt,
    "crash_mid_write": crash_mid_write,
    "hang": hang,
}

_EXIT_CODE = "its exit code is all that it says"
CANNOT = {
    **dict.fromkeys(
        ("limit", "rate_limit", "overloaded", "auth", "billing", "model", "context", "refusal", "tool"),
        _EXIT_CODE,
    ),
    "overload_then_done": "whatever it does before its end is its own affair",
    "unknown_events": "it has no events, only lines",
    "error_result": "with an exit code of 0 it says that all is well",
    "zero_on_sigterm": "with an exit code of 0 it says that all is well",
    "done_then_hang": "it says that it is done by ending",
    "stopped_after_done": "it says that it is done by ending",
}


if __name__ == "__main__":
    sys.stdin.read()
    PARTS[sys.argv[1]]()
