"""Looks at the whole in a receipt: that somebody looked, at what, and how much was found are facts; the rest is not."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final

from loopwright.core.replies.qa import RESULTS, TYPE, Checked, QaIssue, QaReport
from loopwright.core.rows.model import Attempt, Task
from loopwright.core.values.states import AttemptState, TaskState

Json = dict[str, Any]

SAID: Final = ("what", "where", "steps", "expected", "actual", "severity", "screenshot")


def _looked(attempts: Iterable[Attempt]) -> list[tuple[Attempt, QaReport]]:
    ordered = sorted(attempts, key=lambda one: (one.created_at, one.id))
    return [(one, one.qa) for one in ordered if one.qa is not None]


def looks(tasks: Iterable[Task], attempts: Iterable[Attempt]) -> list[Json]:
    """Return the facts of every look that was reported."""
    keys = {task.key: task.id for task in tasks}
    return [
        {
            "id": attempt.id,
            "task_id": attempt.task_id,
            "run_id": attempt.run_id,
            "commit": attempt.base_sha,
            "state": attempt.state.value,
            "mode": report.mode,
            "areas": [one.area for one in report.checked],
            "issues": len(report.issues),
            "by_gate": sum(one.by_gate for one in report.issues),
            "fixes": [keys[one.fix] for one in report.issues if one.fix in keys],
            "report_sha256": report.sha256,
        }
        for attempt, report in _looked(attempts)
    ]


def reports(attempts: Iterable[Attempt]) -> list[Json]:
    """Return what was said in each of them: nobody has checked whether it is true."""
    return [
        {
            "id": attempt.id,
            "summary": report.summary,
            "checked": [asdict(one) for one in report.checked],
            "issues": [
                {name: getattr(one, name) for name in SAID} for one in report.issues if not one.by_gate
            ],
        }
        for attempt, report in _looked(attempts)
    ]


def is_passed_by_word(task: Mapping[str, Any]) -> bool:
    """Say whether a person's word completed a task: nothing landed, and no attempt came to its end."""
    ended = any(one["state"] == AttemptState.LANDED.value for one in task["attempts"])
    return task["status"] == TaskState.COMPLETE.value and task["landed_sha"] is None and not ended


def is_settled_by_hand(task: Mapping[str, Any]) -> bool:
    """Return whether a task is a manual step that the user did or skipped."""
    settled = (TaskState.COMPLETE.value, TaskState.CANCELLED.value)
    return bool(task["manual"]) and task["status"] in settled


def look_notes(body: Mapping[str, Any], task: Mapping[str, Any]) -> list[str]:
    """Name what a look at the whole is not worth."""
    name = repr(task["key"])
    mine = [one for one in body["looks"] if one["task_id"] == task["id"]]
    if task["type"] != TYPE or task["status"] != TaskState.COMPLETE.value or not mine:
        return []
    look = mine[-1]
    at = f"{(look['commit'] or '')[:10]} ({look['mode']})"
    return [
        f"that nothing is wrong is what the agent of {name} says, which looked at {at}: nobody checked that"
    ]


def look_differences(receipt: Mapping[str, Any]) -> list[str]:
    """Say where a look does not fit what was said in it."""
    said = {one["id"]: one for one in receipt["reports"]}
    found = []
    for look in receipt["looks"]:
        one = said.pop(look["id"], None)
        if one is None or _report(look["mode"], one).sha256 != look["report_sha256"]:
            found.append(f"what was reported by {look['id']} is not what its hash stands for")
        elif len(one["issues"]) + look["by_gate"] != look["issues"]:
            found.append(f"{look['id']} has another number of issues than it says")
    return found + [f"{one} has a report, and there is no such look" for one in said]


def _report(mode: str, said: Mapping[str, Any]) -> QaReport:
    return QaReport(
        mode=mode,
        summary=said["summary"],
        checked=tuple(Checked(**one) for one in said["checked"]),
        issues=tuple(QaIssue(**one) for one in said["issues"]),
    )


def is_checked(value: Any) -> bool:
    """Say whether a value has the shape of what was looked at in one area."""
    if not isinstance(value, dict) or value.keys() != {"area", "result", "how"}:
        return False
    return all(isinstance(one, str) for one in value.values()) and value["result"] in RESULTS


def is_issue(value: Any) -> bool:
    """Say whether a value has the shape of an issue."""
    return (
        isinstance(value, dict)
        and value.keys() == set(SAID)
        and all(isinstance(one, str) for one in value.values())
    )
