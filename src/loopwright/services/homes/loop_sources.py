"""The sources of loops: their plans, and tables of the project file without a source."""

import os
import posixpath
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from loopwright.adapters import registry
from loopwright.config.layers import PROJECT_FILE, loop_places
from loopwright.config.nearest import did_you_mean, quoted
from loopwright.core.rows.model import Loop, Plan, Project
from loopwright.ports import Source, Tx
from loopwright.services.homes.caller import environment
from loopwright.services.homes.context import ProjectSettings, here
from loopwright.services.homes.read_only_home import DATABASE, whereabouts

_MANY: Final = 5000
"""The most names that are compared with a possible typing error."""


def unused_loops(found: ProjectSettings, root: Path) -> tuple[str, ...]:
    """Name the tables of loops whose source the checkout does not have, with similar names."""
    places = loop_places(found.text or "", found.file or PROJECT_FILE)
    missing = {source: place for source, place in places.items() if not (root / source).exists()}
    names = tuple(_names(root)) if missing else ()
    return tuple(
        f"{place}: there is no work source {quoted(source)}{did_you_mean(posixpath.normpath(source), names)}, "
        "so these settings of a loop have no effect"
        for source, place in missing.items()
    )


def table_of(found: ProjectSettings, root: Path, source: Source, loop: str) -> str:
    """Return the name of a loop's table: it may name the folder of the source, or the file in it."""
    names = loop_places(found.text or "", found.file or PROJECT_FILE)
    same = (one for one in names if source.canonical(root / one) == root / loop)
    return loop if loop in names else next(same, loop)


def unused_here(found: ProjectSettings) -> tuple[str, ...]:
    """Name them for the repository around the current folder."""
    place = here()
    return unused_loops(found, place.root) if place else ()


def _names(root: Path) -> Iterator[str]:
    count = 0
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(one for one in folders if one not in (".git", "node_modules"))
        for name in (*folders, *sorted(files)):
            count += 1
            if count > _MANY:
                return
            yield Path(folder, name).relative_to(root).as_posix()


# The plans of a source in the home.


def is_home() -> bool:
    """Return whether there is a home: without one nothing has run here yet."""
    root, database = whereabouts(environment(), sys.platform)
    return bool(database) or (root / DATABASE).exists()


def known_path(tx: Tx, root: str, source: str) -> str:
    """Return the path of a source in the home: its canonical one, or that of an older loop."""
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
