"""What the end of a process, or the HTTP status of a service, says by itself, for every kind of agent."""

import errno
import re
from collections.abc import Mapping
from signal import Signals
from types import MappingProxyType
from typing import Final

from loopwright.core.values.failures import Failure
from loopwright.ports import Exit

# What the HTTP status of a model's service means, whichever agent hands it on.

_BY_STATUS: Final[Mapping[int, Failure]] = MappingProxyType(
    {
        401: Failure.AUTH,
        402: Failure.BILLING,
        403: Failure.AUTH,
        404: Failure.MODEL,
        413: Failure.CONTEXT,
        429: Failure.RATE_LIMIT,
    }
)


def by_status(status: int | None) -> Failure | None:
    """Return what kind of failure a status is; None when it tells nothing, or is not a status at all."""
    if status is None:
        return None
    return Failure.OVERLOADED if 500 <= status < 600 else _BY_STATUS.get(status)


# Spans of time in a service's own words, whichever agent hands them on.

_PART: Final = re.compile(
    r"(\d{1,9}(?:\.\d{1,9})?)\s?(ms|d|h|m|s)(?:ays?|ours?|rs?|inutes?|ins?|econds?|ecs?)?(?![a-z])"
)
_RESETS_IN: Final = re.compile(
    rf"\b(?:resets?|retry|try again) (?:after|in) (?P<span>{_PART.pattern}(?:[ ,]*(?:and )?{_PART.pattern}){{0,4}})",
    re.IGNORECASE,
)
_SECONDS: Final = MappingProxyType({"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0})
_FARTHEST_S: Final = 40 * 86_400.0
"""Further ahead no limit ends."""


def resets_in(text: str) -> float | None:
    """Return how many seconds a text like `will reset after 8h44m7s` means."""
    found = _RESETS_IN.search(text)
    if found is None:
        return None
    told = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(found["span"]))
    return told if told <= _FARTHEST_S else None


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
