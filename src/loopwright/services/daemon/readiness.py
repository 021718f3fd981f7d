"""Whether a daemon could start work now."""

from loopwright.adapters.home.membership import LockedMembership
from loopwright.core.values.errors import StoreUnavailable
from loopwright.services.homes.session import Session


async def why_not_ready(at: Session) -> str:
    """Return why no work could start now; empty if it could."""
    try:
        await at.home.store.read(lambda tx: tx.now())
    except StoreUnavailable as gone:
        return f"the database cannot be used: {gone}"
    membership = at.home.membership
    if isinstance(membership, LockedMembership) and not membership.holds():
        holder = (membership.holder() or {}).get("pid")
        return f"process {holder} works in this home; the daemon takes over when it lets go"
    return ""
