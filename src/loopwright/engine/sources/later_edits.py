"""Find what a plan's source requests beyond the plan: items of the user, or of another controller."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopwright.core.rows.model import Loop, Plan, Project, Task
from loopwright.core.rows.source_rows import SourceDebt
from loopwright.core.values.errors import UserError
from loopwright.core.values.states import ENDED_PLAN, PlanState
from loopwright.engine.intake.progress import MARKS
from loopwright.engine.rows.moves import need
from loopwright.engine.rows.source_marks import SETTLED, edited, marks_of
from loopwright.engine.rows.writeback_debts import SourceNews
from loopwright.ports import Mark, PlannedWork, Source, Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A plan that ended, and the last known content of its source."""

    kind: str
    source: str
    place: Path
    marks: Mapping[str, Any]
    states: Mapping[str, Mark]
    """The final state of each task, by key."""
    told_done: frozenset[str]
    """The items that are written back as done; none while that is a debt."""
    tracked: bool
    """Whether git tracks any of its files."""


def ended_plan(tx: Tx, plan_id: str) -> Ended | None:
    """Return what to compare a source with; None unless its newest plan ended by itself."""
    plan = need(tx.get(Plan, plan_id), "the plan")
    loop = need(tx.get(Loop, plan.loop_id), "the loop")
    if plan.status not in ENDED_PLAN - {PlanState.CANCELLED} or loop.plan_id != plan.id:
        return None
    marks = marks_of(tx, plan.id)
    is_told = not plan.books and tx.get(SourceDebt, plan.id) is None
    return Ended(
        kind=loop.source_kind,
        source=loop.source_path,
        place=Path(need(tx.get(Project, plan.project_id), "the project").path) / loop.source_path,
        marks=marks,
        states={task.key: MARKS[task.status] for task in tx.find(Task, plan_id=plan.id)},
        told_done=frozenset(key for key, (_, told) in marks.items() if is_told and told == Mark.DONE.value),
        tracked=bool(plan.books),
    )


def source_news(source: Source | None, ended: Ended, *, ask_program: bool = False) -> SourceNews | None:
    """Read a source again and return what is new in it; None if nothing is, or the source is gone.

    A source with its own program is read only if `ask_program`: that may take a while.
    """
    if source is None or not source.has_status or not ended.place.exists():
        return None
    if source.has_program(ended.place) and not ask_program:
        return None
    try:
        work = source.parse(source.files(ended.place), ended.source)
    except (UserError, OSError) as broken:
        return SourceNews(source=ended.source, changes=(f"it cannot be read any more: {broken}",))
    found = SourceNews(source=ended.source, open_ends=work.open_ends, changes=_changes(ended, work))
    return found if found.open_ends or found.changes else None


def stale_items(source: Source | None, ended: Ended) -> tuple[str, ...]:
    """Return the items of an untracked source that are marked in progress although the plan settled them.

    That is an older copy, which an editor saved over the end. A user who wants an item done again opens it.
    """
    if source is None or not source.has_status or ended.tracked or not ended.place.exists():
        return ()
    if source.has_program(ended.place):
        return ()
    try:
        items = source.parse(source.files(ended.place), ended.source).tasks
    except (UserError, OSError):
        return ()
    running = [item.key for item in items if item.mark is Mark.RUNNING]
    return tuple(key for key in running if ended.states.get(key) in SETTLED)


def _changes(ended: Ended, work: PlannedWork) -> tuple[str, ...]:
    new = {item.key for item in edited(work.tasks, ended.marks, ended.states)}
    told = []
    for item in work.tasks:
        if item.key in new or (item.key in ended.told_done and item.mark is Mark.OPEN):
            is_known = item.key in ended.states or item.key in ended.marks
            told.append(f"{item.key} {f'is marked as {item.mark.value}' if is_known else 'was added'}")
    return tuple(told)
