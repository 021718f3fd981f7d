"""The pages of plans and tasks, and the forms on them."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, get_args

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from loopwright.core.plans.draft_edits import DraftEdit, DraftTask
from loopwright.core.values.errors import LoopwrightError, NotFound
from loopwright.core.values.healing import STEPS
from loopwright.server.context import Home, Operator, Reader
from loopwright.server.pages import graph, timeline
from loopwright.server.pages.diffs import Changed, changed_files
from loopwright.server.pages.render import page, words_of
from loopwright.services.dashboard import home as dashboard
from loopwright.services.dashboard import plan as plan_views
from loopwright.services.dashboard import run as run_views
from loopwright.services.dashboard.trail import TrailWish
from loopwright.services.homes.caller import Expected, expect_version
from loopwright.services.remote import drafting, planning, plans, results

router = APIRouter(prefix="/plans", include_in_schema=False)

_IMPORTANT: Final = "important"
_DRAFT: Final = "draft"
"""The tab of a draft whose tasks can be changed."""
TABS: Final = ("graph", "time", "tasks", "changes", "cost", "events", "receipt")
_PLAN_ACTIONS: Final = frozenset(get_args(plans.PlanAction))
_TASK_ACTIONS: Final = frozenset(get_args(plans.TaskAction))


@router.get("/{plan_id}")
async def show_plan(
    request: Request,
    plan_id: str,
    home: Home,
    caller: Reader,
    tab: str = "",
    task: str = "",
    only: str = "",
    before: Annotated[int | None, Query(ge=1)] = None,
    refused: str = "",
) -> Response:
    """Show a plan; `task`, `only` and `before` limit its events."""
    wish = TrailWish(task=task, important=only == _IMPORTANT, before=before)
    shown = await plan_views.plan_page(home.at, caller, plan_id, events=wish if tab == "events" else None)
    tabs = (_DRAFT, *TABS) if shown.edits else TABS
    tab = tab if tab in tabs else tabs[0]
    values: dict[str, Any] = {}
    if tab == _DRAFT:
        values["draft"] = await plans.get_plan(home.at, caller, plan_id)
    elif tab == "graph":
        by_key = {one.key: one.id for one in shown.view.tasks}
        needs = {one.id: [by_key[key] for key in one.depends_on if key in by_key] for one in shown.view.tasks}
        values["graph"] = graph.lay_out(needs)
        values["size"] = (graph.NODE_WIDTH, graph.NODE_HEIGHT)
    elif tab == "time":
        values["timeline"] = timeline.draw(shown.spans, shown.now)
    elif tab == "changes":
        values["changes"] = await _changes(home, caller, plan_id)
    elif tab == "receipt":
        values["receipt"] = await _receipt(home, caller, plan_id)
    return page(
        request,
        "plan.html",
        plan=shown,
        view=shown.view,
        tab=tab,
        tabs=tabs,
        tasks={one.id: one for one in shown.view.tasks},
        wish=wish,
        now=datetime.now(UTC),
        asks=await dashboard.attention(home.at, caller),
        refused=refused,
        **values,
    )


@router.post("/{plan_id}/draft")
async def change_draft(request: Request, plan_id: str, home: Home, caller: Operator) -> Response:
    """Change the tasks of a draft as its form says."""
    form = {name: str(value) for name, value in (await request.form()).items()}
    try:
        expect_version(Expected(version=form.get("version", "")))
        await drafting.edit_draft(home.at, caller, plan_id, edited_draft(form))
    except NotFound:
        raise
    except LoopwrightError as refused:
        return await show_plan(request, plan_id, home, caller, refused=words_of(refused))
    return RedirectResponse(f"/plans/{plan_id}", status_code=303)


def edited_draft(form: Mapping[str, str]) -> DraftEdit:
    """Return a draft as its form says: fields are named after the position of their task."""
    positions = sorted(int(one.partition(".")[0]) for one in form if one.endswith(".key"))
    tasks = tuple(_edited_task(form, f"{one}.") for one in positions if f"{one}.drop" not in form)
    return DraftEdit(title=form.get("title", "").strip() or None, tasks=tasks)


def _edited_task(form: Mapping[str, str], at: str) -> DraftTask:
    def lines(name: str) -> tuple[str, ...] | None:
        text = form.get(at + name)
        return None if text is None else tuple(one.strip() for one in text.splitlines() if one.strip())

    return DraftTask(
        key=form[at + "key"],
        title=form.get(at + "title", "").strip() or None,
        description=form.get(at + "description", "").replace("\r\n", "\n"),
        depends_on=tuple(form.get(at + "depends_on", "").replace(",", " ").split()),
        criteria=lines("criteria"),
        acceptance=lines("acceptance"),
    )


@router.post("/{plan_id}/{action}")
async def act_on_plan(
    request: Request,
    plan_id: str,
    action: str,
    home: Home,
    caller: Operator,
    now: Annotated[bool, Form()] = False,
    finish: Annotated[str, Form()] = "",
) -> Response:
    """Carry out an action on a plan, then show it."""
    try:
        if action == "dispatch":
            await planning.dispatch_plan(home.at, caller, plan_id)
        elif action == "verify":
            await planning.verify_plan(home.at, caller, plan_id)
        elif action == "accept":
            await results.accept(home.at, caller, plan_id, finish=finish or None)
        elif action in _PLAN_ACTIONS:
            await plans.decide_plan(home.at, caller, plan_id, action, now=now)  # type: ignore[arg-type]
        else:
            raise NotFound(f"there is no action {action!r}", code="action_unknown")
    except NotFound:
        raise
    except LoopwrightError as refused:
        return await show_plan(request, plan_id, home, caller, refused=words_of(refused))
    return RedirectResponse(f"/plans/{plan_id}", status_code=303)


@router.get("/{plan_id}/tasks/{task:path}")
async def show_task(
    request: Request,
    plan_id: str,
    task: str,
    home: Home,
    caller: Reader,
    attempt: Annotated[int | None, Query(ge=1)] = None,
    refused: str = "",
) -> Response:
    """Show a task with its attempts side by side, and what it or one of them changed."""
    shown = await run_views.task_page(home.at, caller, plan_id, task)
    runs: dict[int | None, list[Any]] = {}
    for run in shown.runs:
        runs.setdefault(run.attempt, []).append(run)
    return page(
        request,
        "task.html",
        task=shown,
        detail=shown.detail,
        runs=runs,
        attempt=attempt,
        by_id={one.id: one for one in shown.detail.attempts},
        steps=STEPS,
        changes=await _changes(home, caller, plan_id, shown.detail.task.id, attempt),
        comments=await results.line_comments(home.at, caller, plan_id, shown.detail.task.id),
        now=datetime.now(UTC),
        asks=await dashboard.attention(home.at, caller),
        refused=refused,
    )


@router.post("/{plan_id}/tasks/{task}/{action}")
async def act_on_task(
    request: Request,
    plan_id: str,
    task: str,
    action: str,
    home: Home,
    caller: Operator,
    note: Annotated[str, Form()] = "",
    at: Annotated[list[str] | None, Form()] = None,
    text: Annotated[list[str] | None, Form()] = None,
) -> Response:
    """Carry out an action on a task, then show it; `at` and `text` are comments on lines of its change."""
    said = note.strip() or None
    try:
        if action in _TASK_ACTIONS:
            await plans.decide_task(home.at, caller, plan_id, task, action, note=said)  # type: ignore[arg-type]
        elif action == "send-back":
            comments = tuple(zip(at or (), text or (), strict=False))
            await results.send_back(home.at, caller, plan_id, task, note=note.strip(), comments=comments)
        elif action == "rollback":
            await results.rollback(home.at, caller, plan_id, task)
        elif action == "take-over":
            await results.take_over(home.at, caller, plan_id, task)
        elif action == "hand-back":
            await results.hand_back(home.at, caller, plan_id, task)
        else:
            raise NotFound(f"there is no action {action!r}", code="action_unknown")
    except NotFound:
        raise
    except LoopwrightError as refused:
        return await show_task(request, plan_id, task, home, caller, refused=words_of(refused))
    return RedirectResponse(f"/plans/{plan_id}/tasks/{task}", status_code=303)


async def _changes(
    home: Home, caller: Reader, plan_id: str, task: str | None = None, attempt: int | None = None
) -> Changed | None:
    """Return the changes of a plan or a task; None while there are none."""
    try:
        text, cut = await results.diff(home.at, caller, plan_id, task, attempt=attempt)
    except LoopwrightError:
        # Nothing has landed and no attempt was made, so there is no change yet.
        return None
    return await asyncio.to_thread(changed_files, text, cut=cut)


async def _receipt(home: Home, caller: Reader, plan_id: str) -> Mapping[str, Any] | None:
    try:
        return await results.receipt(home.at, caller, plan_id)
    except LoopwrightError:
        # A plan has a receipt once it was dispatched.
        return None
