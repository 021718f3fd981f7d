"""What people decided while a plan ran, and what stands on its branch that nobody of ours made."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from loopwright.core.policy.rejections import REJECTED
from loopwright.core.rows.events import RecordedEvent

Json = dict[str, Any]

_WORDS: Final = {
    "plan_forced": "let a plan run that its evaluation refuses",
    "plan_rolled_back": "took landed work back",
    "plan_reopened": "opened the plan again",
    "plan_cancelled": "cancelled the plan",
    "plan_verifying": "had the plan judged without what was cancelled",
    "source_edited": "changed the source of the plan",
    "question_answered": "answered a question",
    "limits_set": "set other limits",
    "task_reopened": "had it done again",
    "task_rejected": "rejected it",
    "task_retried": "had it tried again",
    "task_cancelled": "cancelled it",
    "task_taken_over": "took it over",
    "task_handed_back": "handed it back",
    "task_given_back": "gave it back to the machine",
    "results_reviewed": "looked at what landed",
    "discovery_accepted": "accepted work that an agent came upon",
}
_WHY: Final = {
    "reject": "rejected it",
    "rollback": "rolled it back",
    "take_over": "stopped the attempt at it",
}
"""Why a task is done again; those that build on it are, too."""
OVERRIDES: Final = frozenset(_WORDS)
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
        "why": str(told.get("why") or ""),
        "note": _said(told)[:_NOTE],
    }


def _said(told: Mapping[str, Any]) -> str:
    changes = told.get("changes") or ()
    parts = [str(told.get("note") or told.get("reason") or told.get("answer") or ""), *map(str, changes)]
    if allowed := told.get("approved"):
        parts.append(f"it may change {', '.join(allowed)}")
    parts.append(str(told.get("doubt") or ""))
    return "; ".join(filter(None, parts))


def in_words(override: Mapping[str, Any]) -> str:
    """Say on one line what a person did, and what they said."""
    done = _WORDS[override["type"]]
    if override["type"] == "task_reopened":
        # What builds on rejected work is done again without a word about it.
        said = override["note"] or override["why"] != "reject"
        done = (
            _WHY.get(override["why"], done)
            if said
            else "had it done again, because it builds on what was rejected"
        )
    note = " ".join(override["note"].removeprefix(REJECTED).split())
    return f"{done}: {note}" if note else done


def decided(override: Mapping[str, Any], keys: Mapping[str, str]) -> str:
    """Say on one line who did what, when, and about which task; `keys` are the tasks' names by id."""
    about = f"{keys[override['task']]}: " if override["task"] in keys else ""
    return f"{override['at'][:16].replace('T', ' ')} {override['actor']}: {about}{in_words(override)}"


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
