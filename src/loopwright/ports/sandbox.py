"""Containing what a run starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from loopwright.core.values.containment import Containment, HomeView, MadeWith


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What one process may reach. The rest of the machine it can only read, other people's secrets not even that."""

    directory: Path
    """The run's own directory. Only what is private to the process is seen of it: its TMPDIR and its HOME."""
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    """The programs on its PATH stay in sight."""
    argv: tuple[str, ...] = ()
    """What is started; files that it names stay in sight."""
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    """In sight, wherever they lie."""
    hidden: tuple[Path, ...] = ()
    """Out of sight, except for what the other fields name inside of them."""
    home: HomeView | None = None
    network: bool = True


class Sandbox(Protocol):
    """Keeps a process from everything that it does not need."""

    @property
    def level(self) -> Containment:
        """How strong it is."""

    @property
    def made_with(self) -> MadeWith | None:
        """What it is made with; None where there is none."""

    def view(self, home: HomeView | None) -> HomeView | None:
        """Return as much of a HOME as is to be seen in here."""

    def prefix(self, reach: Reach) -> tuple[str, ...]:
        """Return the words to put before a command's own, so that it is contained; none where nothing contains it."""

    def denial(self, output: Sequence[str], reach: Reach) -> str | None:
        """Return which refusal of the sandbox a program's last words complain of, and the setting that allows it."""


class NoSandbox:
    """Contains nothing."""

    level = Containment.NONE
    made_with: MadeWith | None = None

    def view(self, home: HomeView | None) -> HomeView | None:
        """Return it as it is."""
        return home

    def prefix(self, reach: Reach) -> tuple[str, ...]:  # noqa: ARG002 - it may reach everything
        """Return nothing to put before it."""
        return ()

    def denial(self, output: Sequence[str], reach: Reach) -> str | None:  # noqa: ARG002
        """Return None: nothing is refused."""
        return None
