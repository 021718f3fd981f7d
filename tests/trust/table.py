"""All behaviours, and what the documentation says about them from what was seen."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.trust import (
    honest_work,
    lies_around_gates,
    lies_around_the_checks,
    lies_by_chance,
    lies_by_leaving_out,
    lies_in_the_work,
    lies_to_gates,
    lies_to_the_harness,
)
from tests.trust.behaviour import QUESTION, Behaviour
from tests.trust.mechanisms import MECHANISMS

PARTS = (
    lies_to_gates.STAGES,
    lies_around_gates.STAGES,
    lies_by_leaving_out.STAGES,
    lies_in_the_work.STAGES,
    lies_around_the_checks.STAGES,
    lies_by_chance.STAGES,
    lies_to_the_harness.STAGES,
    honest_work.STAGES,
)
STAGES = {name: stage for part in PARTS for name, stage in part.items()}


def from_reports(seen: Sequence[tuple[Any, bool]]) -> dict[str, Any]:
    """Return the table of a run of the suite; of a behaviour that was believed it has nothing."""
    return as_table({key: came_of_it for (key, came_of_it), passed in seen if passed})


def as_table(seen: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return every behaviour with what it does, what decided about it, how its attempts ended, and what caught it."""
    behaviours = {key: one for stage in STAGES.values() for key, one in stage.behaviours.items()}
    return {
        key: {
            "says": one.says,
            "decision": decision(one),
            **seen[key],
            "caught": MECHANISMS[one.caught].says,
        }
        for key, one in behaviours.items()
    }


def decision(behaviour: Behaviour) -> str:
    """Return what decided about a behaviour: a check that rejects it, a person, a reviewer, or no more than a note."""
    if behaviour.ends[-1] == QUESTION:
        return "question"
    if behaviour.ends[-1] is not None:
        return "rejected"
    if behaviour.outcome == "verified_with_gaps":
        return "gap"
    return MECHANISMS[behaviour.caught].decides or "landed"
