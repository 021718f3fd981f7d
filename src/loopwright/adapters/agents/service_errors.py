"""What the HTTP status of a model's service means, whichever agent hands it on."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from loopwright.core.values.failures import Failure

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
