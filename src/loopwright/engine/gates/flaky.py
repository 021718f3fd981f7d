"""Which checks of a project are flaky, from the verdicts that found them so."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from loopwright.core.rows.model import Plan, Run, Task, VerdictRecord
from loopwright.ports import Tx

_AT_ONCE = 100
"""Databases take only so many values in one question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlakyView:
    """One check that failed and passed on the same tree."""

    name: str
    command: str
    """The gate's command that has it."""
    times: int
    """How often it was seen to be."""
    last_at: datetime
    plan_id: str
    """Where it was seen last."""
    task: str | None
    """The key of the task whose candidate was judged then; None when it was the result of the plan."""
    run_id: str


def flaky_checks(tx: Tx, plans: Sequence[Plan]) -> list[FlakyView]:
    """Return the flaky checks that the gates of these plans came upon, the most frequent first."""
    found: dict[tuple[str, str], FlakyView] = {}
    ids = [plan.id for plan in plans]
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        for record in tx.find(VerdictRecord, plan_id=some, order_by=("created_at",)):
            for command in record.verdict.commands:
                for name in command.flaky:
                    key = name, command.command
                    times = found[key].times if key in found else 0
                    found[key] = FlakyView(
                        name=name,
                        command=command.command,
                        times=times + 1,
                        last_at=record.created_at,
                        plan_id=record.plan_id,
                        task=None,
                        run_id=record.run_id,
                    )
    listed = [replace(one, task=_task(tx, one.run_id)) for one in found.values()]
    return sorted(listed, key=lambda one: (-one.times, one.name, one.command))


def _task(tx: Tx, run_id: str) -> str | None:
    run = tx.get(Run, run_id)
    task = tx.get(Task, run.task_id) if run is not None and run.task_id is not None else None
    return task.key if task is not None else None
