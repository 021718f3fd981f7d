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
from loopwright.core.errors import NotFound

if TYPE_CHECKING:
    from loopwright.app import Home
    from loopwright.ports import PlannedWork

OURS = frozenset({"LOOPWRIGHT_FAILPOINT", "LOOPWRIGHT_FAILPOINT_TRACE"})
"""Variables of ours that are no settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the user stands: a repository and a folder in it."""

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


def here() -> Place | None:
    """Return the repository around the current folder, without asking git: for commands that only look."""
    folder = Path.cwd()
    root = repository_around(folder)
    return Place(root=root, subfolder=_relative(folder, root)) if root else None


def _relative(folder: Path, root: Path) -> str:
    relative = folder.relative_to(root)
    return "" if relative == Path() else relative.as_posix()


def look_settings() -> Settings:
    """Return the settings for a command that only looks at a home."""
    place = here()
    text = project_text(place.root / place.subfolder) if place else None
    if text is None and place is not None and place.subfolder:
        text = project_text(place.root)
    return settings_for(project_text=text)


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
