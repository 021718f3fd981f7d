"""What the way in which a process ended says by itself, for every kind of agent."""

import errno
from signal import Signals
from typing import Final

from loopwright.core.values.failures import Failure
from loopwright.ports import Exit

_NOT_FOUND: Final = frozenset({126, 127})
"""How a shell says that a program is missing or may not be run."""
_ENDING: Final = frozenset(
    Signals[f"SIG{name}"].value
    for name in (
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
        "TERM", "XCPU", "XFSZ", "SYS",
    )
)  # fmt: skip
"""By which programs come to their end. A shell adds 128 to them; other codes in that range are a program's own, such as
the status of its service, of which 8 bits are left."""


def ended_by_us(exit: Exit) -> tuple[Failure, str] | None:
    """Return why the run was ended from outside, or None when the process ended on its own terms."""
    match exit.ended_by:
        case "not_started" if f"[Errno {errno.ENOSPC}]" in exit.error:
            # The disk, not the program: once there is room again it starts.
            return Failure.ENVIRONMENT, exit.error
        case "not_started":
            return Failure.CANNOT_START, exit.error or "the program could not be started"
        case "asked":
            return Failure.CANCELLED, "it was asked to stop"
        case "deadline":
            return Failure.TIMEOUT, "it did not finish within its time limit"
        case "idle":
            return Failure.HANG, "it showed no sign of life and was ended"
        case "lost":
            return Failure.CRASH, exit.error or "its keeper is gone and left no exit status"
        case _:
            return None


def is_signal(code: int | None) -> bool:
    """Return whether an exit code means a signal, directly or as a shell reports it."""
    return code is not None and (code < 0 or code - 128 in _ENDING)


def is_missing_program(code: int | None) -> bool:
    """Return whether an exit code means that the program was not found or is not executable."""
    return code in _NOT_FOUND


def in_words(code: int | None) -> str:
    """Return an exit code in words."""
    if code is None:
        return "ended without an exit code"
    return f"was ended by signal {-code}" if code < 0 else f"exited with code {code}"
