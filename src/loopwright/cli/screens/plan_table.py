"""A plan as a table: the same lines for `run`, `watch` and `status`."""

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from loopwright.cli.screens.layout import RowsWithNotes
from loopwright.cli.screens.question import picture
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import Wrapped, in_local_time, local_time
from loopwright.cli.shell.output import console, paragraph
from loopwright.core.values.failures import RULES, Failure
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import OPEN_FINISH, FinishState
from loopwright.core.values.wording import counted, dollars, duration, listed, money, one_line, to_type
from loopwright.services.views.plans import (
    ANSWERED,
    NO_WORKER,
    DebtView,
    FinishView,
    PlanFigures,
    PlanSummary,
    PlanView,
    SourceNews,
    TaskView,
)

_MARKS = {
    "COMPLETE": ("✔", "green"),
    "ERROR": ("✘", "red"),
    "CANCELLED": ("⊘", "dim"),
    "RUNNING": ("▶", "cyan"),
    "QUEUED": ("◌", "dim"),
    "CREATED": ("◌", "dim"),
    "AWAITING_RESPONSE": ("?", "yellow"),
}
_LIMITED = {
    "max_cost_per_run": "a run",
    "max_cost_per_task": "a task",
    "max_cost": "for the plan",
    "max_cost_per_loop": "for the loop",
    "max_cost_per_project": "for the project",
    "max_cost_per_day": "for today (UTC)",
    "token_spending_limit": "for the token",
}
_STANDINGS = {
    "VERIFIED": "green",
    "VERIFIED_WITH_GAPS": "yellow",
    "PAUSED": "yellow",
    "STOPPED": "yellow",
    NO_WORKER: "yellow",
    **dict.fromkeys(("FAILED", "CANCELLED", "UNVERIFIED", "NEEDS_YOU"), "red"),
}
_REVIEWED = {"CLEAR": "reviewed", "UNCLEAR": "review without result"}
_ASKED = 5
_NAMED = 44
"""How wide a task's key and title may get together: its state needs room beside them."""
_LEAST_TITLE = 8
_OWED = 5
_BAR = 24
"""How wide the bar of a live picture is."""


def mark(task: TaskView) -> Text:
    """Return the sign in front of a task."""
    sign, style = ("⊘", "yellow") if task.blocked else _MARKS.get(task.status, ("·", ""))
    if task.stage == "WAITING" and task.status != "AWAITING_RESPONSE":
        sign, style = "⏸", "yellow"
    return Text(sign, style=style)


def word(task: TaskView) -> str:
    """Return the one word for the state of a task."""
    if task.manual and task.status == "COMPLETE":
        return "done by hand"
    if task.manual and task.status == "CANCELLED":
        return "skipped"
    if task.status == "COMPLETE":
        return (task.outcome or "").replace("_", " ")
    if task.status == "ERROR":
        return "blocked" if task.blocked else "failed"
    if task.status == "AWAITING_RESPONSE":
        if task.manual:
            return "by hand"
        return "answered" if task.doing == ANSWERED else "asks you"
    if task.status == "RUNNING":
        return task.agent or "running" if task.stage == "WORKING" else task.stage.lower()
    if task.taken_by:
        return "taken over"
    return task.status.lower()


def tries(task: TaskView) -> str:
    """Return which attempt it is, and how many may fail; attempts that were interrupted have numbers too."""
    if task.rounds:
        return f"round {task.round} of {task.rounds}"
    if task.attempt == task.attempts_used + 1 <= task.max_attempts:
        return f"attempt {task.attempt} of {task.max_attempts}"
    failed = f", {task.attempts_used} of {task.max_attempts} failed" if task.attempts_used else ""
    return f"attempt {task.attempt}{failed}"


def remark(task: TaskView) -> str:
    """Return what else is worth a word on the task's line."""
    if task.status == "COMPLETE":
        checks = f"{task.checks_passed}/{task.checks_total} checks" if task.checks_total else ""
        again = f"attempt {task.attempt}" if task.attempt > 1 else ""
        again = tries(task) if task.rounds else again
        review = _REVIEWED.get(task.review or "", "")
        return "  ".join(part for part in (checks, review, (task.commit or "")[:7], again) if part)
    if task.status == "ERROR":
        # What the advice for this class of failure says is in `show`.
        advice = RULES[Failure(task.failure)].advice if task.failure else ""
        kind = (task.failure or "").replace("_", " ")
        said = (task.reason.removeprefix(advice).strip().splitlines() or [""])[0]
        return one_line(": ".join(filter(None, (kind, said))), 200)
    again = tries(task) if (task.attempt > 1 or task.round > 1) and not task.taken_by else ""
    return one_line(": ".join(filter(None, (again, in_local_time(task.doing)))), 100)


def tasks_rows(view: PlanView, *, limit: int | None = None) -> RowsWithNotes:
    """Return the tasks of a plan as a table; what an agent does now, or why a task failed, is never left out."""
    shown = _shown(view, limit)
    room = _NAMED - max((len(task.key) for task in shown), default=0) - 2
    rows = [
        (
            mark(task),
            Text(task.key, style="bold"),
            Text(one_line(task.title, room)) if task.title != task.key and room >= _LEAST_TITLE else Text(),
            Text(word(task)),
            Text(duration(task.elapsed_s)),
            Text(
                money(task.cost_micros, estimated=task.cost_estimated) if task.cost_micros is not None else ""
            ),
            Text(remark(task)),
        )
        for task in shown
    ]
    if len(shown) < len(view.tasks):
        more = Text(f"and {len(view.tasks) - len(shown)} more", style="dim")
        rows.append((Text(), more, Text(), Text(), Text(), Text(), Text()))
    kept = [task.status not in ("COMPLETE", "QUEUED", "CREATED") for task in shown]
    kept += [False] * (len(rows) - len(kept))
    return RowsWithNotes(rows, kept=kept, spare=(5, 4), cut=2, right=(4, 5))


def _shown(view: PlanView, limit: int | None) -> tuple[TaskView, ...]:
    if limit is None or len(view.tasks) <= limit:
        return view.tasks
    # Tasks that move or need you come first; a long list of done tasks says nothing.
    order = {"ERROR": 0, "RUNNING": 1, "AWAITING_RESPONSE": 1, "QUEUED": 2, "CREATED": 2}
    best = sorted(
        view.tasks, key=lambda task: (order.get(task.status, 3), bool(task.doing.startswith("waits for")))
    )
    keep = {task.id for task in best[:limit]}
    return tuple(task for task in view.tasks if task.id in keep)


def headline(view: PlanView) -> str:
    """Return the line above the table."""
    path = view.evaluation.get("critical_path", "?")
    return (
        f"[bold]{escape(view.title)}[/]  {short_id(view.id)}  {counted(view.total, 'task')}, "
        f"critical path {path}  from {escape(view.base_ref)} ({view.base_sha[:7]})"
    )


def summary(view: PlanView, *, live: bool = False) -> str:
    """Return what is below the table: the state in one line, and where the result is."""
    state, style = standing(view)
    bar = f"{progress_bar(view)}  " if live else ""
    gate = f"gate:all {view.gate_passed}/{view.gate_total}  " if view.gate_total else ""
    cost = cost_in_words(view.cost_micros, complete=view.cost_complete, estimated=view.cost_estimated)
    took = f"{duration(view.elapsed_s)}  " if view.elapsed_s is not None else ""
    return (
        f"[bold {style}]{state}[/]  {bar}{view.done}/{view.total} tasks  {gate}{took}{cost}\n"
        f"[dim]branch {view.branch}[/]" + limits(view)
    )


def progress_bar(view: PlanView) -> str:
    """Return how much of a plan is done, as a bar."""
    full = round(_BAR * view.done / view.total) if view.total else 0
    return f"[green]{'━' * full}[/][dim]{'─' * (_BAR - full)}[/]"


def cost_in_words(micros: int | None, *, complete: bool, estimated: bool) -> str:
    """Return what something has cost, as far as that is known."""
    if micros is None:
        # Nothing has ended yet whose cost could be unknown.
        return money(0) if complete else "cost unknown"
    return f"{'' if complete else 'at least '}{money(micros, estimated=estimated)}"


def sleeping(view: PlanView) -> str:
    """Return when the next round of a loop begins."""
    assert view.sleeps_until is not None
    return f"sleeping; the next round begins at {local_time(view.sleeps_until)}"


def awaits_look(view: PlanView) -> str:
    """Return that nothing new starts before you review what landed, and what to type then."""
    return f"nothing new starts until you have reviewed what landed: loopwright reviewed {short_id(view.id)}"


def owed(debt: DebtView) -> str:
    """Return which status could not be written to a source, why, and what to do about it."""
    about = listed(debt.items, limit=_OWED) if debt.items else "the plan"
    run = f"`{to_type('run', debt.source)}`"
    ways = f"fix that, then {run} writes it (a running worker does so by itself)"
    if debt.over:
        # Its branch stays as it was verified.
        ways = f"fix that, and set the status in {debt.source} yourself, so that {run} does not do them again"
    return f"not written back: {debt.source} lacks the status of {about}: {debt.reason}; {ways}"


def limits(view: PlanView) -> str:
    """Return lines with what may be spent, how much of it was, and what is nearly used up; none without limits."""
    parts = [
        f"{dollars(one.limit_micros)} {_LIMITED[one.setting]}"
        if one.spent_micros is None
        else f"{dollars(one.spent_micros)} of {dollars(one.limit_micros)} {_LIMITED[one.setting]}"
        for one in view.limits
    ]
    said = "".join(f"\n[yellow]warning[/]: {escape(one.warning)}" for one in view.limits if one.warning)
    return f"\n[dim]limits: {', '.join(parts)}[/]{said}" if parts else ""


def standing(view: PlanView | PlanSummary | PlanFigures) -> tuple[str, str]:
    """Return the word for a plan's state, with its colour."""
    word = view.state
    taken = "" if isinstance(view, PlanFigures) or not view.taken else f", {view.taken}"
    return word.replace("_", " ") + taken, _STANDINGS.get(word, "cyan")


def has_gaps(view: PlanView | TaskView) -> bool:
    """Return whether a plan or a task is done, but not fully proven."""
    if isinstance(view, TaskView) and view.manual:
        return False
    return view.status in ("VERIFIED", "COMPLETE") and view.outcome in ("verified_with_gaps", "unverified")


def exit_code(view: PlanView) -> ExitCode:
    """Return what a plan's state means for the exit code: 0 only when everything was verified."""
    if not _has_ended(view):
        return ExitCode.UNFINISHED
    if view.status == "VERIFIED" and view.outcome == "verified":
        # Nothing of the plan is left to do, so it is not unfinished: what to fix is outside of it.
        if view.untold:
            return ExitCode.ENVIRONMENT
        return ExitCode.UNFINISHED if view.news else ExitCode.VERIFIED
    if view.status == "VERIFIED":
        return ExitCode.UNVERIFIED
    if view.status == "CANCELLED":
        return ExitCode.UNFINISHED  # as a whole, whatever had failed before
    if view.outcome == "unverified":
        return ExitCode.UNVERIFIED if view.done == view.total else ExitCode.NOT_VERIFIED
    if view.loop_state == "FAILED" and view.status != "FAILED" and _waits_for_you(view):
        return ExitCode.UNFINISHED
    if view.status == "FAILED" or view.loop_state == "FAILED":
        return ExitCode.NOT_VERIFIED
    return ExitCode.UNFINISHED


def _waits_for_you(view: PlanView) -> bool:
    """Return whether a question is open, or every task that is left is blocked: none failed or was given up."""
    asks = any(one.is_contradiction or one.is_manual for one in view.questions)
    if asks or any(task.status == "AWAITING_RESPONSE" for task in view.tasks):
        return True
    stuck = [
        task
        for task in view.tasks
        if task.status == "ERROR" or (task.status == "CANCELLED" and not task.manual)
    ]
    return bool(stuck) and all(task.blocked for task in stuck)


def _has_ended(view: PlanView) -> bool:
    """Return whether its branch is where it should go; an end that a user asked for and was refused does not count."""
    if any(one.state in OPEN_FINISH for one in view.finishes):
        return False
    meant = [one for one in view.finishes if one.is_automatic or one.state == FinishState.FINISHED.value]
    return not meant or meant[-1].state == FinishState.FINISHED.value


def print_finishes(view: PlanView) -> None:
    """Print for each end of a plan where its work went."""
    for end in view.finishes:
        print_finish(end)


def print_finish(end: FinishView) -> None:
    """Print where a plan's work went, and what to do if it did not."""
    told, _, way = end.detail.partition("\n")
    out = console()
    if end.state == FinishState.FINISHED.value:
        out.print(paragraph(f"[green]{'finished' if end.is_automatic else 'accepted'}[/]: {escape(told)}"))
        return
    word = "not finished" if end.state == FinishState.REFUSED.value else "finishing"
    out.print(paragraph(f"[yellow]{word}[/]: {escape(told or end.how)}"))
    if way:
        out.print(paragraph(f"what to do: {escape(way)}"))


def news_lines(news: SourceNews) -> list[str]:
    """Return what a source says beyond its plan, and what to do about it."""
    again = to_type("run", news.source)
    lines = [f"not finished: {news.source}: {one}" for one in news.open_ends]
    if news.open_ends:
        lines.append(
            f"its own controller has to end that, or you take it out of {news.source}; then: {again}"
        )
    if news.changes:
        lines.append(f"new in {news.source} since the plan ended: {listed(news.changes)}")
        lines.append(f"take it up:  {again}")
    return lines


def screen(view: PlanView, *, limit: int | None = None, footer: str = "", live: bool = False) -> Group:
    """Return the whole picture of a plan; a live one has a bar that grows."""
    parts: list[RenderableType] = [
        Wrapped(Text.from_markup(headline(view)), indent="  "),
        tasks_rows(view, limit=limit),
        Text.from_markup(summary(view, live=live)),
    ]
    if view.finishes and view.finishes[-1].state in OPEN_FINISH:
        told = view.finishes[-1].detail.partition("\n")[0]
        parts.append(
            Text(
                f"finishing: {view.finishes[-1].how}" + (f" ({one_line(told)})" if told else ""), style="cyan"
            )
        )
    if view.questions:
        parts += [picture(one) for one in view.questions[:_ASKED]]
        if len(view.questions) > _ASKED:
            parts.append(Text(f"and {len(view.questions) - _ASKED} more: loopwright answer", style="dim"))
    if view.discovered:
        found = counted(view.discovered, "piece of other work was", "pieces of other work were")
        parts.append(Text(f"{found} found: loopwright discovered {short_id(view.id)}", style="cyan"))
    if view.sleeps_until:
        parts.append(Text(sleeping(view), style="dim"))
    if view.awaits_look:
        parts.append(Wrapped(Text(awaits_look(view), style="yellow"), indent="  "))
    if view.untold:
        parts.append(Wrapped(Text(owed(view.untold), style="yellow"), indent="  "))
    if view.news:
        parts += [Wrapped(Text(one, style="yellow"), indent="  ") for one in news_lines(view.news)]
    if footer:
        parts.append(Wrapped(Text(footer, style="dim")))
    return Group(*parts)
