"""What the documentation says about the adapters, from the results of the suite."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.contracts.agents.subjects import SUBJECTS

from loopwright.testing.conformance import BEHAVIOURS


def from_reports(seen: Sequence[tuple[Any, bool]]) -> dict[str, Any]:
    """Return the table of a run of the suite."""
    return as_table({(subject, behaviour): passed for (subject, behaviour), passed in seen})


def as_table(kept: Mapping[tuple[str, str], bool]) -> dict[str, Any]:
    """Return every behaviour with its sentence, and for each adapter what it kept, broke, or is not asked for."""
    return {
        "behaviours": {name: behaviour.says for name, behaviour in BEHAVIOURS.items()},
        "adapters": {
            subject.name: {
                name: {"excuse": subject.excuse(name)}
                if subject.excuse(name)
                else {"kept": kept[subject.name, name]}
                for name in BEHAVIOURS
            }
            for subject in SUBJECTS
        },
    }
