"""An adapter under test."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from loopwright.ports import Agent, able
from loopwright.testing.conformance.behaviours import BEHAVIOURS

PROGRAM: Final = "{program}"
"""Stands in a subject's options for the path of the program to start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An adapter with a program that plays its agent."""

    name: str
    agent: Agent
    stand_in: Path
    """A Python program of the standard library only. Its first argument is what to play, the rest the adapter's own."""
    cannot: Mapping[str, str] = field(default_factory=dict)
    """Behaviours that the protocol cannot express, each with the reason."""
    options: Mapping[str, Any] = field(default_factory=lambda: {"binary": PROGRAM})
    """The options that make the adapter start a certain program."""

    def __post_init__(self) -> None:
        """Refuse a name that would leave nothing out."""
        unknown = sorted(set(self.cannot) - set(BEHAVIOURS))
        if unknown:
            raise ValueError(
                f"there is no behaviour {', '.join(unknown)}; known are: {', '.join(BEHAVIOURS)}"
            )

    def excuse(self, behaviour: str) -> str:
        """Say why this subject is not asked for a behaviour; empty when it is."""
        needs = BEHAVIOURS[behaviour].needs
        if behaviour not in self.cannot and needs and needs not in self.can:
            return f"it does not have the capability `{needs}`"
        return self.cannot.get(behaviour, "")

    @property
    def can(self) -> frozenset[str]:
        """What its agent can do, set up as it is here."""
        return able(self.agent, self.options)

    def behaviours(self) -> tuple[str, ...]:
        """Return what this subject is asked for."""
        return tuple(name for name in BEHAVIOURS if not self.excuse(name))


def filled(value: Any, program: str) -> Any:
    """Put the program's path into options."""
    match value:
        case str():
            return value.replace(PROGRAM, program)
        case list() | tuple():
            return [filled(one, program) for one in value]
        case Mapping():
            return {name: filled(one, program) for name, one in value.items()}
        case _:
            return value
