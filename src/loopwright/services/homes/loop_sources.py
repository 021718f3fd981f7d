"""Tables of single loops in the project's file whose work source is not there: nothing would ever use them."""

import os
import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from loopwright.config.layers import PROJECT_FILE, loop_places
from loopwright.config.nearest import did_you_mean, quoted
from loopwright.ports import Source
from loopwright.services.homes.context import ProjectSettings, here

_MANY: Final = 5000
"""So many names are looked through for the one that may have been meant."""


def unused_loops(found: ProjectSettings, root: Path) -> tuple[str, ...]:
    """Name the tables of loops whose source the checkout does not have, with what may have been meant."""
    places = loop_places(found.text or "", found.file or PROJECT_FILE)
    missing = {source: place for source, place in places.items() if not (root / source).exists()}
    names = tuple(_names(root)) if missing else ()
    return tuple(
        f"{place}: there is no work source {quoted(source)}{did_you_mean(posixpath.normpath(source), names)}, "
        "so these settings of a loop have no effect"
        for source, place in missing.items()
    )


def table_of(found: ProjectSettings, root: Path, source: Source, loop: str) -> str:
    """Return the name of the table of a loop: it may name the folder of the source, or the file in it."""
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
