"""Work that agents found, in a beads tracker: an issue with a label until the user decides about it."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from loopwright.adapters.sources.text.json_edits import stamp
from loopwright.adapters.sources.text.located import Located, plain
from loopwright.ports import Discovered, Mark, Progress

LABEL: Final = "loopwright-discovered"
"""An issue with this label is not a task yet. Remove the label to make it one."""


def is_found(issue: Located) -> bool:
    """Return whether an issue is work that the user has not decided about."""
    labels = plain(issue, "labels", [])
    return isinstance(labels, list) and LABEL in labels


def missing(progress: Progress, present: Iterable[Mapping[str, Any]]) -> list[Discovered]:
    """Return the discoveries that the tracker does not have, by their title, and that are undecided."""
    titles = {_alike(one.get("title")) for one in present}
    found = {_alike(one.title): one for one in progress.discovered if one.mark is Mark.OPEN and not one.task}
    return [one for title, one in found.items() if title not in titles]


def settled(progress: Progress, issue: Mapping[str, Any]) -> bool:
    """Return whether a discovery in the tracker is done in this plan, or dropped."""
    labels = issue.get("labels")
    if not isinstance(labels, list) or LABEL not in labels or issue.get("status") == "closed":
        return False
    ended = {_alike(one.title) for one in progress.discovered if one.mark in (Mark.DONE, Mark.SKIPPED)}
    return _alike(issue.get("title")) in ended


def line(one: Discovered, progress: Progress, present: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the issue for a discovery, linked with the issue in which an agent found it."""
    prefix = next(iter(present), "bd-").partition("-")[0]
    digest = hashlib.sha256(f"{one.by}\0{_alike(one.title)}".encode()).hexdigest()
    key = next(name for n in range(6, 64) if (name := f"{prefix}-{digest[:n]}") not in present)
    at = stamp(progress.at)
    link = {"issue_id": key, "depends_on_id": one.by, "type": "discovered-from"}
    return {
        "id": key,
        "title": one.title,
        "description": one.reason,
        "status": "open",
        "priority": 2,
        "issue_type": "task",
        "labels": [LABEL],
        "created_at": at,
        "updated_at": at,
        **({"dependencies": [link]} if one.by in present else {}),
    }


def written(content: bytes, progress: Progress) -> bytes:
    """Return the file with a line for each of them that it does not have, and those closed that are settled."""
    if not progress.discovered:
        return content
    rows = content.split(b"\n")
    present: dict[str, dict[str, Any]] = {}
    for number, row in enumerate(rows):
        if not row.strip():
            continue
        issue = json.loads(row)
        if not isinstance(issue, dict) or not isinstance(issue.get("id"), str):
            continue  # not an issue: `parse` reports it
        present[issue["id"]] = issue
        if settled(progress, issue):
            at = stamp(progress.at)
            closed = {**issue, "status": "closed", "updated_at": at, "closed_at": at}
            rows[number] = _dumped(closed) + (b"\r" if row.endswith(b"\r") else b"")
    made = b"\n".join(rows)
    for one in missing(progress, present.values()):
        issue = line(one, progress, present)
        present[issue["id"]] = issue
        made = made + (b"" if made.endswith(b"\n") or not made else b"\n") + _dumped(issue) + b"\n"
    return made


def _dumped(issue: Mapping[str, Any]) -> bytes:
    return json.dumps(issue, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _alike(title: object) -> str:
    return " ".join(str(title or "").casefold().split())
