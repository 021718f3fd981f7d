"""Runs: list and show them, read their output, and interrupt one."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from loopwright.adapters.agents.prompt_file import path_in
from loopwright.adapters.processes.keeper_files import OutputReader
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.rows.model import Plan, Run
from loopwright.core.values.access import Caller
from loopwright.core.values.errors import Refused
from loopwright.core.values.states import PROCESS_OVER, RunState
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.views.overview import RunView, run_view
from loopwright.ports import OutputLine, Tx
from loopwright.services.control import decisions
from loopwright.services.control.decisions import Decision
from loopwright.services.homes.session import Session
from loopwright.services.remote.pages import Asked, Page, find_page
from loopwright.services.remote.seen import acting, seen_plan, seen_project, seen_run

_LONGEST_PROMPT: Final = 1 << 20
_LOOK_S: Final = 0.5
_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    """Some lines of a run's output."""

    lines: tuple[OutputLine, ...]
    next_offset: int
    """The position after these lines."""
    ended: bool
    """Whether the run has ended, so that nothing more comes after the last line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run with its project and its prompt."""

    run: Run
    view: RunView
    project_id: str
    prompt: str
    events: int
    """How many recorded events are about it."""


async def list_runs(
    at: Session,
    caller: Caller,
    page: Asked,
    *,
    plan_id: str | None = None,
    states: Sequence[RunState] = (),
) -> Page[Run]:
    """Return runs, the newest first."""

    def load(tx: Tx) -> Page[Run]:
        where: dict[str, object] = {"state": list(states)} if states else {}
        if plan_id is not None:
            where["plan_id"] = seen_plan(tx, caller, plan_id).id
        elif caller.projects is not None:
            where["plan_id"] = [one.id for one in tx.find(Plan, project_id=sorted(caller.projects))]
        return find_page(tx, Run, page, order_by=("-created_at",), **where)

    return await at.home.store.read(load)


async def get_run(at: Session, caller: Caller, run_id: str) -> RunRecord:
    """Return one run."""
    paths = HomePaths(root=at.home.root)

    def load(tx: Tx) -> RunRecord:
        run = seen_run(tx, caller, run_id)
        plan = seen_plan(tx, caller, run.plan_id)
        return RunRecord(
            run=run,
            view=run_view(tx, run, paths),
            project_id=plan.project_id,
            prompt=_prompt(paths, run),
            events=len(tx.events(plan=run.plan_id, run=run.id)),
        )

    return await at.home.store.read(load)


def _prompt(paths: HomePaths, run: Run) -> str:
    if run.label.startswith("verify_"):
        return "Execute gate:all verification"
    try:
        with path_in(paths.run(run.id)).open(encoding="utf-8", errors="replace") as file:
            return file.read(_LONGEST_PROMPT)
    except OSError:
        return ""  # it has none, or its recordings were cleaned


async def run_log(at: Session, caller: Caller, run_id: str, *, offset: int = 0, limit: int = 500) -> LogPage:
    """Return a run's output from a position on, at most `limit` lines."""
    run = await at.home.store.read(lambda tx: seen_run(tx, caller, run_id))
    # Checked first: a run that ended before has printed everything by then.
    ended = run.state in PROCESS_OVER
    lines: list[OutputLine] = []
    for line in OutputReader(HomePaths(root=at.home.root).run(run.id), offset).all():
        lines.append(line)
        if len(lines) >= limit:
            break
    full = len(lines) >= limit
    return LogPage(
        lines=tuple(lines), next_offset=lines[-1].offset if lines else offset, ended=ended and not full
    )


async def follow_log(at: Session, caller: Caller, run_id: str, offset: int) -> AsyncIterator[LogPage]:
    """Yield a run's output until it ends; an empty page means that nothing came for a while."""
    while True:
        page = await run_log(at, caller, run_id, offset=offset, limit=_AT_ONCE)
        offset = page.next_offset
        yield page
        if page.ended:
            return
        if not page.lines:
            await at.home.store.changed(_LOOK_S)


async def run_events(at: Session, caller: Caller, run_id: str) -> list[RecordedEvent]:
    """Return the recorded events about a run, in order."""

    def load(tx: Tx) -> list[RecordedEvent]:
        run = seen_run(tx, caller, run_id)
        return tx.events(plan=run.plan_id, run=run.id)

    return await at.home.store.read(load)


async def interrupt(at: Session, caller: Caller, run_id: str, note: str = "") -> Decision:
    """End the agent of a run; its task starts again with the note, and no attempt is used up."""

    def load(tx: Tx) -> tuple[Run, Plan]:
        run = seen_run(tx, caller, run_id)
        return run, seen_plan(tx, caller, run.plan_id)

    run, plan = await at.home.store.read(load)
    if run.task_id is None or run.attempt_id is None:
        raise Refused(
            "only the run of a task can be interrupted",
            code="run_not_interruptible",
            hint="stop the plan instead",
        )
    project = await at.home.store.read(lambda tx: seen_project(tx, caller, plan.project_id))
    with acting(at, caller, project):
        return await decisions.interrupt(at, run.task_id, run_id=run.id, note=note)
