"""`status` and `watch`: what is going on, once or live. Both only look."""

import json as jsonlib
import sys
from dataclasses import dataclass, replace
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from loopwright.adapters.processes import keeper_files
from loopwright.cli.screens.layout import Rows
from loopwright.cli.screens.next_steps import print_steps
from loopwright.cli.screens.plan_table import exit_code as code_of
from loopwright.cli.screens.plan_table import has_gaps, owed, print_finishes, screen, standing
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.core.policy.quotas import label
from loopwright.core.policy.quotas import standing as standing_of
from loopwright.core.rows.documents import document, plain
from loopwright.core.rows.waiting_rows import Envelope
from loopwright.core.values.event_values import RecordedEvent
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import EnvelopeState
from loopwright.core.values.wording import counted, duration, money
from loopwright.engine.rows.writeback_debts import debt_views
from loopwright.engine.views.next_steps import next_steps
from loopwright.engine.views.overview import PlanSummary, count_plans, is_current, open_runs, plan_summaries
from loopwright.engine.views.views import PlanView, is_busy, plan_view
from loopwright.ports import Tx
from loopwright.services.homes.plan_facts import known_about
from loopwright.services.homes.read_only_home import (
    Look,
    WorkerSeen,
    find_plan,
    glancing,
    looking,
    newest_plan,
    project_here,
)

_LISTED: Final = 12
_RESTING: Final = frozenset({"PAUSED", "STOPPED", "FAILED", "COMPLETED", "IDLE"})
_ENDED: Final = frozenset({"VERIFIED", "FAILED"})
_REFRESH_S: Final = 1.0
"""How often a live picture is drawn anew when nothing happens: for the running seconds, not for the news."""

_PAGE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
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
    plan: str | None = None, /, *, all: bool = False, exit_code: bool = False, json: bool = False
) -> int:
    """Show who works, which plans there are, and how the newest (or the named) one stands.

    Parameters
    ----------
    plan
        Which plan: an id or the beginning of one (default: the newest of this repository).
    all
        List the plans of every repository, not only of this one.
    exit_code
        Exit with the code that `run` would end with; without it, 0 means that the status could be shown.
    json
        Print the status as JSON.
    """
    with glancing() as look:
        seen, plans, total, workers = look.store.read_sync(lambda tx: _read(tx, look, plan, everywhere=all))
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
                "exit_code": int(code),
            }
        )
        return code
    out = console()
    out.print(_workers_line(workers, look, busy=busy))
    if closed:
        said = "; ".join(f"{label(one)} is {standing_of(one)}" for one in closed)
        out.print(f"[yellow]note[/]: {escape(said)}")
    for one in debts:
        # That of the plan below stands with it.
        if seen is None or one.plan_id != seen.view.id:
            out.print(f"[yellow]note[/]: {escape(owed(one))}")
    if plan is None:
        _print_plans(out, plans, total, everywhere=all or project_here() is None)
    if seen is not None:
        out.print()
        if plan is None and seen.view.path not in (project_here() or (seen.view.path,)):
            out.print(f"[yellow]note[/]: this plan is of another repository: {escape(seen.view.path)}")
        _print_plan(out, seen)
    return code


def _with_news(look: Look[Any], view: PlanView) -> PlanView:
    # Loaded only here: a status is shown in a moment.
    from loopwright.cli.screens.source_news import with_news
    from loopwright.engine.sources.later_edits import ended_plan

    return with_news(view, look.store.read_sync(lambda tx: ended_plan(tx, view.id)))


def _read(
    tx: Tx, look: Look[Any], plan: str | None, *, everywhere: bool
) -> tuple[_Seen | None, list[PlanSummary], int, tuple[WorkerSeen, ...]]:
    row = find_plan(tx, plan) if plan is not None else newest_plan(tx)
    project = None if everywhere else project_here()
    plans = plan_summaries(tx, project_path=project, limit=_LISTED)
    total = count_plans(tx, project_path=project)
    plans = [look.seen(tx, one) for one in plans]
    return (_look_at(tx, look, row.id) if row else None), plans, total, look.workers(tx)


def _look_at(tx: Tx, look: Look[Any], plan_id: str) -> _Seen:
    runs = open_runs(tx, plan_id)
    return _Seen(
        view=look.seen(tx, plan_view(tx, plan_id, look.paths)),
        worked=look.is_worked_on(tx, plan_id),
        alive=sum(keeper_files.is_held(look.paths.run(run.id)) for run in runs),
        current=is_current(tx, plan_id),
    )


def _workers_line(workers: tuple[WorkerSeen, ...], look: Look[Any], *, busy: bool) -> str:
    home = f"[dim]home {escape(str(look.root))}[/]"
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
        out.print("no plan of this repository yet; the newest of the home is below, --all lists every plan")
        return
    rows = []
    for one in plans:
        state, style = standing(one)
        cost = money(one.cost_micros, estimated=one.cost_estimated)
        if one.cost_micros is not None and not one.cost_complete:
            cost = f"≥{cost}"
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


def _print_plan(out: Console, seen: _Seen) -> None:
    view = seen.view
    out.print(screen(view))
    print_finishes(view)
    if view.reason and view.status != "VERIFIED":
        out.print(f"why: {escape(view.reason)}")
    if view.stopped:
        out.print(f"stopped: {escape(view.stopped)}")
    if has_gaps(view):
        from loopwright.cli.screens.gaps import print_gaps

        print_gaps(out, view.path, view.id)
    if seen.alive and not seen.worked:
        out.print(
            f"[yellow]note[/]: {counted(seen.alive, 'run')} still going "
            "without a worker; whoever goes on takes over what they do"
        )
    print_steps(out, next_steps(view, known_about(view, is_worked_on=seen.worked)))


# --- watch -----------------------------------------------------------------------------------------


def watch(plan: str | None = None, /, *, after: int | None = None, json: bool = False) -> int:
    """Follow a plan live until it rests; nothing is started and nothing is changed.

    Parameters
    ----------
    plan
        Which plan (default: the newest of this repository).
    after
        With --json: begin after the event with this number; 0 gives the whole history (default: only what comes).
    json
        Print one JSON document per line for each event, and the final state as the last line.
    """
    import asyncio  # `status` in this module has no use for it

    with looking() as look:
        plan_id = look.store.read_sync(lambda tx: find_plan(tx, plan)).id
        follow = _Events(look, plan_id, after).run() if json else _live(look, plan_id)
        return asyncio.run(follow)


async def _live(look: Look[Any], plan_id: str) -> int:
    import asyncio

    from loopwright.cli.screens.follow import Display

    with Display(footer="q or Ctrl-C ends the watching; the plan goes on.") as display:
        told, ended = False, display.keyboard.on_key("q")
        while True:
            seen = await look.store.read(lambda tx: _look_at(tx, look, plan_id))
            display.show(seen.view)
            if seen.at_rest or ended.is_set():
                break
            if not seen.worked and not told:
                display.say(
                    f"[yellow]no worker is running[/]: `loopwright resume {short_id(plan_id)}` in another "
                    "terminal goes on"
                )
            told = not seen.worked
            waits = [
                asyncio.ensure_future(look.store.changed(_REFRESH_S)),
                asyncio.ensure_future(ended.wait()),
            ]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for one in waits:
                one.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
    _print_plan(console(), seen)
    return code_of(seen.view)


class _Events:
    """A plan's events as lines of JSON, as they come."""

    def __init__(self, look: Look[Any], plan_id: str, after: int | None) -> None:
        self._look = look
        self._plan_id = plan_id
        self._after = after

    async def run(self) -> int:
        """Print events until the plan rests, then the final state."""
        if self._after is None:
            self._after = await self._look.store.read(lambda tx: tx.last_event())
        while True:
            events, seen = await self._look.store.read(self._page)
            for event in events:
                if self._belongs(event, seen.view):
                    _print_line(document(event))
            if events:
                self._after = events[-1].n
            elif seen.at_rest:
                code = code_of(seen.view)
                _print_line({"type": "end", "plan": plain(seen.view), "exit_code": int(code)})
                return code
            else:
                await self._look.store.changed(_REFRESH_S)

    def _page(self, tx: Tx) -> tuple[list[RecordedEvent], _Seen]:
        # Together, in one transaction: a plan that rests without further events has told everything.
        return tx.events(after=self._after or 0, limit=_PAGE), _look_at(tx, self._look, self._plan_id)

    def _belongs(self, event: RecordedEvent, view: PlanView) -> bool:
        return event.plan == self._plan_id or (event.plan is None and event.loop == view.loop_id)


def _print_line(value: object) -> None:
    sys.stdout.write(jsonlib.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()
