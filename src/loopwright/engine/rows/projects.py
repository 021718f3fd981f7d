"""Which projects a folder belongs to: those of its own checkout, else those of its repository's other checkouts."""

from collections.abc import Sequence

from loopwright.core.rows.model import Project
from loopwright.ports import Tx

Checkouts = str | Sequence[str]
"""The top folders of a repository's checkouts, the one that a command was called in first."""


def project_ids(tx: Tx, checkouts: Checkouts) -> list[str]:
    """Return the projects of the first checkout, or of the others where it has none."""
    own, *others = [checkouts] if isinstance(checkouts, str) else checkouts
    found = tx.find(Project, path=own) or (tx.find(Project, path=others) if others else [])
    return [one.id for one in found]
