"""Being the worker of a home, and what it exports."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from loopwright.core.replies.discoveries import Discovery
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.rows.model import Loop, Plan, Project
from loopwright.core.rows.row_types import Row


class Membership(Protocol):
    """Who may work in a home at the same time."""

    exclusive: bool
    """True: one worker at a time, known by a held lock. False: many, known by their leases."""

    def acquire(self, note: Mapping[str, Any]) -> bool:
        """Become a worker, leaving a note for others; False when one is there already."""

    def holder(self) -> Mapping[str, Any] | None:
        """Return the note of the live holder, None if it is free."""

    def beat(self) -> None:
        """Show that this process makes progress in the home that it holds."""

    def beats(self) -> int:
        """Return a number that changes as long as the holder makes progress."""

    def end_holder(self) -> int | None:
        """End the process that holds the home, and return its id; None if it is not one of this machine."""

    def release(self) -> None:
        """Let others in, and attend nothing any more."""

    def attend(self, project_id: str) -> None:
        """Ask for the work of a project until `release` or the end of this process, even if another holds the home."""

    def attended(self, project_id: str) -> bool:
        """Return whether a live process asks for the work of a project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedPlan:
    """A plan as it was exported: all that is needed to make its rows again."""

    project: Project
    loop: Loop
    plan: Plan
    rows: tuple[Row | Discovery, ...]
    """All others that belong to it."""
    events: tuple[RecordedEvent, ...]
    """What its rows came to be by, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedProject:
    """A project as it was exported, with its loops."""

    project: Project
    loops: tuple[Loop, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What the state folders of a repository have."""

    plans: tuple[ExportedPlan, ...] = ()
    projects: tuple[ExportedProject, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Files that are damaged, each with the reason."""
    last_event: int = 0
    """The highest number of any event in it."""


class StateFiles(Protocol):
    """Files in a project's state folder: an export of the rows, read back only to make lost rows again."""

    async def beside(self, write: Callable[[], object]) -> None:
        """Call these methods without holding up the event loop; a caller that is cancelled waits for the end too."""

    def put(
        self, folder: Path, kind: str, id: str, document: Mapping[str, Any], *, durably: bool = True
    ) -> Path:
        """Write one document atomically; an unsafe id is refused. What is only of the moment need not be durable."""

    def put_text(self, folder: Path, kind: str, name: str, text: str, *, durably: bool = True) -> Path:
        """Write one file of text atomically; an unsafe name is refused."""

    def put_top(self, folder: Path, name: str, text: str) -> None:
        """Write a file beside the folders, unless it is like that already; what is of the moment is not durable."""

    def put_private(self, path: Path, text: str) -> None:
        """Write a file that only the user can read, unless it is like that already."""

    def append_events(self, folder: Path, events: Sequence[RecordedEvent]) -> None:
        """Append events to the day's file; those that are there already are not written again."""

    def exported(self, project: Path) -> Exported:
        """Return what was exported of a repository's projects, to make their rows again."""


class DependencyCache(Protocol):
    """Installed dependencies of projects, each kept under a key that says what they were made of."""

    def has(self, project_id: str, key: str) -> bool:
        """Return whether the dependencies of this key are here."""

    def filling(self, key: str) -> AbstractAsyncContextManager[None]:
        """Return a lock: one workspace installs, and the others with the same key wait for the result."""

    async def lay(self, project_id: str, key: str, tree: Path, tracked: Collection[str]) -> None:
        """Copy the dependencies of this key into a tree, in place of what is untracked at their paths.

        All of them or none: raise `OSError` where that fails, or where a tracked file is in their way.
        """

    async def untracked(self, tree: Path, tracked: Collection[str]) -> frozenset[str]:
        """Return what a tree has beside its tracked files, folders as one path where that is possible."""

    async def keep(self, project_id: str, key: str, tree: Path, paths: Collection[str]) -> None:
        """Keep these paths of a tree under this key."""
