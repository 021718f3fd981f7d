"""Opening a request once, whatever the forge calls it and however often it is asked for."""

from collections.abc import Awaitable, Callable

from loopwright.adapters.forge.api import Conflict
from loopwright.core.values.errors import Refused
from loopwright.ports import Request, Wanted


async def find_or_create(
    wanted: Wanted,
    *,
    find: Callable[[Wanted], Awaitable[Request | None]],
    create: Callable[[Wanted], Awaitable[Request]],
    refusal: str,
) -> Request:
    """Return the open request of this branch into its base, or a new one; raise `Refused`, beginning with `refusal`."""
    known = await find(wanted)
    if known is not None:
        return known
    try:
        return await create(wanted)
    except Conflict as conflict:
        # Somebody may have opened it in this moment.
        known = await find(wanted)
        if known is not None:
            return known
        raise Refused(
            f"{refusal} of {wanted.branch} into {wanted.base}: {conflict}",
            code="pull_request_refused",
            hint=f"see that the branch {wanted.base} is there, and that it lacks what the other one has",
        ) from conflict
