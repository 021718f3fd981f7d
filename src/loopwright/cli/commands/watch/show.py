"""`show`: everything about one task, run or plan, with what to do next."""

import asyncio
import os
import shlex
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from loopwright.cli.screens.changes import Change, Changes
from loopwright.cli.screens.checkout_changes import print_strays
from loopwright.cli.screens.layout import Roomy, one_line
from loopwright.cli.screens.next_steps import print_steps
from loopwright.cli.screens.plan_table import has_gaps, print_finishes, screen
from loopwright.cli.screens.task_screen import print_lines, task_screen
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.core.gates.verdicts import is_bad
from loopwright.core.rows.model import Loop, Plan, Project, Run, Task
from loopwright.core.values.accounts import ACCOUNT
from loopwright.core.values.errors import NotFound, UserError
from loopwright.core.values.findings import VerdictStatus
from loopwright.core.values.ids import short_id
from loopwright.core.values.shell_hints import command, to_type
from loopwright.core.values.states import LoopState, TaskState
from loopwright.core.values.wording import duration, money
from loopwright.engine.people.commands import check_retry, held_up, left_out
from loopwright.engine.views.next_steps import Known, Names, Step, next_steps
from loopwright.engine.views.overview import RunView, run_view
from loopwright.engine.views.targets import handle
from loopwright.engine.views.views import PlanView, TaskDetail, plan_view, task_detail
from loopwright.ports import Tx
from loopwright.services.homes.plan_facts import known_about
from loopwright.services.homes.read_only_home import Look, glancing, project_here, wanted

_FILE_LINES = 40
_AT_REST = (LoopState.PAUSED, LoopState.STOPPED)


def show(target: str | None = None, /, *, diff: bool = False, json: bool = False) -> int:
    """Show one task: what was expected, what failed, what to do next. Runs and plans are shown too.

    Parameters
    ----------
    target
        A task, a run or a plan: an id, the beginning of one, a name, or PLAN/TASK (default: the task that
        needs you, else the one that is running, else the newest plan).
    diff
        Print only the changes: of the landed commit, of the newest attempt, or of the whole plan.
    json
        Print it as JSON.
    """
    if diff and json:
        raise UserError(
            "--diff prints a diff, which is no JSON", code="flags_conflict", hint="leave one of them out"
        )
    with glancing() as look:
        row = look.store.read_sync(lambda tx: wanted(tx, target))
        if isinstance(row, Task):
            return _Tasks(look, row).show(diff=diff, as_json=json)
        if isinstance(row, Run):
            return _show_run(look, row, diff=diff, as_json=json)
        return _show_plan(look, row, diff=diff, as_json=json)


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

    def show(self, *, diff: bool, as_json: bool) -> int:
        """Print the task, or its diff."""
        detail = self._detail
        if diff:
            return _print_diff(detail.path, *self._span(), what=detail.task.key)
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

    def _span(self) -> tuple[str | None, str | None]:
        task = self._detail.task
        if task.commit:
            return f"{task.commit}^1", task.commit
        kept = [one for one in self._detail.attempts if one.tip_sha]
        return (kept[-1].base_sha, kept[-1].tip_sha) if kept else (None, None)

    async def _changes(self) -> dict[int, Change | None]:
        """Return what each attempt changed by its number, and under 0 what landed."""
        repository = Changes(Path(self._detail.path))
        found = {one.n: await repository.between(one.base_sha, one.tip_sha) for one in self._detail.attempts}
        if self._detail.task.commit:
            found[0] = await repository.between(*self._span())
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


def _print_diff(path: str, old: str | None, new: str | None, *, what: str) -> int:
    if old is None or new is None:
        raise NotFound(
            f"nothing was changed by {what} yet", code="no_changes", hint=f"`{to_type('show', what)}`"
        )
    out = console()
    color = out.is_terminal and not os.environ.get("NO_COLOR")
    asyncio.run(Changes(Path(path)).print_diff(old, new, color=color))
    return ExitCode.VERIFIED


def _project_path(tx: Tx, plan_id: str) -> str:
    plan = tx.get(Plan, plan_id)
    project = tx.get(Project, plan.project_id) if plan else None
    return project.path if project else "."


# --- runs ------------------------------------------------------------------------------------------


def _show_run(look: Look[Any], row: Run, *, diff: bool, as_json: bool) -> int:
    view = look.store.read_sync(lambda tx: run_view(tx, row, look.paths))
    if diff:
        path = look.store.read_sync(lambda tx: _project_path(tx, row.plan_id))
        return _print_diff(path, view.base_sha, view.tip_sha, what=short_id(row.id))
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
        ("started", f"{view.started_at:%Y-%m-%d %H:%M:%S} UTC" if view.started_at else "not yet"),
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


# --- plans -----------------------------------------------------------------------------------------


def _show_plan(look: Look[Any], row: Plan, *, diff: bool, as_json: bool) -> int:
    def load(tx: Tx) -> tuple[PlanView, bool, str]:
        return (
            look.seen(tx, plan_view(tx, row.id, look.paths)),
            look.is_worked_on(tx, row.id),
            _project_path(tx, row.id),
        )

    view, worked, path = look.store.read_sync(load)
    if diff:
        tip = row.result_sha or f"refs/heads/{row.branch}"
        return _print_diff(path, row.base_sha, tip, what=short_id(row.id))
    if as_json:
        print_json({"plan": view, "gates": row.gates, "verdict": row.verdict, "policy": row.policy})
        return ExitCode.VERIFIED
    out = console()
    out.print(screen(view))
    print_finishes(view)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, value in _plan_facts(row, view):
        table.add_row(name, one_line(value))
    out.print(Roomy(table))
    _print_gates(row)
    if view.reason and view.status != "VERIFIED":
        out.print(f"why: {escape(view.reason)}")
    if view.stopped:
        out.print(f"stopped: {escape(view.stopped)}")
    record = Step(command=command("receipt", "show", short_id(row.id)), why="the record of it")
    print_steps(out, [*next_steps(view, known_about(view, is_worked_on=worked)), record])
    return ExitCode.VERIFIED


def _plan_facts(row: Plan, view: PlanView) -> list[tuple[str, str]]:
    policy = row.policy
    agent = " ".join(filter(None, (policy.agent, policy.model)))
    facts: list[tuple[str, Any]] = [
        ("project", view.path),
        (
            "agent",
            (
                f"{agent}, permission mode {policy.permission_mode}, {policy.parallel} at once, "
                f"{policy.max_attempts} attempts each"
            ),
        ),
        ("created", f"{row.created_at:%Y-%m-%d %H:%M:%S} UTC"),
    ]
    if row.verified_at:
        facts.append(
            ("verified", f"{row.verified_at:%Y-%m-%d %H:%M:%S} UTC as {(row.result_sha or '')[:10]}")
        )
    if policy.dependencies:
        facts.append(("dependencies", policy.dependencies))
    if policy.setup:
        facts.append(("setup", policy.setup))
    return facts


def _print_gates(row: Plan) -> None:
    out = console()
    if row.verdict is None:
        names = ", ".join(gate.name for gate in row.gates)
        out.print(f"[dim]gate:all[/]  {escape(names) or 'only the acceptance of the tasks'}, not run yet")
        return
    passed = row.verdict.status is VerdictStatus.PASSED
    out.print(f"[dim]gate:all[/]  [{'green' if passed else 'red'}]{row.verdict.status.value}[/]")
    bad = [one for one in row.verdict.commands if one.refused]
    for one in bad[:3]:
        how = "ran out of time" if one.timed_out else f"exit code {one.exit_code}"
        out.print(f"  [red]✘[/] {escape(one.name)} ({how})")
        for line in one.tail.rstrip().splitlines()[-5:]:
            out.print("    " + escape(line), soft_wrap=True)
    if not bad:
        # Every command ended with 0, and was not believed.
        for check in list(filter(is_bad, row.verdict.checks))[:3]:
            out.print(f"  [red]✘[/] {escape(check.name)}", soft_wrap=True)
