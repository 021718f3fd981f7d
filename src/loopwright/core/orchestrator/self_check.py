"""The controller's self-check before it ends: one clause for each line of the contract."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from loopwright.core.orchestrator.checks import RoadmapView
from loopwright.core.orchestrator.records import ControlState
from loopwright.core.values.round_states import ControllerStage


class Ending(StrEnum):
    """How the controller wants to end."""

    TERMINAL = "terminal success"
    BLOCKED = "blocked"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the check uses, read again from the disk."""

    state: ControlState
    view: RoadmapView | None
    """None if the roadmap cannot be read."""
    is_gated: bool = True
    """Whether the project's own checks passed on the tree of the base branch."""


_CLAUSES: Final[Mapping[str, tuple[Ending, Callable[[Facts], bool]]]] = MappingProxyType(
    {
        "state.json active_rounds is empty": (Ending.TERMINAL, lambda facts: not facts.state.active_rounds),
        "the active roadmap has no unfinished milestones": (
            Ending.TERMINAL,
            lambda facts: facts.view is not None and not facts.view.unfinished,
        ),
        "no roadmap update is active": (Ending.TERMINAL, lambda facts: facts.state.roadmap_update is None),
        "no resume error is unresolved": (Ending.TERMINAL, lambda facts: not facts.state.errors),
        "the checks of the whole passed on the base branch": (
            Ending.TERMINAL,
            lambda facts: facts.is_gated,
        ),
        "a precise error is in state.json resume_errors.controller": (
            Ending.BLOCKED,
            lambda facts: bool((facts.state.resume_errors or {}).get("controller", "").strip()),
        ),
        "the state is consistent and saved": (
            Ending.INTERRUPTED,
            lambda facts: (
                facts.state.controller_stage is not ControllerStage.DONE or not facts.state.active_rounds
            ),
        ),
    }
)
CLAUSES: Final = MappingProxyType({text: ending for text, (ending, _) in _CLAUSES.items()})
"""The clauses, each with the ending that needs it."""


def failed_clauses(ending: Ending, facts: Facts) -> tuple[str, ...]:
    """Return the clauses that do not hold for an ending; empty if the controller may end in that way."""
    return tuple(text for text, (of, holds) in _CLAUSES.items() if of is ending and not holds(facts))
