"""What people decided while a plan ran, and what stands on its branch that nobody of ours made."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from loopwright.core.happenings import RecordedEvent

Json = dict[str, Any]

OVERRIDES: Final = frozenset(
    {
        "plan_forced",
        "plan_rolled_back",
        "plan_reopened",
        "task_reopened",
        "task_rejected",
        "task_retried",
        "task_cancelled",
        "task_taken_over",
        "task_handed_back",
        "task_given_back",
        "results_reviewed",
    }
)
"""Events that tell of a decision, where a person is their actor."""
_NOTE: Final = 2_000


def overrides(events: Iterable[RecordedEvent], *, machine: str) -> list[Json]:
    """Return what people decided, in order."""
    return [_override(one) for one in events if one.type in OVERRIDES and one.actor != machine]


def _override(event: RecordedEvent) -> Json:
    told = event.payload
    return {
        "type": event.type,
        "actor": event.actor,
        "at": event.at.isoformat(),
        "task": event.task,
        "commit": told.get("commit") if event.type == "plan_rolled_back" else None,
        "took_out": [dict(one) for one in told.get("took_out") or ()],
        "note": str(told.get("note") or told.get("reason") or "")[:_NOTE],
    }


def taken_out(receipt: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the commits that take landings back by what the receipt says, each with what it takes back."""
    return {
        one["commit"]: sorted(pair["sha"] for pair in one["took_out"])
        for one in receipt["overrides"]
        if one["commit"] is not None
    }


def override_differences(receipt: Mapping[str, Any], found: Mapping[str, Sequence[str]] | None) -> list[str]:
    """Compare what was taken back by a person's word with what the branch says; None when nobody looked there."""
    if found is None:
        return []
    said = taken_out(receipt)
    return [
        f"commit {sha} takes back {', '.join(sorted(found.get(sha, ()))) or 'nothing'}, but the receipt says: "
        + (", ".join(said.get(sha, ())) or "nothing")
        for sha in dict.fromkeys((*said, *found))
        if said.get(sha, []) != sorted(found.get(sha, ()))
    ]
