"""Which of the gate's files the work that landed in a plan changed: its tests are judged by other rules."""

from collections.abc import Collection
from dataclasses import dataclass

from loopwright.core.rows.model import Attempt
from loopwright.core.values.states import AttemptState
from loopwright.ports import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered:
    """What a question about the result of a plan has to know of them."""

    exempt: tuple[str, ...]
    """Changed with leave: their tests need not all be there still."""
    rewritten: tuple[str, ...]
    """All that were changed: that their tests passed before says nothing of them."""


def steered(tx: Tx, plan_id: str, *, landings: Collection[str | None] | None = None) -> Steered:
    """Return what the plan's tasks changed, or what those did that landed as one of these commits."""
    landed = tx.find(Attempt, plan_id=plan_id, state=AttemptState.LANDED)
    changed = [
        one.gate_files
        for one in landed
        if one.gate_files is not None and (landings is None or one.candidate_sha in landings)
    ]
    exempt = tuple(path for facts in changed for path in facts.exempt)
    pinned = tuple(path for facts in changed for path in facts.pinned)
    return Steered(exempt=exempt, rewritten=(*exempt, *pinned))
