"""`status`: what happens now, or everything about one plan, task or run. It changes nothing."""

import shlex
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from loopwright.cli.screens.advice import print_gaps, print_notes, print_steps, print_strays
from loopwright.cli.screens.layout import Roomy, Rows
from loopwright.cli.screens.plan_table import cost_in_words, has_gaps, owed, print_finishes, screen, standing
from loopwright.cli.screens.plan_table import exit_code as code_of
from loopwright.cli.screens.task_screen import print_lines, task_screen
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import in_local_time, local_time
from loopwright.cli.shell.output import console, paragraph, print_json, tell_chosen
from loopwright.core.values.accounts import ACCOUNT
from loopwright.core.values.errors import UserError
from loopwright.core.values.ids import short_id
from loopwright.core.values.wording import command, counted, duration, money
from loopwright.services.homes.read_only_home import project_here
from loopwright.services.quota import label
from loopwright.services.quota import standing as standing_of
from loopwright.services.views.events import Plan
from loopwright.services.views.plans import Known, Overview, Seen, Step, known_about, next_steps
from loopwright.services.views.tasks import RunView, TaskSeen, look_up, look_up_obvious

# Everything about one task or run, with what to do next: the other half of `status`.

_FILE_LINES = 40


def print_seen(seen: TaskSeen | RunView, *, as_json: bool) -> int:
    """Print everything about one task or run."""
    return (
        _print_run(seen, as_json=as_json) if isinstance(seen, RunView) else _print_task(seen, as_json=as_json)
    )


def _print_task(seen: TaskSeen, *, as_json: bool) -> int:
    # Only the screen of one task asks git.
    import asyncio

    from loopwright.services.views.changes import changes_of

    detail = seen.detail
    changes = asyncio.run(changes_of(detail))
    if as_json:
        changed = {str(n): change for n, change in changes.items() if n}
        print_json({"task": detail, "changes": changed, "landed": changes.get(0)})
        return ExitCode.VERIFIED
    out = console()
    height = min(_FILE_LINES, max(23, out.size.height - 1)) if out.is_terminal else _FILE_LINES
    lines, steps = task_screen(detail, changes, names=seen.names, height=height)
    print_lines(out, lines)
    out.print()
    print_strays(out, detail.strays)
    if has_gaps(detail.task):
        print_gaps(out, detail.path, detail.plan_id, detail.task.key)
    if detail.task.status == "COMPLETE":
        print_notes(out, detail.path, detail.plan_id, detail.task.key)
    out.print("[bold]to do[/]" if detail.task.status != "COMPLETE" else "[bold]see also[/]")
    print_steps(out, steps)
    return ExitCode.VERIFIED


def _print_run(view: RunView, *, as_json: bool) -> int:
    if as_json:
        print_json({"run": view})
        return ExitCode.VERIFIED
    out = console()
    out.print(f"[bold]{view.id}[/]  {view.role}  {view.state.lower()}")
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _run_facts(view):
        if value:
            table.add_row(name, escape(value))
    out.print(Roomy(table))
    print_steps(out, next_steps(view, Known()))
    return ExitCode.VERIFIED


def _run_facts(view: RunView) -> list[tuple[str, str]]:
    usage = view.usage
    tokens = f"{usage.input_tokens or '?'} in, {usage.output_tokens or '?'} out" if usage else ""
    agent = " ".join(filter(None, (view.agent, view.agent_version, view.model)))
    account = view.account or ""
    ended = f"exit code {view.exit_code}" if view.exit_code is not None else ""
    return [
        ("task", f"{view.task_key} attempt {view.attempt}" if view.task_key else ""),
        ("plan", short_id(view.plan_id)),
        ("agent", agent),
        ("account", account if account != ACCOUNT else ""),
        ("permission", view.permission_mode or ""),
        ("sandbox", view.sandbox or ""),
        ("started", local_time(view.started_at) if view.started_at else "not yet"),
        ("lasted", duration(view.lasted_s)),
        ("ended", "  ".join(filter(None, (ended, f"by {view.ended_by}" if view.ended_by else "")))),
        ("failure", (view.failure or "").replace("_", " ")),
        ("verdict", view.verdict.status.value if view.verdict else ""),
        ("said", " ".join(view.summary.split())),
        ("cost", money(view.cost_micros, estimated=view.cost_estimated) if view.agent else ""),
        ("tokens", tokens),
        ("command", shlex.join(view.argv)),
        ("output", f"{view.output_bytes} bytes, sha256 {view.output_sha256}" if view.output_sha256 else ""),
        ("files", view.directory if Path(view.directory).is_dir() else "not on this machine"),
    ]


def status(
    target: str | None = None, /, *, all: bool = False, exit_code: bool = False, json: bool = False
) -> int:
    """Show what happens here, or everything about one plan, task or run.

    Parameters
    ----------
    target
        A plan, a task or a run: an id, the beginning of one, a name, or PLAN/TASK (default: list the plans, and show
        the newest of this repository).
    all
        List the plans of every repository, not only of this one.
    exit_code
        Exit with the code that `run` would end with. Without it, the exit code is 0.
    json
        Print the status as JSON.
    """
    found = look_up(target, everywhere=all)
    if isinstance(found, Overview):
        return _print_overview(found, exit_code=exit_code, everywhere=all, as_json=json)
    if exit_code:
        raise UserError(
            f"--exit-code is about a plan, and {target} is not one",
            code="flags_conflict",
            hint="name a plan",
        )
    # An overview is shown in a moment, and does not need the screen of a task.

    return print_seen(found, as_json=json)


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
    found = look_up_obvious(target, tell=tell_chosen)
    if isinstance(found, Overview):
        return _print_overview(found, as_json=json)

    return print_seen(found, as_json=json)


def _print_overview(
    found: Overview, *, exit_code: bool = False, everywhere: bool = False, as_json: bool
) -> int:
    seen, named = found.seen, found.row
    code = code_of(seen.view) if exit_code and seen else ExitCode.VERIFIED
    if as_json:
        print_json(
            {
                "home": str(found.home),
                "workers": found.workers,
                "plans": found.plans,
                "plan": seen.view if seen else None,
                "closed": found.closed,
                "untold": found.untold,
                "alive": seen.alive if seen else 0,
                **({"gates": named.gates, "verdict": named.verdict, "policy": named.policy} if named else {}),
                "exit_code": int(code),
            }
        )
        return code
    out = console()
    out.print(paragraph(_workers_line(found)))
    if found.closed:
        said = "; ".join(f"{label(one)} is {standing_of(one)}" for one in found.closed)
        out.print(paragraph(f"[yellow]note[/]: {escape(in_local_time(said))}"))
    for one in found.untold:
        # The plan below shows its own.
        if seen is None or one.plan_id != seen.view.id:
            out.print(paragraph(f"[yellow]note[/]: {escape(owed(one))}"))
    if named is None:
        _print_plans(out, found, everywhere=everywhere or project_here() is None)
    if seen is not None:
        out.print()
        if named is None and seen.view.path not in (project_here() or (seen.view.path,)):
            out.print(f"[yellow]note[/]: this plan is of another repository: {escape(seen.view.path)}")
        print_plan(out, seen, named)
    return code


def _workers_line(found: Overview) -> str:
    home = f"[dim]home {escape(str(found.home))}[/]"
    if not found.workers:
        return f"no worker is running  {home}"
    names = [
        f"{one.hostname} " * bool(one.hostname)
        + f"process {one.pid if one.pid is not None else '?'}"
        + f" ({one.command})" * bool(one.command)
        for one in found.workers
    ]
    # A worker that finds nothing to do, because everything is paused or has ended, stands by.
    word = "[green]working[/]" if found.busy else "[dim]standing by[/]"
    return f"{word}: {escape(', '.join(names))}  {home}"


def _print_plans(out: Console, found: Overview, *, everywhere: bool) -> None:
    if not found.plans:
        out.print(
            paragraph(
                "no plan of this repository yet; the newest of the home is below, --all lists every plan"
            )
        )
        return
    rows = []
    for one in found.plans:
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
    if found.total > len(found.plans):
        out.print(f"[dim]and {found.total - len(found.plans)} older[/]")


def print_plan(out: Console, seen: Seen, row: Plan | None = None) -> None:
    """Print a plan with what to do next; with its row, its settings and its complete gate too."""
    view = seen.view
    out.print(screen(view))
    print_finishes(view)
    if row is not None:
        # Only a named plan has details.
        from loopwright.cli.screens.plan_details import print_details

        print_details(out, row, view)
    if view.reason and view.status != "VERIFIED":
        out.print(paragraph(f"why: {escape(in_local_time(view.reason))}"))
    if view.stopped:
        out.print(paragraph(f"stopped: {escape(in_local_time(view.stopped))}"))
    if has_gaps(view):
        # Reading receipts takes long to load, and few plans have gaps.
        from loopwright.cli.screens.advice import print_gaps

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
