"""What every command needs first: the current settings, the home, and the current project."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from loopwright.adapters.git import GitRepository
from loopwright.config.layers import PROJECT_FILE
from loopwright.config.resolve import Settings, load
from loopwright.core.values.errors import BadConfig, NotARepository, NotFound, Refused
from loopwright.services.homes.caller import caller_name, current_folder, environment
from loopwright.services.homes.repository import repository_around

if TYPE_CHECKING:
    from loopwright.app import Home
    from loopwright.ports import PlannedWork

OURS = frozenset({"LOOPWRIGHT_FAILPOINT", "LOOPWRIGHT_FAILPOINT_TRACE"})
"""Variables of Loopwright that are not settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A project: a repository, or a folder in it with its own loopwright.toml."""

    root: Path
    subfolder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSettings:
    """The project file that counts."""

    text: str | None = None
    file: str | None = None
    """Its path in the repository; None if there is no such file."""
    committed: bool = False
    """Whether it was read from a commit; the checkout's file counts only if the commit has none."""
    given: bool = False
    """Whether the user named it with --settings."""

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.file if self.given and self.file is not None else PROJECT_FILE


def settings_for(
    *,
    flags: Mapping[str, Any] | None = None,
    plan: "PlannedWork | None" = None,
    plan_name: str = "",
    loop: str = "",
    project_text: str | None = None,
    project_name: str = PROJECT_FILE,
) -> Settings:
    """Return the current settings for a command; `loop` is its work source, relative to the top of the repository."""
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    return load(
        environment(),
        platform=sys.platform,
        flags=given,
        plan=plan,
        plan_name=plan_name,
        loop=loop,
        project_text=project_text,
        project_name=project_name,
        ours=OURS,
    )


def called_as() -> str:
    """Return this process's command line, for a note beside a lock; secrets in it are redacted."""
    # Only a process that holds the home writes such a note.
    from loopwright.adapters.agents.environment import secret_values
    from loopwright.adapters.processes.redaction import redacted

    words = ["--notify=***" if one.startswith("--notify=") else one for one in sys.argv[:3]]
    return redacted(" ".join(words), secret_values(environment()))


def project_text(folder: Path) -> str | None:
    """Return the text of the loopwright.toml in the user's checkout, if there is one."""
    path = folder / PROJECT_FILE
    return path.read_text(encoding="utf-8") if path.is_file() else None


def standing() -> Place | None:
    """Return the repository around the current folder and that folder in it, even if it is not a project."""
    folder = current_folder()
    root = repository_around(folder)
    return Place(root=root, subfolder=_relative(folder, root)) if root else None


def here(plan: Path | None = None) -> Place | None:
    """Return the project around the current folder, without asking git, or the one around a plan.

    A plan belongs to one project, wherever the command runs. One outside this repository belongs to the
    project around the current folder.
    """
    folder = current_folder()
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
            f"{file.relative_to(root)} is not in {mine.subfolder}, which is a separate project",
            code="other_project",
            hint=f"run it from the top of the repository, or put it into {mine.subfolder} if it is for that",
        )
    return _project(around, root)


def _project(folder: Path, root: Path) -> Place:
    """Return the nearest parent folder with a loopwright.toml; the top needs none."""
    while folder != root and not (folder / PROJECT_FILE).is_file():
        folder = folder.parent
    return Place(root=root, subfolder=_relative(folder, root))


def _relative(folder: Path, root: Path) -> str:
    relative = folder.relative_to(root)
    return "" if relative == Path() else relative.as_posix()


def look_settings(file: Path | None = None) -> Settings:
    """Return the settings for a command outside a plan: those that a plan would start with now."""
    found = settings_here(file)
    return settings_for(project_text=found.text, project_name=found.name)


def settings_here(file: Path | None = None) -> ProjectSettings:
    """Return the current project file: the one that the user names, else HEAD's, else the checkout's."""
    if file is not None:
        return given_settings(file)
    place = here()
    if place is None:
        return ProjectSettings()
    committed = _text_at_head(place)
    return (
        ProjectSettings(text=committed, file=project_file(place), committed=True)
        if committed is not None
        else settings_in_checkout(place)
    )


def given_settings(file: Path) -> ProjectSettings:
    """Return the settings of a file that the user names."""
    try:
        return ProjectSettings(text=file.read_text(encoding="utf-8"), file=str(file), given=True)
    except (OSError, UnicodeDecodeError) as broken:
        raise BadConfig(
            f"{file} cannot be read: {broken}",
            code="settings_unreadable",
            hint="name a file in the form of loopwright.toml",
        ) from broken


def settings_in_checkout(place: Place) -> ProjectSettings:
    """Return the loopwright.toml of the checkout, if there is one."""
    text = project_text(place.root / place.subfolder)
    return ProjectSettings(text=text, file=project_file(place)) if text is not None else ProjectSettings()


def project_file(place: Place) -> str:
    """Return where the project file of a place is, relative to the repository."""
    return (Path(place.subfolder) / PROJECT_FILE).as_posix()


def changed_settings(found: ProjectSettings) -> tuple[str, ...]:
    """Return a note if the checkout's project file differs from the commit's, which counts."""
    place = here()
    if place is None or not found.committed or found.text is None:
        return ()
    lying = project_text(place.root / place.subfolder)
    same = lying is not None and lying.splitlines() == found.text.splitlines()
    return () if same else (uncommitted_settings(project_file(place)),)


def uncommitted_settings(file: str) -> str:
    """Return the note that the project file of the checkout does not count, and what to do."""
    return f"{file} has uncommitted changes; commit them or pass --settings FILE"


def _text_at_head(place: Place) -> str | None:
    """Return the project file of HEAD; None if there is none, or no commit, or no git."""
    # Outside a repository nothing is started.
    import subprocess

    from loopwright.adapters.git.plumbing.runner import config_flags, user_env

    asked = ("cat-file", "blob", f"HEAD:{project_file(place)}")
    try:
        done = subprocess.run(
            ["git", *config_flags(), "-C", str(place.root), *asked],
            env=user_env(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        return done.stdout.decode() if done.returncode == 0 else None
    except (OSError, UnicodeDecodeError):
        return None


def open_existing(settings: Settings) -> "Home":
    """Open an existing home."""
    # Settings alone do not need the parts of a worker.
    from loopwright.app import open_home

    file = settings.home / "loopwright.db"
    # The store reports the backup of a missing database.
    if (
        not settings.values.database
        and not file.exists()
        and not any(settings.home.glob(f"{file.name}.backup-*"))
    ):
        raise NotFound(
            "nothing has run here yet",
            code="no_home",
            hint="`loopwright run plan.yaml`, or `loopwright demo` to see it",
        )
    return open_home(settings, environment(), create=False)


def actor() -> str:
    """Return the name of the person who runs a command, for the record."""
    # Only a decision names its actor.
    import getpass

    if (name := caller_name()) is not None:
        return name
    try:
        return f"user:{getpass.getuser()}"
    except (KeyError, OSError):
        return f"user:{os.getuid()}"


# A quick read of the repository around the current folder that leaves no trace in the home.


def needed_place(plan: Path | None = None) -> Place:
    """Return the project around the current folder, or of a plan, or raise with what to do."""
    return _needed(here(plan))


def needed_folder() -> Place:
    """Return the current folder in its repository, or raise with what to do."""
    return _needed(standing())


def _needed(place: Place | None) -> Place:
    if place is None:
        raise NotARepository(
            f"{current_folder()} is not in a git repository",
            code="not_a_repository",
            hint="change into your project, or `git init` and commit something first",
        )
    return place


@contextmanager
def glance_at(root: Path) -> Iterator[GitRepository]:
    """Open a repository for a quick read; its temporary files are removed."""
    with TemporaryDirectory(prefix="loopwright-glance-") as scratch:
        yield GitRepository(root, project_id="glance", home=Path(scratch))
