"""Find the projects of a folder: those of its own checkout, else those of its repository's other checkouts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loopwright.core.rows.model import Plan, Project
from loopwright.ports import Tx

Checkouts = str | Sequence[str]
"""The top folders of a repository's checkouts, with that of the command first."""


def project_ids(tx: Tx, checkouts: Checkouts) -> list[str]:
    """Return the projects of the first checkout, or of the others if it has none."""
    own, *others = [checkouts] if isinstance(checkouts, str) else checkouts
    found = tx.find(Project, path=own) or (tx.find(Project, path=others) if others else [])
    return [one.id for one in found]


def state_place(project: Project) -> Path:
    """Return where the state files of a project are written."""
    return Path(project.path) / project.state_folder


def recent_plans(tx: Tx, *, project_path: Checkouts | None = None, limit: int | None = 50) -> list[Plan]:
    """Return plans, newest first, of one project or of the whole home."""
    where: dict[str, Any] = {}
    if project_path is not None:
        where["project_id"] = project_ids(tx, project_path)
    return tx.find(Plan, order_by=("-created_at",), limit=limit, **where)
