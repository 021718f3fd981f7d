"""What the HTTP status of a model's service means, whichever agent hands it on."""

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
    """Say what kind of failure a status is; None when it tells nothing, or is no status at all."""
    if status is None:
        return None
    return Failure.OVERLOADED if 500 <= status < 600 else _BY_STATUS.get(status)
