"""A plan as a table: the same lines for `run`, `watch` and `status`."""

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from loopwright.cli.exits import ExitCode
from loopwright.cli.output import duration, money
from loopwright.core.failures import RULES, Failure
from loopwright.core.ids import short_id
from loopwright.engine.overview import PlanSummary
from loopwright.engine.views import PlanView, TaskView

_WIDE = 240
"""How wide a table may get where nobody's terminal sets a limit."""

_MARKS = {
    "COMPLETE": ("✔", "green"),
    "ERROR": ("✘", "red"),
    "CANCELLED": ("⊘", "dim"),
    "RUNNING": ("▶", "cyan"),
    "QUEUED": ("◌", "dim"),
    "CREATED": ("◌", "dim"),
    "AWAITING_RESPONSE": ("?", "yellow"),
}


def mark(task: TaskView) -> Text:
    """Return the sign in front of a task."""
    sign, style = _MARKS.get(task.status, ("·", ""))
    if task.stage == "WAITING":
        sign, style = "⏸", "yellow"
    return Text(sign, style=style)


def word(task: TaskView) -> str:
    """Return the one word for where a task stands."""
    if task.status == "COMPLETE":
        return (task.outcome or "").replace("_", " ")
    if task.status == "ERROR":
        return (task.failure or "failed").replace("_", " ")
    if task.status == "RUNNING":
        return task.agent or "running" if task.stage == "WORKING" else task.stage.lower()
    return task.status.lower()


def remark(task: TaskView) -> str:
    """Return what else is worth a word on the task's line."""
    if task.status == "COMPLETE":
        checks = f"{task.checks_passed}/{task.checks_total} checks" if task.checks_total else ""
        again = f"attempt {task.attempt}" if task.attempt > 1 else ""
        return "  ".join(part for part in (checks, (task.commit or "")[:7], again) if part)
    if task.status == "ERROR":
        # The class of failure is on the line already; what its advice says is in `show`.
        advice = RULES[Failure(task.failure)].advice if task.failure else ""
        return (task.reason.removeprefix(advice).strip().splitlines() or [""])[0][:200]
    again = f"attempt {task.attempt} of {task.max_attempts}: " if task.attempt > 1 else ""
    return (again + task.doing)[:100]


def one_line(text: str, style: str = "") -> Text:
    """Return a text that is cut, not wrapped, where the line ends."""
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


class Roomy:
    """Gives a table the room it wants where the output is no terminal: a log is not 80 columns wide."""

    def __init__(self, content: RenderableType) -> None:
        self._content = content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render with the terminal's width if there is one."""
        if console.is_terminal:
            yield self._content
            return
        wide = options.update(width=max(_WIDE, options.max_width))
        for line in console.render_lines(self._content, wide, pad=False):
            # The blanks that fill up a table's last column are of no use in a file.
            text = Text.assemble(*((one.text, one.style or "") for one in line))
            text.rstrip()
            yield text


def tasks_table(view: PlanView, *, limit: int | None = None) -> Table:
    """Return the tasks of a plan as a table."""
    table = Table.grid(padding=(0, 2))
    for style in ("", "bold", "", "", ""):
        table.add_column(style=style, no_wrap=True)
    # Only what is said last gives way when the terminal is narrow.
    table.add_column()
    table.columns[4].justify = table.columns[3].justify = "right"
    shown = _shown(view, limit)
    for task in shown:
        cost = money(task.cost_micros) if task.cost_micros is not None else ""
        table.add_row(
            mark(task), escape(task.key), word(task), duration(task.elapsed_s), cost, one_line(remark(task))
        )
    if len(shown) < len(view.tasks):
        table.add_row("", Text(f"and {len(view.tasks) - len(shown)} more", style="dim"), "", "", "", "")
    return table


def _shown(view: PlanView, limit: int | None) -> tuple[TaskView, ...]:
    if limit is None or len(view.tasks) <= limit:
        return view.tasks
    # What moves or needs someone comes first; a long list of done tasks tells nothing.
    order = {"ERROR": 0, "RUNNING": 1, "AWAITING_RESPONSE": 1, "QUEUED": 2, "CREATED": 2}
    best = sorted(
        view.tasks, key=lambda task: (order.get(task.status, 3), bool(task.doing.startswith("waits for")))
    )
    keep = {task.id for task in best[:limit]}
    return tuple(task for task in view.tasks if task.id in keep)


def counted(number: int, what: str) -> str:
    """Return a number with its noun."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def headline(view: PlanView) -> str:
    """Return the line above the table."""
    path = view.evaluation.get("critical_path", "?")
    return (
        f"[bold]{escape(view.title)}[/]  {short_id(view.id)}  {counted(view.total, 'task')}, "
        f"critical path {path}  from {escape(view.base_ref)} ({view.base_sha[:7]})"
    )


def summary(view: PlanView) -> str:
    """Return what is below the table: how it stands, in one line, and where the result is."""
    state, style = standing(view)
    gate = f"gate:all {view.gate_passed}/{view.gate_total}  " if view.gate_total else ""
    cost = money(view.cost_micros) if view.cost_micros is not None else "cost unknown"
    if view.cost_micros is not None and not view.cost_complete:
        cost = f"at least {cost}"
    return (
        f"[bold {style}]{state}[/]  {view.done}/{view.total} tasks  {gate}{duration(view.elapsed_s)}  {cost}\n"
        f"[dim]branch {view.branch}[/]"
    )


def standing(view: PlanView | PlanSummary) -> tuple[str, str]:
    """Return the word for a plan's state, with its colour."""
    if view.status == "VERIFIED":
        return ("VERIFIED", "green") if view.outcome == "verified" else ("VERIFIED WITH GAPS", "yellow")
    if view.status in ("FAILED", "CANCELLED"):
        return view.status if view.outcome != "unverified" else "UNVERIFIED", "red"
    if view.loop_state == "FAILED":
        return "NEEDS YOU", "red"
    if view.loop_state in ("PAUSED", "STOPPED"):
        return view.loop_state, "yellow"
    return view.status, "cyan"


def exit_code(view: PlanView) -> ExitCode:
    """Return what a plan's state means for the exit code: 0 only when everything was verified."""
    if view.status == "VERIFIED":
        return ExitCode.VERIFIED if view.outcome == "verified" else ExitCode.UNVERIFIED
    if view.outcome == "unverified":
        return ExitCode.UNVERIFIED if view.done == view.total else ExitCode.NOT_VERIFIED
    if view.status == "FAILED" or view.loop_state == "FAILED":
        return ExitCode.NOT_VERIFIED
    return ExitCode.UNFINISHED


def screen(view: PlanView, *, limit: int | None = None, footer: str = "") -> Group:
    """Return the whole picture of a plan."""
    parts: list[RenderableType] = [
        Text.from_markup(headline(view)),
        Roomy(tasks_table(view, limit=limit)),
        Text.from_markup(summary(view)),
    ]
    if footer:
        parts.append(Text.from_markup(f"[dim]{escape(footer)}[/]"))
    return Group(*parts)
