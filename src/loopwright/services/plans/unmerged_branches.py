"""Branches of plans that a checkout does not have yet: what they say of a source is not in its file."""

from loopwright.adapters.git import GitRepository
from loopwright.core.rows.model import Plan
from loopwright.ports import Tx
from loopwright.services.homes.read_only_home import glancing
from loopwright.services.plans.source_plans import is_home, plans_of


async def unmerged(repository: GitRepository, base: str, root: str, source: str) -> str | None:
    """Return the branch of the newest plan of a source that wrote its status there, if the base does not have it.

    A base that has the same changes as a squash has it, too.
    """
    if not is_home():
        return None
    with glancing() as look:
        found = look.store.read_sync(lambda tx: _newest(tx, root, source))
    tip = await repository.known_commit(found.result_sha) if found and found.result_sha else None
    if found is None or tip is None or await repository.proven(tip, base):
        return None
    return found.branch


def _newest(tx: Tx, root: str, source: str) -> Plan | None:
    plans = plans_of(tx, root, source)
    return plans[0] if plans and plans[0].books else None
