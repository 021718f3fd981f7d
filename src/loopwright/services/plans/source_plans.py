"""The plans that a source became, as the home knows them."""

import sys
from collections.abc import Sequence
from pathlib import Path

from loopwright.adapters import registry
from loopwright.core.rows.model import Loop, Plan, Project
from loopwright.ports import Tx
from loopwright.services.homes.caller import environment
from loopwright.services.homes.read_only_home import DATABASE, whereabouts


def is_home() -> bool:
    """Return whether there is a home: without one nothing has run here yet."""
    root, database = whereabouts(environment(), sys.platform)
    return bool(database) or (root / DATABASE).exists()


def known_path(tx: Tx, root: str, source: str) -> str:
    """Return the path by which the home knows a source: its canonical one, or the one that an older loop has."""
    projects = [one.id for one in tx.find(Project, path=root)]
    loops = tx.find(Loop, project_id=projects, order_by=("created_at",))
    if any(one.source_path == source for one in loops):
        return source
    kinds = {one.kind: one for one in registry.sources()}
    meant = Path(root) / source
    same = (
        one.source_path
        for one in loops
        if one.source_kind in kinds
        and kinds[one.source_kind].canonical(Path(root) / one.source_path) == meant
    )
    return next(same, source)


def plans_of(tx: Tx, root: str, source: str) -> Sequence[Plan]:
    """Return the plans of a source, named relative to its repository, the newest first."""
    projects = [one.id for one in tx.find(Project, path=root)]
    loops = [one.id for one in tx.find(Loop, project_id=projects, source_path=known_path(tx, root, source))]
    return tx.find(Plan, loop_id=loops, order_by=("-created_at",))
