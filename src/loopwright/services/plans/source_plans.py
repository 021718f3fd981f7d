"""The plans that a source became, as the home knows them."""

import sys
from collections.abc import Sequence

from loopwright.core.rows.model import Loop, Plan, Project
from loopwright.ports import Tx
from loopwright.services.homes.caller import environment
from loopwright.services.homes.read_only_home import DATABASE, whereabouts


def is_home() -> bool:
    """Return whether there is a home: without one nothing has run here yet."""
    root, database = whereabouts(environment(), sys.platform)
    return bool(database) or (root / DATABASE).exists()


def plans_of(tx: Tx, root: str, source: str) -> Sequence[Plan]:
    """Return the plans of a source, named relative to its repository, the newest first."""
    projects = [one.id for one in tx.find(Project, path=root)]
    loops = [one.id for one in tx.find(Loop, project_id=projects, source_path=source)]
    return tx.find(Plan, loop_id=loops, order_by=("-created_at",))
