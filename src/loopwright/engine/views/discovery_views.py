"""How much other work a plan's agents came upon: apart from its decisions, since every look at a plan asks it."""

from loopwright.core.replies.discoveries import Discovery, same_work
from loopwright.core.values.states import DiscoveryState
from loopwright.ports import Tx


def count_open(tx: Tx, plan_id: str) -> int:
    """Return how many pieces of work a plan's agents came upon that nobody has decided about."""
    rows = tx.find(Discovery, plan_id=plan_id, state=DiscoveryState.OPEN)
    return len({same_work(one.title) for one in rows})
