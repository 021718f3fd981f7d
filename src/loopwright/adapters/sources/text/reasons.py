"""Why an item is blocked, in formats that have no place for it but free notes, which belong to people."""

from typing import Final

from loopwright.adapters.sources.text.json_edits import JsonEdits, storable
from loopwright.adapters.sources.text.located import Located

_OURS: Final = "Blocked: "
_BEHIND: Final = f" | {_OURS}"
UNKNOWN: Final = "blocked in the file, without a reason"


def theirs(notes: str) -> str:
    """Return notes without a reason that we wrote."""
    return "" if notes.startswith(_OURS) else notes.partition(_BEHIND)[0]


def has_reason(notes: str) -> bool:
    """Return whether notes contain a reason that we wrote."""
    return theirs(notes) != notes


def reason_in(notes: str) -> str:
    """Return the reason in the notes of a blocked item: ours, or else all that a person wrote."""
    ours = notes.removeprefix(theirs(notes)).removeprefix(_BEHIND).removeprefix(_OURS)
    return (ours if has_reason(notes) else notes).strip() or UNKNOWN


def blocked_note(reason: str) -> str:
    """Return what the notes of a blocked item say."""
    return f"{_OURS}{storable(reason)}"


def tell_reason(edits: JsonEdits, table: Located, reason: str | None) -> None:
    """Write a reason into the notes, behind what a person wrote there; with None take ours out.

    A reason that is nothing but what the person's own notes say is not said again.
    """
    assert isinstance(table.value, dict)
    found = table.value.get("notes")
    present = found.text if found is not None and isinstance(found.value, str) else ""
    person = theirs(present)
    if not person.strip() and reason not in (None, UNKNOWN):
        edits.put(table, "notes", blocked_note(reason or "no reason was given"))
    elif reason and reason not in (UNKNOWN, person.strip()):
        edits.put(table, "notes", f"{person}{_BEHIND}{storable(reason)}")
    elif person:
        edits.put(table, "notes", person)
    elif present:
        edits.drop(table, "notes")
