"""Why an item is blocked, in formats that have no place for it but free notes, which belong to people."""

from typing import Final

from loopwright.adapters.sources.json_edits import JsonEdits, storable
from loopwright.adapters.sources.located import Located

_OURS: Final = "Blocked: "


def theirs(notes: str) -> str:
    """Return notes without a reason that we wrote."""
    return "" if notes.startswith(_OURS) else notes


def reason_in(notes: str) -> str:
    """Return the reason that stands in the notes of a blocked item."""
    return notes.removeprefix(_OURS).strip() or "blocked in the file, without a reason"


def blocked_note(reason: str) -> str:
    """Return what the notes of a blocked item say."""
    return f"{_OURS}{storable(reason)}"


def tell_reason(edits: JsonEdits, table: Located, reason: str) -> None:
    """Write a reason into the notes, or with none take ours out; what a person wrote there stays."""
    assert isinstance(table.value, dict)
    found = table.value.get("notes")
    present = found.text if found is not None and isinstance(found.value, str) else ""
    if theirs(present).strip():
        return
    if reason:
        edits.put(table, "notes", blocked_note(reason))
    elif present:
        edits.drop(table, "notes")
