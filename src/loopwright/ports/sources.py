"""Where work comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from loopwright.core.policy import GateCommand, HeldOut


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTask:
    """A task as a source gives it."""

    key: str
    title: str
    description: str = ""
    criteria: tuple[str, ...] = ()
    acceptance: tuple[GateCommand, ...] = ()
    held_out: tuple[HeldOut, ...] = ()
    depends_on: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    priority: int = 50
    max_attempts: int | None = None
    agent: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWork:
    """A plan as a source gives it."""

    title: str
    tasks: tuple[PlannedTask, ...]
    gates: tuple[GateCommand, ...] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    sha256: str
    """Of the source's bytes."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """Where in the source each setting is written, and who does each task (`tasks.KEY`)."""
    held_files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """The contents of held-out files, by their hash."""


class Source(Protocol):
    """Reads work in one format."""

    kind: str

    def read(self, path: Path) -> PlannedWork:
        """Return the work, or raise `BadPlan` with located problems."""
