"""How tests stand, in the words of a test-state.json and of its health file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from loopwright.adapters.sources.lists.status_words import mark_of, waiting_reason
from loopwright.adapters.sources.test_state.test_state_schema import COUNTS, NOT_AUTOMATABLE
from loopwright.adapters.sources.text.json_edits import JsonEdits, stamp
from loopwright.adapters.sources.text.located import Located, inner, plain, tables, words
from loopwright.adapters.sources.text.reasons import tell_reason
from loopwright.ports import ItemProgress, Mark, Progress, Setback

_STATUS: Final[Mapping[Mark, str]] = MappingProxyType(
    {
        Mark.OPEN: "pending",
        Mark.RUNNING: "pending",
        Mark.DONE: "passed",
        Mark.BLOCKED: "blocked",
        Mark.SKIPPED: "blocked",
    }
)

_RESULTS: Final[Mapping[Setback, str]] = MappingProxyType(
    {Setback.REJECTED: "continue", Setback.BROKEN: "error"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How many tests there are, and how many of them passed."""

    passed: int
    total: int
    current: str | None
    """The test that is worked on, the first of them."""


def tell_tests(edits: JsonEdits, progress: Progress) -> Standing:
    """Write the status of each test that the progress knows, the summary, and the time of the change."""
    statuses: list[str] = []
    before, told = edits.bytes(), False
    current: str | None = None
    for test in tables(inner(edits.document, "tests")):
        status, key = words(test, "status"), words(test, "id")
        item = progress.items.get(key)
        if item is not None:
            told = True
            status = _tell(edits, test, item, progress)
            current = current or (key if item.mark is Mark.RUNNING else None)
        statuses.append(status)
    counts = {key: statuses.count(key) for key in COUNTS} | {"total": len(statuses)}
    if told and isinstance(edits.document.value, dict):
        _tell_summary(edits, counts)
        if edits.bytes() != before:
            edits.put(edits.document, "lastUpdated", stamp(progress.at))
    return Standing(passed=counts["passed"], total=counts["total"], current=current)


def _tell(edits: JsonEdits, test: Located, item: ItemProgress, progress: Progress) -> str:
    present, status = words(test, "status"), _STATUS[item.mark]
    if item.reason == NOT_AUTOMATABLE and plain(test, "automatable") is False:
        return present  # it says so already
    if item.mark is Mark.BLOCKED and item.reason == waiting_reason(present):
        return present  # its own word is why it waits
    if item.setback is not None:
        status = "failed"
    elif mark_of(present) in (item.mark, mark_of(status)) and present:
        status = present  # `failed` says more than `pending`
    is_new = status != present
    edits.put(test, "status", status)
    # What was begun and broke off does not count for us; the file counts what was begun, and never less than before.
    counted = plain(test, "attempts")
    if item.attempts > (counted if isinstance(counted, int) else 0):
        edits.put(test, "attempts", item.attempts)
    if item.started_at is not None:
        edits.put(test, "lastAttemptAt", stamp(item.started_at))
    if item.mark is Mark.DONE:
        edits.put(test, "lastResult", "pass")
        if item.ended_at is not None or is_new:
            edits.put(test, "passedAt", stamp(item.ended_at or progress.at))
    elif item.mark in (Mark.BLOCKED, Mark.SKIPPED):
        edits.put(test, "lastResult", "blocked")
    elif item.setback is not None:
        edits.put(test, "lastResult", _RESULTS[item.setback])
    elif item.attempts and (is_new or plain(test, "lastResult") is None):
        edits.put(test, "lastResult", "continue")
    elif is_new and plain(test, "lastResult") is not None:
        edits.put(test, "lastResult", None)
    if item.mark is not Mark.DONE and plain(test, "passedAt") is not None:
        edits.put(test, "passedAt", None)
    skipped = f"skipped: {item.reason or 'no reason was given'}"
    tell_reason(edits, test, {Mark.BLOCKED: item.reason, Mark.SKIPPED: skipped}.get(item.mark))
    return status


def _tell_summary(edits: JsonEdits, counts: Mapping[str, int]) -> None:
    summary = inner(edits.document, "summary")
    if summary is None or not isinstance(summary.value, dict):
        edits.put(edits.document, "summary", dict(counts))
        return
    for key, count in counts.items():
        edits.put(summary, key, count)


def health(name: str, standing: Standing, progress: Progress, pid: int | None) -> dict[str, Any]:
    """Return what the health file says: who is at work on what, and when that was last known."""
    status = "stopped"
    if progress.failed:
        status = "error"
    elif pid is not None:
        status = "starting" if progress.started_at is None and standing.current is None else "running"
    return {
        "loop_name": name,
        "status": status,
        "current_test": standing.current,
        "progress": {"passed": standing.passed, "total": standing.total},
        "last_heartbeat": stamp(progress.at),
        "pid": pid,
    }


def next_health(present: bytes | None, wanted: Mapping[str, Any], interval: timedelta) -> bytes | None:
    """Return the health file to write; None while the one that is there says the same and is young enough."""
    said = json.loads(present.decode("utf-8-sig")) if present is not None else {}
    before, now = said.get("last_heartbeat"), wanted["last_heartbeat"]
    if {**said, "last_heartbeat": now} == wanted and isinstance(before, str):
        try:
            age = datetime.fromisoformat(now) - datetime.fromisoformat(before)
        except (ValueError, TypeError):  # not a time, or one without a zone: another program wrote it
            age = interval
        # A loop that has stopped needs no heartbeat.
        if wanted["pid"] is None or timedelta() <= age < interval:
            return None
    return (json.dumps(wanted, indent=2, ensure_ascii=False) + "\n").encode()
