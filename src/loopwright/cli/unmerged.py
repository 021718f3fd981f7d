"""Branches of plans that a checkout does not have yet: what they say of a source is not in its file."""

import os
import sys

from loopwright.adapters.git import GitRepository
from loopwright.cli.looking import DATABASE, glancing, whereabouts
from loopwright.core.model import Loop, Plan, Project
from loopwright.ports import Tx


async def unmerged(repository: GitRepository, base: str, root: str, source: str) -> str | None:
    """Return the branch of the newest plan of a source that wrote its status there, if the base does not have it."""
    home, database = whereabouts(os.environ, sys.platform)
    if not database and not (home / DATABASE).exists():
        return None
    with glancing() as look:
        found = look.store.read_sync(lambda tx: _newest(tx, root, source))
    tip = await repository.known_commit(found.result_sha) if found and found.result_sha else None
    if found is None or tip is None or await repository.is_ancestor(tip, base):
        return None
    return found.branch


def _newest(tx: Tx, root: str, source: str) -> Plan | None:
    projects = [one.id for one in tx.find(Project, path=root)]
    loops = [one.id for one in tx.find(Loop, project_id=projects, source_path=source)]
    plans = tx.find(Plan, loop_id=loops, order_by=("-created_at",), limit=1)
    return plans[0] if plans and plans[0].books else None
