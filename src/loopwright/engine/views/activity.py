"""The current activity of a task: what its agent does, what it waits for, what changed in the checkout."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from loopwright.core.policy.budget import WAITS
from loopwright.core.receipts.events import CHECKOUT_CHANGED, WHOSE
from loopwright.core.rows.model import Attempt, Run, Task
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import AttemptState, RunState, TaskState
from loopwright.engine.rows.world import HomePaths
from loopwright.ports import Tx

# Changes of the user's own checkout while agents ran, with the commands that undo them.


@dataclass(frozen=True, slots=True, kw_only=True)
class StrayView:
    """One check that found the checkout changed."""

    run: str
    whose: str
    """One of `core.receipts.events.WHOSE`."""
    changes: tuple[str, ...]
    undo: tuple[str, ...]
    """Shell commands, or comments if only the user can tell what to undo."""

    @property
    def by_whom(self) -> str:
        """What is known about the author of the changes."""
        return WHOSE[self.whose]


def stray_views(tx: Tx, plan_id: str, task_id: str | None = None) -> tuple[StrayView, ...]:
    """Return the changes that were found during a plan, or during one of its tasks, in order."""
    events = tx.events(plan=plan_id, task=task_id, types=(CHECKOUT_CHANGED,))
    return tuple(
        StrayView(
            run=one.run or "",
            whose=one.payload["whose"],
            changes=tuple(one.payload["changes"]),
            undo=tuple(one.payload["undo"]),
        )
        for one in events
    )


SETS_UP: Final = ("running setup", "installing dependencies")
"""The text for a command of the project that prepares the workspace."""
ANSWERED: Final = "it has its answer, and continues when the plan does"
"""The activity of a task whose question to the user was answered."""


def preparing(
    attempt: Attempt | None, runs: list[Run], policy: Policy, lasted: Callable[[Run], float | None]
) -> str:
    """Return what an agent waits for before it starts: the workspace, the command that prepares it, or a free slot."""
    if attempt is None or not (policy.setup or policy.dependencies):
        return "making the workspace, or waiting for a free slot"
    setup, dependencies = f"setup_{attempt.base_sha}", f"dependencies_{attempt.base_sha}"
    mine = [one for one in runs if one.attempt_id == attempt.id and one.label in (setup, dependencies)]
    last = max(mine, key=lambda one: one.created_at, default=None)
    if last is not None and last.state is RunState.RUNNING:
        runs_setup = last.label == setup
        word, command = (SETS_UP[0], policy.setup) if runs_setup else (SETS_UP[1], policy.dependencies)
        return f"{word} for {lasted(last) or 0:.0f} s: {command or policy.dependencies}"
    done = last is not None and last.label == setup and last.state is not RunState.QUEUED
    return "waits for a free slot" if done else "making the workspace"


def doing(
    task: Task,
    attempt: Attempt | None,
    waiting_for: list[str],
    resting: str,
    now: datetime,
    paths: HomePaths,
    reviewer: str,
    held_up: str,
) -> str:
    """Return what the agent of a task does, or what the task waits for; `held_up` is used while it is prepared."""
    if attempt is None:
        if task.manual and task.status is TaskState.AWAITING_RESPONSE:
            return "waits for you to do it by hand"
        if task.status is TaskState.QUEUED and task.taken_by:
            failed = f"; not accepted: {task.reason}" if task.reason else ""
            return f"with {task.taken_by} in {task.taken_dir}{failed}"
        if task.status is TaskState.QUEUED and waiting_for:
            return "waits for " + ", ".join(waiting_for)
        if task.status is TaskState.QUEUED and task.not_before and task.not_before > now:
            return f"tries again at {task.not_before:%Y-%m-%d %H:%M:%S} UTC"
        return "waits for a free slot" if task.status is TaskState.QUEUED and not task.manual else ""
    if task.status is TaskState.AWAITING_RESPONSE and attempt.wake_at and attempt.wake_at <= now:
        return ANSWERED
    if task.status is TaskState.AWAITING_RESPONSE:
        return attempt.wait_reason.removeprefix("asks: ")
    if attempt.state is AttemptState.WAITING and attempt.wait_reason == WAITS and not resting:
        return WAITS
    if attempt.state is AttemptState.WAITING:
        if attempt.wake_at and attempt.wake_at <= now:
            return f"parked: {resting}" if resting else "continues with the next free slot"
        until = f" until {attempt.wake_at:%Y-%m-%d %H:%M:%S} UTC" if attempt.wake_at else ""
        reason = attempt.wait_reason if attempt.wake_at else resting or attempt.wait_reason
        return f"parked{until}: {reason}"
    words = {
        AttemptState.PREPARING: held_up,
        AttemptState.CHECKING: "checking the result",
        AttemptState.LANDING: "landing",
    }
    if attempt.state in words:
        return words[attempt.state]
    if resting and attempt.interrupt:
        return "is asked to stop; its work is kept"
    seen = progress(paths.run(attempt.run_id or "")).get("text", "") or "working"
    if resting:
        return f"may finish, then nothing more starts: {seen}"
    return f"{reviewer} reviews it: {seen}" if reviewer else seen


def progress(directory: Path) -> dict[str, Any]:
    """Return an agent's last known activity; empty if unknown."""
    return read_json(directory / "progress.json")


def read_json(path: Path) -> dict[str, Any]:
    """Return the content of a JSON file; empty if it is missing or half written."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
