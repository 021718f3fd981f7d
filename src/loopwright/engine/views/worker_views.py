"""Which workers of a home are alive."""

from loopwright.core.rows.model import Worker
from loopwright.ports import Membership, Tx


def live_workers(tx: Tx, membership: Membership) -> list[Worker]:
    """Return the live workers: the one that holds the home's lock, or those whose lease is running."""
    if not membership.exclusive:
        return leased_workers(tx)
    # It renews no lease: the lock shows that it is alive. A killed worker's row stays until the next one joins.
    holder = membership.holder() or {}
    return [one for one in tx.find(Worker) if one.pid == holder.get("pid") and one.slots]


def leased_workers(tx: Tx) -> list[Worker]:
    """Return the workers whose lease is running, by the database's clock."""
    now = tx.now()
    return [one for one in tx.find(Worker, order_by=("started_at",)) if one.lease_until > now and one.slots]
