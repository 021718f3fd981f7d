"""What a receipt says of the user's own checkout: how it changed while agents ran, whoever did it."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from loopwright.core.rows.events import RecordedEvent

Json = dict[str, Any]

CHECKOUT_CHANGED: Final = "checkout_changed"

WHOSE: Final[Mapping[str, str]] = {
    "agent": "the agent's own transcript names your checkout",
    "unknown": "nothing shows that it was the agent",
    "contained": "the agent's sandbox keeps it out of there",
}
_SHOWN: Final = 5


def checkout_changes(events: Iterable[RecordedEvent]) -> list[Json]:
    """Return each change that was noticed, in order; its patch lies in the home."""
    return [
        {
            "at": one.at.isoformat(),
            "task": one.task,
            "run": one.run,
            "whose": one.payload["whose"],
            "changes": list(one.payload["changes"]),
            "patch_sha256": one.payload.get("patch_sha256"),
        }
        for one in events
        if one.type == CHECKOUT_CHANGED
    ]


def kept_patches(body: Mapping[str, Any]) -> list[Json]:
    """Return the changes whose patch was kept; of one run there is one patch, that of the last look."""
    latest = {one["run"]: one for one in body["checkout_changes"]}
    return [one for one in latest.values() if one["patch_sha256"]]


def checkout_notes(body: Mapping[str, Any]) -> list[str]:
    """Name each change: what else was done on the machine, nobody has looked at."""
    notes = []
    for one in body["checkout_changes"]:
        named = "; ".join(one["changes"][:_SHOWN]) + (" …" if len(one["changes"]) > _SHOWN else "")
        notes.append(f"the checkout changed while {one['run']} ran: {named} ({WHOSE[one['whose']]})")
    return notes
