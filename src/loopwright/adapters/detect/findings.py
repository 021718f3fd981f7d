"""What a survey of a repository finds, as values."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from loopwright.core.values.policy import GateCommand

MAX_READ: Final = 1024 * 1024
Which = Callable[[str], str | None]
"""Finds a program, as `shutil.which` does."""
Purpose = Literal["test", "lint", "types", "build"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The files of a repository: their names, and their contents on request."""

    root: Path
    files: frozenset[str]
    """Relative to the root, with forward slashes."""
    which: Which

    def has(self, *names: str) -> str | None:
        """Return the first of these files that exists."""
        return next((name for name in names if name in self.files), None)

    def read(self, name: str) -> str:
        """Return the start of a file's text, empty when it cannot be read."""
        path = self.root / name
        # A tracked file may be deleted in the checkout, and a pipe would block: they say nothing.
        if not path.is_file():
            return ""
        try:
            with path.open("rb") as file:
                return file.read(MAX_READ).decode("utf-8", "replace")
        except PermissionError:
            return ""

    def matching(self, matches: Callable[[str], bool]) -> list[str]:
        """Return the files whose path matches, sorted."""
        return sorted(name for name in self.files if matches(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedGate:
    """A check that the repository seems to have."""

    purpose: Purpose
    name: str
    command: str
    why: str
    """Which file says so."""
    programs: tuple[str, ...]
    """Programs that must be installed for it, besides what the setup command installs."""
    missing: tuple[str, ...] = ()
    """Those of them that were not found."""
    timeout_s: float = 600.0
    junit: str | None = None

    def gate(self) -> GateCommand:
        """Return the gate that would be written into the project file."""
        return GateCommand(name=self.name, command=self.command, timeout_s=self.timeout_s, junit=self.junit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ecosystem:
    """What one language or build tool contributes."""

    language: str
    why: str
    dependencies: str | None = None
    """The command that installs what the project needs."""
    setup: str | None = None
    """The command that installs or builds the project itself, in every workspace."""
    setup_why: str = ""
    gates: tuple[ProposedGate, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """Everything that was found."""

    languages: tuple[str, ...]
    dependencies: str | None
    setup: str | None
    setup_why: str
    env_files: tuple[str, ...]
    """Untracked environment files of the checkout, which a fresh workspace would lack."""
    gates: tuple[ProposedGate, ...]
    notes: tuple[str, ...]
    """Sentences that a person should read."""

    @property
    def preparation(self) -> str:
        """What a fresh workspace needs, in one command; empty when that is nothing."""
        return " && ".join(filter(None, (self.dependencies, self.setup)))

    @property
    def has_tests(self) -> bool:
        """Whether any proposed gate runs tests."""
        return any(gate.purpose == "test" for gate in self.gates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What running a proposed gate on the present tree gave."""

    passed: bool
    reason: str = ""
    """Why it did not pass."""


def table(value: Any, *keys: str) -> dict[str, Any]:
    """Return the table at a path inside parsed data, empty when there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
