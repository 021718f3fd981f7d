"""What every command needs first: the settings in force, the home, and the project it was called in."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopwright.cli.surroundings import repository_around
from loopwright.config.layers import PROJECT_FILE
from loopwright.config.resolve import Settings, load
from loopwright.core.errors import NotFound, Refused

if TYPE_CHECKING:
    from loopwright.app import Home
    from loopwright.ports import PlannedWork

OURS = frozenset({"LOOPWRIGHT_FAILPOINT", "LOOPWRIGHT_FAILPOINT_TRACE"})
"""Variables of ours that are no settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A project: a repository, or a folder in it that has a loopwright.toml of its own."""

    root: Path
    subfolder: str


def settings_for(
    *,
    flags: Mapping[str, Any] | None = None,
    plan: "PlannedWork | None" = None,
    plan_name: str = "",
    loop: str = "",
    project_text: str | None = None,
) -> Settings:
    """Return the settings in force for a command; `loop` is its work source, from the top of the repository."""
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    return load(
        os.environ,
        platform=sys.platform,
        flags=given,
        plan=plan,
        plan_name=plan_name,
        loop=loop,
        project_text=project_text,
        ours=OURS,
    )


def called_as() -> str:
    """Return how this program was called, for a note beside a lock; a goal in it may hold anything."""
    from loopwright.adapters.agents.environment import secret_values
    from loopwright.adapters.redaction import redacted

    return redacted(" ".join(sys.argv[:3]), secret_values(os.environ))


def project_text(folder: Path) -> str | None:
    """Return the text of the loopwright.toml in the user's checkout, if there is one."""
    path = folder / PROJECT_FILE
    return path.read_text(encoding="utf-8") if path.is_file() else None


def standing() -> Place | None:
    """Return the repository around the current folder and that folder in it, whether it is a project or not."""
    folder = Path.cwd()
    root = repository_around(folder)
    return Place(root=root, subfolder=_relative(folder, root)) if root else None


def here(plan: Path | None = None) -> Place | None:
    """Return the project around the current folder, without asking git, or the one that a plan lies in.

    A plan is of one project, wherever it is called from; one that lies in no folder of this repository is of the
    project that the user stands in.
    """
    folder = Path.cwd()
    root = repository_around(folder)
    if root is None:
        return None
    mine = _project(folder, root)
    if plan is None:
        return mine
    file = plan.resolve()
    around = file if file.is_dir() else file.parent
    if repository_around(around) != root:
        return mine
    if mine.subfolder and not file.is_relative_to(root / mine.subfolder):
        raise Refused(
            f"{file.relative_to(root)} is not in {mine.subfolder}, which is a project of its own",
            hint=f"run it from the top of the repository, or put it into {mine.subfolder} if it is for that",
        )
    return _project(around, root)


def _project(folder: Path, root: Path) -> Place:
    """Return the nearest folder with a loopwright.toml, from a folder up to the top, which needs none."""
    while folder != root and not (folder / PROJECT_FILE).is_file():
        folder = folder.parent
    return Place(root=root, subfolder=_relative(folder, root))


def _relative(folder: Path, root: Path) -> str:
    relative = folder.relative_to(root)
    return "" if relative == Path() else relative.as_posix()


def look_settings() -> Settings:
    """Return the settings for a command that only looks at a home."""
    place = here()
    return settings_for(project_text=project_text(place.root / place.subfolder) if place else None)


def open_existing(settings: Settings) -> "Home":
    """Open a home that must be there already."""
    from loopwright.app import open_home

    if not settings.values.database and not (settings.home / "loopwright.db").exists():
        raise NotFound(
            "nothing has run here yet", hint="`loopwright run plan.yaml`, or `loopwright demo` to see it"
        )
    return open_home(settings, os.environ, create=False)


def actor() -> str:
    """Name the person who gives a command, for the record."""
    import getpass

    try:
        return f"user:{getpass.getuser()}"
    except (KeyError, OSError):
        return f"user:{os.getuid()}"
