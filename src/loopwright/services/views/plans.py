"""The current state of plans, their processes, later changes of their source, and the next steps."""

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loopwright.adapters import registry
from loopwright.adapters.home.statefiles import state_file
from loopwright.adapters.processes import keeper_files
from loopwright.core.rows.model import Plan
from loopwright.core.rows.waiting_rows import Envelope
from loopwright.core.values.states import ENDED_PLAN, EnvelopeState
from loopwright.engine.rows.finishes import FinishView
from loopwright.engine.rows.plan_states_text import NO_WORKER
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.rows.writeback_debts import DebtView, SourceNews, debt_views
from loopwright.engine.sources.later_edits import Ended, ended_plan, source_news
from loopwright.engine.views.activity import ANSWERED, SETS_UP
from loopwright.engine.views.metrics import PlanFigures
from loopwright.engine.views.next_steps import Known, Step, merge_command, next_steps, planned_file
from loopwright.engine.views.overview import PlanSummary, count_plans, is_current, open_runs, plan_summaries
from loopwright.engine.views.views import PlanView, TaskView, is_busy, plan_view
from loopwright.ports import Tx
from loopwright.services.homes.read_only_home import Look, WorkerSeen, newest_plan, project_here
from loopwright.services.homes.repository import has_branch

if TYPE_CHECKING:
    from loopwright.services.homes.session import Session

# A plan together with later changes of its source.


async def view_with_news(at: "Session", plan_id: str) -> PlanView:
    """Return a plan, and, once it ended, what is new in its source."""
    import asyncio  # `status` does not need it

    paths = HomePaths(root=at.home.root)
    view, ended = await at.home.store.read(
        lambda tx: (plan_view(tx, plan_id, paths), ended_plan(tx, plan_id))
    )
    return await asyncio.to_thread(with_news, view, ended, ask_program=True)


def with_news(view: PlanView, ended: Ended | None, *, ask_program: bool = False) -> PlanView:
    """Return a plan with what is new in its source."""
    if ended is None or ended.kind not in registry.known_sources():
        return view
    source = registry.source(ended.kind)
    return replace(view, news=source_news(source, ended, ask_program=ask_program))


# Facts about the folders around a plan, for its next steps.


def known_about(view: PlanView, *, is_worked_on: bool = False) -> Known:
    """Read the plan's repository, and the current folder."""
    ended = view.status in ("VERIFIED", "FAILED")
    file = planned_file(view)
    return Known(
        is_worked_on=is_worked_on,
        has_branch=ended and has_branch(Path(view.path), view.branch),
        is_elsewhere=view.path not in (project_here() or ()),
        has_plan_file=bool(file) and (Path(view.path) / file).exists(),
    )


__all__ = [
    "ANSWERED",
    "NO_WORKER",
    "SETS_UP",
    "DebtView",
    "FinishView",
    "Known",
    "Overview",
    "PlanFigures",
    "PlanSummary",
    "PlanView",
    "Seen",
    "SourceNews",
    "Step",
    "TaskView",
    "WorkerSeen",
    "ended_plan",
    "known_about",
    "list_plans",
    "look_at",
    "merge_command",
    "next_steps",
    "overview",
    "view_with_news",
    "with_news",
]

LISTED: Final = 12
"""How many plans an overview lists."""
_RESTING: Final = frozenset({"PAUSED", "STOPPED", "FAILED", "COMPLETED", "IDLE"})
_ENDED: Final = frozenset({"VERIFIED", "FAILED"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A plan, and the processes behind it."""

    view: PlanView
    worked: bool
    """Whether a live process starts the work of its project."""
    alive: int
    """Agents and gates of the plan that run on this machine now."""
    current: bool
    """Whether the plan is its loop's current plan."""

    @property
    def at_rest(self) -> bool:
        """Whether nothing will change by itself."""
        if not self.current:
            return True
        if self.view.loop_state not in _RESTING or self.view.resume_at is not None:
            return False
        # After a pause, running agents may finish. A worker records that.
        busy = any(task.status == "RUNNING" and task.stage != "WAITING" for task in self.view.tasks)
        return not (busy and self.worked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """A short overview of a home: its workers, its plans, and one plan in detail."""

    home: Path
    workers: tuple[WorkerSeen, ...]
    busy: bool
    """Whether anything is left for a worker to do."""
    plans: tuple[PlanSummary, ...]
    """The newest plans, the newest first."""
    total: int
    """How many plans there are."""
    seen: Seen | None
    """The named plan, else the newest."""
    row: Plan | None
    """The record of the named plan; None if none was named."""
    closed: tuple[Envelope, ...]
    """Accounts that no agent may use now."""
    untold: tuple[DebtView, ...]
    """Sources with a write-back debt."""


def overview(look: Look[Any], named: Plan | None = None, *, everywhere: bool = False) -> Overview:
    """Return what happens in a home, or in this repository unless `everywhere`."""
    made: Overview = look.store.read_sync(lambda tx: _overview(tx, look, named, everywhere=everywhere))
    if made.seen is not None and made.seen.view.status in _ENDED:
        return replace(made, seen=replace(made.seen, view=_with_news(look, made.seen.view)))
    return made


def _overview(tx: Tx, look: Look[Any], named: Plan | None, *, everywhere: bool) -> Overview:
    row = named or newest_plan(tx)
    project = None if everywhere else project_here()
    return Overview(
        home=look.root,
        workers=look.workers(tx),
        busy=is_busy(tx),
        plans=list_plans(tx, look, everywhere=everywhere),
        total=count_plans(tx, project_path=project),
        seen=look_at(tx, look, row.id) if row else None,
        row=named,
        closed=tuple(tx.find(Envelope, state=EnvelopeState.CLOSED)),
        untold=tuple(debt_views(tx, project_path=project)),
    )


def list_plans(
    tx: Tx, look: Look[Any], *, everywhere: bool = False, limit: int = LISTED
) -> tuple[PlanSummary, ...]:
    """Return the newest plans of this repository, or of the whole home, the newest first."""
    project = None if everywhere else project_here()
    return tuple(look.seen(tx, one) for one in plan_summaries(tx, project_path=project, limit=limit))


def look_at(tx: Tx, look: Look[Any], plan_id: str) -> Seen:
    """Return a plan as it is now, with the processes behind it."""
    runs = open_runs(tx, plan_id)
    return Seen(
        view=look.seen(tx, plan_view(tx, plan_id, look.paths)),
        worked=look.is_worked_on(tx, plan_id),
        alive=sum(keeper_files.is_held(look.paths.run(run.id)) for run in runs),
        current=is_current(tx, plan_id),
    )


def _with_news(look: Look[Any], view: PlanView) -> PlanView:
    # Reading sources takes long to load, and only a plan that ended needs it.

    return with_news(view, look.store.read_sync(lambda tx: ended_plan(tx, view.id)))


# A plan that rests, once its receipt is written.

_RECEIPT_S: Final = 5.0
"""How long to wait for a receipt that another worker writes."""


async def ended_view(at: "Session", plan_id: str) -> PlanView:
    """Return a plan that rests, with the news of its source; wait briefly for the receipt of one that ended."""
    import asyncio  # `status` does not need it

    view = await view_with_news(at, plan_id)
    if view.status in ENDED_PLAN:
        with suppress(TimeoutError):
            async with asyncio.timeout(_RECEIPT_S):
                while not receipt_file(view).exists():
                    await asyncio.sleep(0.05)
    return view


def receipt_file(view: PlanView) -> Path:
    """Return the path of a plan's receipt."""
    return state_file(Path(view.path), "receipts", f"{view.id}.json")
