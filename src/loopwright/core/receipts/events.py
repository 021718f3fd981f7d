"""What a receipt takes from a plan's events: decisions of users, and changes to the user's checkout."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from loopwright.core.policy.rejections import REJECTED
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.values.shapes import RunId, Sha, TaskId, one_of

CHECKOUT_CHANGED: Final = "checkout_changed"
WHOSE: Final[Mapping[str, str]] = {
    "agent": "the agent's own transcript names your checkout",
    "unknown": "nothing shows that it was the agent",
    "contained": "the agent's sandbox keeps it out of there",
}
"""Who may have changed the checkout, in words."""
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
    "discovery_accepted": "accepted work that an agent found",
}
_WHY: Final = {
    "reject": "rejected it",
    "rollback": "rolled it back",
    "take_over": "stopped the attempt at it",
}
"""Why a task, and each task that builds on it, is done again."""
OVERRIDES: Final = frozenset(_WORDS)
"""Events that record a decision if their actor is a user."""
_NOTE: Final = 2_000
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedLanding:
    """A landed commit that a rollback removed."""

    task: TaskId
    sha: Sha


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """One decision of a user."""

    type: Annotated[str, one_of(OVERRIDES)]
    actor: str
    at: str
    task: TaskId | None
    why: str
    commit: Sha | None
    """The commit of a rollback."""
    took_out: tuple[RemovedLanding, ...]
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckoutChange:
    """One change to the user's checkout while an agent ran; the home keeps its patch."""

    at: str
    task: TaskId | None
    run: RunId
    whose: Annotated[str, one_of(WHOSE)]
    changes: tuple[str, ...]
    patch_sha256: Sha | None


def overrides(events: Iterable[RecordedEvent], *, machine: str) -> list[Override]:
    """Return the decisions of users, in order."""
    return [_override(one) for one in events if one.type in OVERRIDES and one.actor != machine]


def _override(event: RecordedEvent) -> Override:
    told = event.payload
    return Override(
        type=event.type,
        actor=event.actor,
        at=event.at.isoformat(),
        task=event.task,
        commit=told.get("commit") if event.type == "plan_rolled_back" else None,
        took_out=tuple(RemovedLanding(**one) for one in told.get("took_out") or ()),
        why=str(told.get("why") or ""),
        note=_said(told)[:_NOTE],
    )


def _said(told: Mapping[str, Any]) -> str:
    changes = told.get("changes") or ()
    parts = [str(told.get("note") or told.get("reason") or told.get("answer") or ""), *map(str, changes)]
    if allowed := told.get("approved"):
        parts.append(f"it may change {', '.join(allowed)}")
    parts.append(str(told.get("doubt") or ""))
    return "; ".join(filter(None, parts))


def in_words(override: Override) -> str:
    """Return on one line what a user did, and their note."""
    done = _WORDS[override.type]
    if override.type == "task_reopened":
        # A task that builds on rejected work is done again without a note.
        said = override.note or override.why != "reject"
        done = (
            _WHY.get(override.why, done)
            if said
            else "had it done again, because it builds on what was rejected"
        )
    note = " ".join(override.note.removeprefix(REJECTED).split())
    return f"{done}: {note}" if note else done


def decided(override: Override, keys: Mapping[str, str]) -> str:
    """Return on one line who decided what, when, and about which task; `keys` are the tasks' names by id."""
    about = f"{keys[override.task]}: " if override.task and override.task in keys else ""
    return f"{override.at[:16].replace('T', ' ')} {override.actor}: {about}{in_words(override)}"


def checkout_changes(events: Iterable[RecordedEvent]) -> list[CheckoutChange]:
    """Return each change to the checkout, in order."""
    return [
        CheckoutChange(
            at=one.at.isoformat(),
            task=one.task,
            run=one.run or "",
            whose=one.payload["whose"],
            changes=tuple(one.payload["changes"]),
            patch_sha256=one.payload.get("patch_sha256"),
        )
        for one in events
        if one.type == CHECKOUT_CHANGED
    ]


def kept_patches(changes: Iterable[CheckoutChange]) -> list[CheckoutChange]:
    """Return the changes whose patch was kept: the last one of each run."""
    latest = {one.run: one for one in changes}
    return [one for one in latest.values() if one.patch_sha256]


def checkout_notes(changes: Iterable[CheckoutChange]) -> list[str]:
    """Return a sentence for each change to the checkout."""
    notes = []
    for one in changes:
        named = "; ".join(one.changes[:_SHOWN]) + (" …" if len(one.changes) > _SHOWN else "")
        notes.append(f"the checkout changed while {one.run} ran: {named} ({WHOSE[one.whose]})")
    return notes
