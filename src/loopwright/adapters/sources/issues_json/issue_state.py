"""Exported issues as data: where they are, what they are called, and their state."""

import re
from collections import Counter
from typing import Any, Final

from loopwright.adapters.sources.lists.status_words import mark_of, waiting_reason
from loopwright.adapters.sources.lists.work_items import slug
from loopwright.adapters.sources.text.json_edits import JsonEdits, storable
from loopwright.adapters.sources.text.located import Located, inner
from loopwright.ports import ItemProgress, Mark

OURS: Final = "loopwright"
"""The key of an issue under which Loopwright writes what a forge has no word for."""
_PATHS: Final = (
    ("issues",),
    ("items",),
    ("nodes",),
    ("data", "repository", "issues", "nodes"),
    ("issues", "nodes"),
)
"""Where an object has its issues: a hand-kept list, a search, or an answer of the GraphQL API."""


_ADDRESS: Final = re.compile(r"/issues/([0-9]{1,9})\b")


def tell(
    edits: JsonEdits, entry: Located, table: dict[str, Any], item: ItemProgress, *, is_rest: bool
) -> None:
    """Write the progress of an issue as a forge would: its state, the reason, and the rest under our key."""
    mark = Mark.OPEN if item.mark is Mark.RUNNING else item.mark
    if mark is Mark.BLOCKED and (mark, item.reason) == standing(table):
        return
    if mark is not standing(table)[0] or mark is Mark.BLOCKED:
        closed = mark in (Mark.DONE, Mark.SKIPPED)
        key = _state_key(table)
        was = table.get(key)
        state = "CLOSED" if closed else "OPEN"
        lower = is_rest or key != "state" or (isinstance(was, str) and was.islower())
        if closed is not is_closed(table) or mark_of(str(was or "")) not in (Mark.OPEN, Mark.DONE):
            edits.put(entry, key, state.lower() if lower else state)
        if key != "state":
            _put_ours(edits, entry, mark, item)
            return
        name = "state_reason" if is_rest else "stateReason"
        why = ("COMPLETED" if mark is Mark.DONE else "NOT_PLANNED") if closed else ""
        if str(table.get(name) or "").upper() != why and (closed or is_closed(table)):
            edits.put(entry, name, (why.lower() or None) if is_rest else why)
    _put_ours(edits, entry, mark, item)


def _put_ours(edits: JsonEdits, entry: Located, mark: Mark, item: ItemProgress) -> None:
    ours = _ours(mark, item)
    if ours is not None:
        edits.put(entry, OURS, ours)
    else:
        edits.drop(entry, OURS)


def _state_key(table: dict[str, Any]) -> str:
    """Return where an issue says whether it is open: a hand-kept list may call it `status`."""
    return "status" if "state" not in table and isinstance(table.get("status"), str) else "state"


def _ours(mark: Mark, item: ItemProgress) -> dict[str, str] | None:
    """Return what a forge has no word for; nothing where there is nothing to say."""
    match mark:
        case Mark.BLOCKED:
            return {"status": "blocked", "reason": storable(item.reason).strip() or "no reason was given"}
        case Mark.DONE if item.commit:
            return {"status": "done", "commit": item.commit, "summary": storable(item.summary)}
        case Mark.SKIPPED if item.reason.strip():
            return {"status": "skipped", "reason": storable(item.reason).strip()}
    return None


def is_closed(table: dict[str, Any]) -> bool:
    """Return whether an issue is closed."""
    return mark_of(str(table.get(_state_key(table)) or "")) in (Mark.DONE, Mark.SKIPPED)


def is_pull_request(table: dict[str, Any]) -> bool:
    """Return whether the REST API lists a pull request among the issues."""
    return table.get("pull_request") is not None


def standing(table: dict[str, Any]) -> tuple[Mark, str]:
    """Return the mark of an issue, and why it waits for the user if it does."""
    if is_closed(table):
        why = str(table.get("stateReason") or table.get("state_reason") or "")
        return (Mark.SKIPPED, "") if why.upper() in ("NOT_PLANNED", "DUPLICATE") else (Mark.DONE, "")
    ours = table.get(OURS)
    if isinstance(ours, dict) and ours.get("status") == "blocked":
        return Mark.BLOCKED, str(ours.get("reason") or "blocked in the file, without a reason")
    word = table.get(_state_key(table))
    if word is not None and (not isinstance(word, str) or mark_of(word) not in (Mark.OPEN, Mark.RUNNING)):
        return Mark.BLOCKED, waiting_reason(str(word))
    return Mark.OPEN, ""


def listed(found: Located) -> Located | None:
    """Return the list of issues, wherever an export has it."""
    if isinstance(found.value, list):
        return found
    for path in _PATHS:
        held: Located | None = found
        for key in path:
            held = inner(held, key) if held is not None else None
        if held is not None and isinstance(held.value, list):
            return held
    return None


def _number(table: dict[str, Any]) -> str:
    """Return the number of an issue, or the id that a hand-kept list gives it."""
    for key in ("number", "id"):
        value = table.get(key)
        if isinstance(value, bool) or not isinstance(value, int | str):
            continue
        if (isinstance(value, int) and value >= 1) or (isinstance(value, str) and value.strip()):
            return str(value).strip()[:100]
    address = _ADDRESS.search(str(table.get("html_url") or table.get("url") or "")[:500])
    return address[1] if address is not None else ""


def repository(table: dict[str, Any]) -> str:
    """Return the repository that an issue belongs to, if it says so."""
    for key in ("repository", "repo"):
        value = table.get(key)
        name = value.get("nameWithOwner") or value.get("full_name") if isinstance(value, dict) else value
        if isinstance(name, str) and name.strip():
            return name.strip()[:100]
    parts = str(table.get("html_url") or table.get("url") or "").split("/")
    return "/".join(parts[3:5]) if len(parts) >= 7 else ""


def keys(entries: list[dict[str, Any]]) -> list[str]:
    """Return what each issue is called: `#12`, with its repository where another one has that number."""
    numbers = [f"#{number}" if (number := _number(table)) else "" for table in entries]
    counts = Counter(numbers)
    if counts[""] == len(numbers):
        return [_slug(table) for table in entries]  # issues that are not on the forge yet
    return [
        f"{repository(table)}{name}" if name and counts[name] > 1 else name
        for table, name in zip(entries, numbers, strict=True)
    ]


def _slug(table: dict[str, Any]) -> str:
    title = table.get("title")
    return slug(title) if isinstance(title, str) and table.get("number") is None else ""


def commit_of(table: dict[str, Any]) -> str | None:
    """Return the commit that closed an issue, as Loopwright wrote it."""
    ours = table.get(OURS)
    told = ours.get("commit") if isinstance(ours, dict) and is_closed(table) else None
    return told if isinstance(told, str) and told else None
