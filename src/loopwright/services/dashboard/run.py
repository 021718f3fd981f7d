"""The pages of a task and of a run: attempts side by side, the transcript by pieces, and what can be done."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.processes.keeper_files import OutputReader, output_size
from loopwright.core.rows.model import Plan, Run, Task
from loopwright.core.values.access import Caller, Scope
from loopwright.core.values.states import ENDED_RUN, PlanState, TaskState
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.views.overview import RunView, run_view
from loopwright.engine.views.views import TaskDetail, task_detail
from loopwright.ports import OutputLine, Tx
from loopwright.services.homes.session import Session
from loopwright.services.recordings.output import Transcript
from loopwright.services.remote.seen import seen_plan, seen_run, seen_task

PIECE_BYTES: Final = 96 * 1024
"""How much of a recording one piece of a transcript shows."""
LONGEST_LINE: Final = 4_000
"""Longer lines are cut on a page; the log endpoint has all of them."""
_LARGEST_PROMPT: Final = 400_000
_FOLDED: Final = frozenset({"ToolEnd", "Usage", "Raw", "Started"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskActions:
    """What the caller can do to a task now."""

    retry: bool
    reset: bool
    skip: bool
    rollback: bool
    reject: bool
    take_over: bool
    hand_back: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPage:
    """Everything on the page of a task."""

    detail: TaskDetail
    project_id: str
    plan_status: PlanState
    runs: tuple[RunView, ...]
    actions: TaskActions


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing in a transcript."""

    kind: str
    text: str
    folded: bool
    """Whether it is shown as one line until it is opened."""
    cut: int = 0
    """How many characters were left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a transcript."""

    entries: tuple[Entry, ...]
    begin: int
    """The position in the recording where it begins; 0 is the beginning."""
    end: int
    """Where it ends: the next piece begins here."""
    size: int
    live: bool
    """Whether more may come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """Everything on the page of a run."""

    view: RunView
    plan_title: str
    project_id: str
    task: Task | None
    prompt: str
    prompt_cut: bool
    piece: Piece


async def task_page(at: Session, caller: Caller, plan_id: str, task: str) -> TaskPage:
    """Return the page of a task."""
    paths = HomePaths(root=at.home.root)

    def load(tx: Tx) -> TaskPage:
        plan = seen_plan(tx, caller, plan_id)
        row = seen_task(tx, caller, plan, task)
        runs = tx.find(Run, task_id=row.id, order_by=("created_at",))
        return TaskPage(
            detail=task_detail(tx, row.id, paths),
            project_id=plan.project_id,
            plan_status=plan.status,
            runs=tuple(run_view(tx, one, paths) for one in runs),
            actions=_actions(row, caller, plan.status),
        )

    return await at.home.store.read(load)


async def run_page(at: Session, caller: Caller, run_id: str) -> RunPage:
    """Return the page of a run, with the end of its transcript."""
    paths = HomePaths(root=at.home.root)

    def load(tx: Tx) -> tuple[Run, RunView, Plan, Task | None]:
        run = seen_run(tx, caller, run_id)
        plan = seen_plan(tx, caller, run.plan_id)
        return run, run_view(tx, run, paths), plan, tx.get(Task, run.task_id) if run.task_id else None

    run, view, plan, task = await at.home.store.read(load)
    prompt = _prompt(paths.run(run.id))
    return RunPage(
        view=view,
        plan_title=plan.title,
        project_id=plan.project_id,
        task=task,
        prompt=prompt[:_LARGEST_PROMPT],
        prompt_cut=len(prompt) > _LARGEST_PROMPT,
        piece=_piece(run, paths, None),
    )


async def transcript(
    at: Session, caller: Caller, run_id: str, *, before: int | None = None, after: int | None = None
) -> Piece:
    """Return a piece of a transcript: the one that ends at `before`, or what came after `after`, else its end."""
    run = await at.home.store.read(lambda tx: seen_run(tx, caller, run_id))
    paths = HomePaths(root=at.home.root)
    if after is not None:
        return _from(run, paths, after)
    return _piece(run, paths, before)


def _piece(run: Run, paths: HomePaths, before: int | None) -> Piece:
    size = output_size(paths.run(run.id))
    end = size if before is None else min(before, size)
    return _read(run, paths, max(0, end - PIECE_BYTES), end, size)


def _from(run: Run, paths: HomePaths, after: int) -> Piece:
    size = output_size(paths.run(run.id))
    # A follower that fell far behind gets the end, not everything in between.
    begin = after if size - after <= 4 * PIECE_BYTES else size - PIECE_BYTES
    return _read(run, paths, begin, size, size)


def _read(run: Run, paths: HomePaths, begin: int, end: int, size: int) -> Piece:
    reader = OutputReader(paths.run(run.id), begin)
    lines: list[OutputLine] = []
    first = begin
    for line in reader.all():
        # A piece rarely begins at the beginning of a line: what is left of the line before belongs to the piece before.
        if line.offset > end:
            break
        lines.append(line)
    reached = lines[-1].offset if lines else begin
    codec = Transcript(run)
    entries = [_entry(shown.kind, shown.text, shown.data) for line in lines for shown in codec.take(line)]
    return Piece(
        entries=tuple(one for one in entries if one.text),
        begin=first,
        end=reached,
        size=size,
        live=run.state not in ENDED_RUN,
    )


def _entry(kind: str, text: str, data: dict[str, Any]) -> Entry:
    said = text or str(data.get("name", ""))
    return Entry(
        kind=kind,
        text=said[:LONGEST_LINE],
        folded=kind in _FOLDED or len(said) > 600 or said.count("\n") > 12,
        cut=max(0, len(said) - LONGEST_LINE),
    )


def _prompt(directory: Path) -> str:
    try:
        return (directory / "prompt.md").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _actions(task: Task, caller: Caller, plan: PlanState) -> TaskActions:
    may = caller.may(Scope.OPERATE) and plan not in (PlanState.CANCELLED, PlanState.DRAFT)
    landed = task.landed_sha is not None
    return TaskActions(
        retry=may and task.status in (TaskState.ERROR, TaskState.CANCELLED),
        reset=may and task.status in (TaskState.ERROR, TaskState.CANCELLED),
        skip=may
        and task.status
        in (TaskState.QUEUED, TaskState.ERROR, TaskState.RUNNING, TaskState.AWAITING_RESPONSE),
        rollback=may and landed and plan is not PlanState.VERIFIED,
        reject=may and landed and plan is not PlanState.VERIFIED,
        take_over=may
        and not task.taken_by
        and task.status in (TaskState.ERROR, TaskState.RUNNING, TaskState.QUEUED),
        hand_back=may and bool(task.taken_by),
    )
