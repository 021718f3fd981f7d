"""`status`: what is going on, or everything about one plan, task or run. It only looks."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from loopwright.adapters.processes import keeper_files
from loopwright.cli.screens.layout import Rows
from loopwright.cli.screens.next_steps import print_steps
from loopwright.cli.screens.plan_table import cost_in_words, has_gaps, owed, print_finishes, screen, standing
from loopwright.cli.screens.plan_table import exit_code as code_of
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, paragraph, print_json
from loopwright.cli.shell.times import in_local_time
from loopwright.core.policy.quotas import label
from loopwright.core.policy.quotas import standing as standing_of
from loopwright.core.rows.model import Plan
from loopwright.core.rows.waiting_rows import Envelope
from loopwright.core.values.errors import UserError
from loopwright.core.values.ids import short_id
from loopwright.core.values.shell_hints import command
from loopwright.core.values.states import EnvelopeState
from loopwright.core.values.wording import counted, duration
from loopwright.engine.rows.writeback_debts import debt_views
from loopwright.engine.views.next_steps import Step, next_steps
from loopwright.engine.views.overview import PlanSummary, count_plans, is_current, open_runs, plan_summaries
from loopwright.engine.views.views import PlanView, is_busy, plan_view
from loopwright.ports import Tx
from loopwright.services.homes.plan_facts import known_about
from loopwright.services.homes.read_only_home import (
    Look,
    WorkerSeen,
    find_target,
    glancing,
    newest_plan,
    project_here,
    wanted,
)

_LISTED: Final = 12
_RESTING: Final = frozenset({"PAUSED", "STOPPED", "FAILED", "COMPLETED", "IDLE"})
_ENDED: Final = frozenset({"VERIFIED", "FAILED"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A plan, and what can be seen of the processes behind it."""

    view: PlanView
    worked: bool
    """Whether a live process starts the work of its project."""
    alive: int
    """Agents and gates of the plan that run on this machine now."""
    current: bool
    """Whether the plan is what its loop drives."""

    @property
    def at_rest(self) -> bool:
        """Nothing will change by itself."""
        if not self.current:
            return True
        if self.view.loop_state not in _RESTING or self.view.resume_at is not None:
            return False
        # After a pause, running agents may finish: that is still news, if somebody is there to take it in.
        busy = any(task.status == "RUNNING" and task.stage != "WAITING" for task in self.view.tasks)
        return not (busy and self.worked)


def status(
    target: str | None = None, /, *, all: bool = False, exit_code: bool = False, json: bool = False
) -> int:
    """Show what is going on here, or everything about one plan, task or run.

    Parameters
    ----------
    target
        A plan, a task or a run: an id, the beginning of one, a name, or PLAN/TASK (default: list the plans, and show
        the newest of this repository).
    all
        List the plans of every repository, not only of this one.
    exit_code
        Exit with the code that `run` would end with; without it, 0 means that the status could be shown.
    json
        Print the status as JSON.
    """
    with glancing() as look:
        named = look.store.read_sync(lambda tx: None if target is None else find_target(tx, target))
        if named is not None and not isinstance(named, Plan):
            if exit_code:
                raise UserError(
                    f"--exit-code is about a plan, and {target} is not one",
                    code="flags_conflict",
                    hint="name a plan",
                )
            # Loaded only here: a status of everything is shown in a moment.
            from loopwright.cli.commands.watch.show import show_row

            return show_row(look, named, as_json=json)
        seen, plans, total, workers = look.store.read_sync(lambda tx: _read(tx, look, named, everywhere=all))
        closed = look.store.read_sync(lambda tx: tx.find(Envelope, state=EnvelopeState.CLOSED))
        busy = look.store.read_sync(is_busy)
        if seen is not None and seen.view.status in _ENDED:
            seen = replace(seen, view=_with_news(look, seen.view))
        debts = look.store.read_sync(lambda tx: debt_views(tx, project_path=None if all else project_here()))
    code = code_of(seen.view) if exit_code and seen else ExitCode.VERIFIED
    if json:
        print_json(
            {
                "home": str(look.root),
                "workers": workers,
                "plans": plans,
                "plan": seen.view if seen else None,
                "closed": closed,
                "untold": debts,
                "alive": seen.alive if seen else 0,
                **({"gates": named.gates, "verdict": named.verdict, "policy": named.policy} if named else {}),
                "exit_code": int(code),
            }
        )
        return code
    out = console()
    out.print(paragraph(_workers_line(workers, look.root, busy=busy)))
    if closed:
        said = "; ".join(f"{label(one)} is {standing_of(one)}" for one in closed)
        out.print(paragraph(f"[yellow]note[/]: {escape(in_local_time(said))}"))
    for one in debts:
        # That of the plan below stands with it.
        if seen is None or one.plan_id != seen.view.id:
            out.print(paragraph(f"[yellow]note[/]: {escape(owed(one))}"))
    if named is None:
        _print_plans(out, plans, total, everywhere=all or project_here() is None)
    if seen is not None:
        out.print()
        if named is None and seen.view.path not in (project_here() or (seen.view.path,)):
            out.print(f"[yellow]note[/]: this plan is of another repository: {escape(seen.view.path)}")
        print_plan(out, seen, named)
    return code


def show(target: str | None = None, /, *, json: bool = False) -> int:
    """Show one task: what was expected, what failed, what to do next. Runs and plans are shown too.

    Parameters
    ----------
    target
        A task, a run or a plan: an id, the beginning of one, a name, or PLAN/TASK (default: the task that
        needs you, else the one that is running, else the newest plan).
    json
        Print it as JSON.
    """
    with glancing() as look:
        row = look.store.read_sync(lambda tx: wanted(tx, target))
        if not isinstance(row, Plan):
            from loopwright.cli.commands.watch.show import show_row

            return show_row(look, row, as_json=json)
    return status(row.id, json=json)


def _with_news(look: Look[Any], view: PlanView) -> PlanView:
    # Loaded only here: a status is shown in a moment.
    from loopwright.cli.screens.source_news import with_news
    from loopwright.engine.sources.later_edits import ended_plan

    return with_news(view, look.store.read_sync(lambda tx: ended_plan(tx, view.id)))


def _read(
    tx: Tx, look: Look[Any], named: Plan | None, *, everywhere: bool
) -> tuple[Seen | None, list[PlanSummary], int, tuple[WorkerSeen, ...]]:
    row = named or newest_plan(tx)
    project = None if everywhere else project_here()
    plans = plan_summaries(tx, project_path=project, limit=_LISTED)
    total = count_plans(tx, project_path=project)
    plans = [look.seen(tx, one) for one in plans]
    return (look_at(tx, look, row.id) if row else None), plans, total, look.workers(tx)


def look_at(tx: Tx, look: Look[Any], plan_id: str) -> Seen:
    """Return a plan as it is now, with the processes behind it."""
    runs = open_runs(tx, plan_id)
    return Seen(
        view=look.seen(tx, plan_view(tx, plan_id, look.paths)),
        worked=look.is_worked_on(tx, plan_id),
        alive=sum(keeper_files.is_held(look.paths.run(run.id)) for run in runs),
        current=is_current(tx, plan_id),
    )


def _workers_line(workers: tuple[WorkerSeen, ...], root: Path, *, busy: bool) -> str:
    home = f"[dim]home {escape(str(root))}[/]"
    if not workers:
        return f"no worker is running  {home}"
    names = [
        f"{one.hostname} " * bool(one.hostname)
        + f"process {one.pid if one.pid is not None else '?'}"
        + f" ({one.command})" * bool(one.command)
        for one in workers
    ]
    # One that is there and finds nothing to do, because everything is paused or over, does not work.
    word = "[green]working[/]" if busy else "[dim]standing by[/]"
    return f"{word}: {escape(', '.join(names))}  {home}"


def _print_plans(out: Console, plans: list[PlanSummary], total: int, *, everywhere: bool) -> None:
    if not plans:
        out.print(
            paragraph(
                "no plan of this repository yet; the newest of the home is below, --all lists every plan"
            )
        )
        return
    rows = []
    for one in plans:
        state, style = standing(one)
        cost = cost_in_words(one.cost_micros, complete=one.cost_complete, estimated=one.cost_estimated)
        rows.append(
            (
                Text(state, style=style),
                Text(short_id(one.id)),
                Text(f"{one.done}/{one.total}"),
                Text(cost),
                Text(f"{duration(one.changed_s)} ago"),
                Text(f"{one.title}  ({one.path})" if everywhere else one.title),
            )
        )
    out.print(Rows(rows, spare=(3, 4, 2), cut=5, right=(2, 3, 4)))
    if total > len(plans):
        out.print(f"[dim]and {total - len(plans)} older[/]")


def print_plan(out: Console, seen: Seen, row: Plan | None = None) -> None:
    """Print a plan with what to do next; with its row, its settings and its complete gate too."""
    view = seen.view
    out.print(screen(view))
    print_finishes(view)
    if row is not None:
        from loopwright.cli.screens.plan_details import print_details

        print_details(out, row, view)
    if view.reason and view.status != "VERIFIED":
        out.print(paragraph(f"why: {escape(in_local_time(view.reason))}"))
    if view.stopped:
        out.print(paragraph(f"stopped: {escape(in_local_time(view.stopped))}"))
    if has_gaps(view):
        from loopwright.cli.screens.gaps import print_gaps

        print_gaps(out, view.path, view.id)
    if seen.alive and not seen.worked:
        out.print(
            paragraph(
                f"[yellow]note[/]: {counted(seen.alive, 'run')} still going without a worker; "
                "the process that continues the plan takes over"
            )
        )
    steps = list(next_steps(view, known_about(view, is_worked_on=seen.worked)))
    if row is not None:
        steps.append(Step(command=command("receipt", "show", short_id(row.id)), why="the record of it"))
    print_steps(out, steps)
