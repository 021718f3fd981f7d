"""Everything about one task or run, with what to do next: the other half of `status`."""

import asyncio
import shlex
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from loopwright.cli.screens.changes import Change, Changes, task_span
from loopwright.cli.screens.checkout_changes import print_strays
from loopwright.cli.screens.layout import Roomy
from loopwright.cli.screens.next_steps import print_steps
from loopwright.cli.screens.plan_table import has_gaps
from loopwright.cli.screens.task_screen import print_lines, task_screen
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.cli.shell.times import local_time
from loopwright.core.rows.model import Loop, Plan, Run, Task
from loopwright.core.values.accounts import ACCOUNT
from loopwright.core.values.errors import UserError
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import LoopState, TaskState
from loopwright.core.values.wording import duration, money
from loopwright.engine.people.commands import check_retry, held_up, left_out
from loopwright.engine.views.next_steps import Known, Names, next_steps
from loopwright.engine.views.overview import RunView, run_view
from loopwright.engine.views.targets import handle
from loopwright.engine.views.views import TaskDetail, task_detail
from loopwright.ports import Tx
from loopwright.services.homes.read_only_home import Look, project_here

_FILE_LINES = 40
_AT_REST = (LoopState.PAUSED, LoopState.STOPPED)


def show_row(look: Look[Any], row: Task | Run, *, as_json: bool) -> int:
    """Show everything about one task or run."""
    if isinstance(row, Task):
        return _Tasks(look, row).show(as_json=as_json)
    return _show_run(look, row, as_json=as_json)


class _Tasks:
    """Shows one task."""

    def __init__(self, look: Look[Any], row: Task) -> None:
        self._detail, self._names = look.store.read_sync(lambda tx: self._load(tx, look, row))

    def _load(self, tx: Tx, look: Look[Any], row: Task) -> tuple[TaskDetail, Names]:
        project = project_here()
        try:
            check_retry(tx, row)
            refused = ""
        except UserError as why:
            refused = str(why)
        names = Names(
            handle=handle(tx, row, project_path=project),
            blockers=tuple(handle(tx, one, project_path=project) for one in _blockers(tx, row)[:2]),
            retry_refused=refused,
            may_leave_out=_may_leave_out(tx, row),
            stuck=tuple(handle(tx, one, project_path=project) for one in held_up(tx, row.plan_id)),
            resting=_rests(tx, row),
        )
        return task_detail(tx, row.id, look.paths), names

    def show(self, *, as_json: bool) -> int:
        """Print the task."""
        detail = self._detail
        changes = asyncio.run(self._changes())
        if as_json:
            changed = {str(n): change for n, change in changes.items() if n}
            print_json({"task": detail, "changes": changed, "landed": changes.get(0)})
            return ExitCode.VERIFIED
        out = console()
        height = min(_FILE_LINES, max(23, out.size.height - 1)) if out.is_terminal else _FILE_LINES
        lines, steps = task_screen(detail, changes, names=self._names, height=height)
        print_lines(out, lines)
        out.print()
        print_strays(out, detail.strays)
        if has_gaps(detail.task):
            from loopwright.cli.screens.gaps import print_gaps

            print_gaps(out, detail.path, detail.plan_id, detail.task.key)
        if detail.task.status == "COMPLETE":
            from loopwright.cli.screens.gaps import print_notes

            print_notes(out, detail.path, detail.plan_id, detail.task.key)
        out.print("[bold]to do[/]" if detail.task.status != "COMPLETE" else "[bold]see also[/]")
        print_steps(out, steps)
        return ExitCode.VERIFIED

    async def _changes(self) -> dict[int, Change | None]:
        """Return what each attempt changed by its number, and under 0 what landed."""
        repository = Changes(Path(self._detail.path))
        found = {one.n: await repository.between(one.base_sha, one.tip_sha) for one in self._detail.attempts}
        if self._detail.task.commit:
            found[0] = await repository.between(*task_span(self._detail))
        return found


def _blockers(tx: Tx, row: Task) -> list[Task]:
    """Return the failed or cancelled tasks that hold this one up, however far away."""
    tasks = {task.id: task for task in tx.find(Task, plan_id=row.plan_id, order_by=("position",))}
    ahead, seen = list(row.depends_on), set[str]()
    while ahead:
        one = ahead.pop()
        if one not in seen and tasks[one].status is not TaskState.COMPLETE:
            seen.add(one)
            ahead += tasks[one].depends_on
    stuck = (TaskState.ERROR, TaskState.CANCELLED)
    return [task for task in tasks.values() if task.id in seen and task.status in stuck]


def _may_leave_out(tx: Tx, row: Task) -> bool:
    plan = tx.get(Plan, row.plan_id)
    loop = tx.get(Loop, plan.loop_id) if plan else None
    return plan is not None and loop is not None and bool(left_out(tx, plan, loop))


def _rests(tx: Tx, row: Task) -> bool:
    plan = tx.get(Plan, row.plan_id)
    loop = tx.get(Loop, plan.loop_id) if plan else None
    return loop is not None and loop.plan_id == row.plan_id and loop.state in _AT_REST


# --- runs ------------------------------------------------------------------------------------------


def _show_run(look: Look[Any], row: Run, *, as_json: bool) -> int:
    view = look.store.read_sync(lambda tx: run_view(tx, row, look.paths))
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
