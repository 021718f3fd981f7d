"""The pages of a task and of a run: attempts side by side, and the possible actions."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopwright.core.rows.model import Plan, Role, Run, Task
from loopwright.core.values.access import Caller, Scope
from loopwright.core.values.states import PlanState, RunState, TaskState
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.views.overview import RunView, run_view
from loopwright.engine.views.views import TaskDetail, task_detail
from loopwright.ports import Tx
from loopwright.services.dashboard.trail import TrailEvent, task_trail
from loopwright.services.dashboard.transcript import Piece, read_piece
from loopwright.services.homes.session import Session
from loopwright.services.remote.seen import seen_plan, seen_run, seen_task

_LARGEST_PROMPT: Final = 400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskActions:
    """What the caller can do to a task now."""

    retry: bool
    reset: bool
    skip: bool
    rollback: bool
    send_back: bool
    """Whether the work can be sent back to an agent with a note and comments on lines."""
    take_over: bool
    hand_back: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPage:
    """Everything on the page of a task."""

    detail: TaskDetail
    project_id: str
    plan_status: PlanState
    runs: tuple[RunView, ...]
    trail: tuple[TrailEvent, ...]
    actions: TaskActions


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
    interrupt: bool
    """Whether the caller can end the agent, so that its task starts again with a note."""


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
            trail=task_trail(tx, plan.id, row.id),
            actions=_actions(row, caller, plan.status),
        )

    return await at.home.store.read(load)


async def run_page(at: Session, caller: Caller, run_id: str, *, begin: int | None = None) -> RunPage:
    """Return the page of a run, with the end of its transcript or the part from a position."""
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
        piece=read_piece(run, paths.run(run.id), after=begin),
        interrupt=caller.may(Scope.OPERATE)
        and run.role is Role.IMPLEMENTER
        and run.attempt_id is not None
        and run.state in (RunState.RUNNING, RunState.AWAITING_RESPONSE),
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
        rollback=may and landed,
        send_back=may and (landed or task.status in (TaskState.ERROR, TaskState.CANCELLED)),
        take_over=may
        and not task.taken_by
        and task.status in (TaskState.ERROR, TaskState.RUNNING, TaskState.QUEUED),
        hand_back=may and bool(task.taken_by),
    )
