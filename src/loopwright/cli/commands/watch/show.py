"""Everything about one task or run, with what to do next: the other half of `status`."""

import asyncio
import shlex
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from loopwright.cli.screens.checkout_changes import print_strays
from loopwright.cli.screens.gaps import print_gaps, print_notes
from loopwright.cli.screens.layout import Roomy
from loopwright.cli.screens.next_steps import print_steps
from loopwright.cli.screens.plan_table import has_gaps
from loopwright.cli.screens.task_screen import print_lines, task_screen
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.cli.shell.times import local_time
from loopwright.core.values.accounts import ACCOUNT
from loopwright.core.values.ids import short_id
from loopwright.core.values.wording import duration, money
from loopwright.services.views.changes import changes_of
from loopwright.services.views.plans import Known, next_steps
from loopwright.services.views.tasks import RunView, TaskSeen

_FILE_LINES = 40


def print_seen(seen: TaskSeen | RunView, *, as_json: bool) -> int:
    """Print everything about one task or run."""
    return (
        _print_run(seen, as_json=as_json) if isinstance(seen, RunView) else _print_task(seen, as_json=as_json)
    )


def _print_task(seen: TaskSeen, *, as_json: bool) -> int:
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
