"""Drafts: a plan is requested, an agent writes its tasks in the background, and the user may change them."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal
from uuid import uuid4

from loopwright.adapters.machine.host import new_id
from loopwright.adapters.sources.spec.edited_plan import edited
from loopwright.core.plans.draft_edits import DraftEdit, DraftTask
from loopwright.core.plans.planning import FOLDER, name_of
from loopwright.core.rows.model import Loop, Plan, Project, Task
from loopwright.core.values.access import Bounds, Caller, Scope
from loopwright.core.values.errors import NotAllowed, Refused, StoreUnavailable
from loopwright.core.values.states import ENDED_PLAN, LoopState, PlanState
from loopwright.engine.intake.submit import Submission, draft
from loopwright.engine.money.charges import bounds_of_plan, check_creation, check_spending
from loopwright.engine.rows import drafts
from loopwright.ports import PlannedWork, Tx
from loopwright.services.control import decisions
from loopwright.services.driving.driver import Rested
from loopwright.services.driving.recorded_environments import needed_environment
from loopwright.services.homes.caller import write_whole
from loopwright.services.homes.context import glance_at, needed_place, settings_for
from loopwright.services.homes.session import Session
from loopwright.services.plans.planning import GoalRequest, packet_facts, plan_goal
from loopwright.services.preflight.run_inputs import project_settings
from loopwright.services.remote.packets import packet_file
from loopwright.services.remote.plans import PlanRecord, get_plan
from loopwright.services.remote.requested import Requested
from loopwright.services.remote.seen import acting, acting_as, check_seen, plan_and_project, seen_project
from loopwright.services.runs.preparation import NothingToDo, RunRequest, prepare, submit

Autonomy = Literal["manual", "supervised", "auto"]

_TICK_S: Final = 5.0
_WRITABLE: Final = "make the project's folder writable"
_EDITING: Final[dict[str, asyncio.Lock]] = {}
"""One edit of a draft at a time: its file and its rows change together."""
_LONGEST_TITLE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWish:
    """The plan to create."""

    packet_id: str | None = None
    goal: str = ""
    """Without one, the packet's own goal or the title of its task."""
    model: str | None = None
    """The planner's model."""
    autonomy: Autonomy = "manual"


async def ask_for_plan(
    at: Session, caller: Caller, project_id: str, wish: PlanWish, *, replaces: str | None = None
) -> PlanRecord:
    """Create a draft, and let an agent write its tasks in the background.

    If the agent writes no usable tasks, the draft becomes FAILED with a reason.
    """

    def may_create(tx: Tx) -> Project:
        check_creation(tx, caller.bounds)
        return seen_project(tx, caller, project_id)

    project = await at.home.store.read(may_create)
    needed_environment(project)
    if wish.packet_id is not None:
        await packet_file(at, caller, wish.packet_id, project_id)
    with acting(at, caller, project):
        place = needed_place()
        goal, run_id = packet_facts(place, wish.packet_id, wish.goal)
        with glance_at(place.root) as repository:
            base = await repository.base()
            found = await project_settings(repository, base.sha, place)
        settings = settings_for(flags={"autonomy": wish.autonomy}, project_text=found.text)
        file = Path(place.subfolder) / FOLDER / f"{name_of(goal)}-{uuid4().hex[:8]}.yaml"
    asked = Submission(
        root=place.root,
        subfolder=place.subfolder,
        source_kind="yaml",
        source_path=file.as_posix(),
        work=PlannedWork(title=" ".join(goal.split())[:_LONGEST_TITLE], tasks=(), sha256=""),
        base=base,
        policy=settings.policy(),
        gates=settings.gates,
        actor=caller.actor,
        rests=True,
        bounds=caller.bounds,
        state_folder=settings.values.state_folder,
    )
    note = {"actor": caller.actor, "goal": goal, "model": wish.model, "autonomy": wish.autonomy}
    facts: dict[str, Any] = {
        "wish": {**note, "file": asked.source_path},
        "packet_id": wish.packet_id,
        "source_run_id": run_id,
        "replaces": replaces,
    }
    made = await at.home.store.transact("plan.draft", lambda tx: draft(tx, new_id, project, asked, **facts))
    return await get_plan(at, caller, made.plan.id)


async def plan_again(
    at: Session,
    caller: Caller,
    plan_id: str,
    *,
    goal: str = "",
    model: str | None = None,
    autonomy: Autonomy | None = None,
) -> PlanRecord:
    """Have a new plan written in place of a draft or a failed plan; the old one keeps its record."""

    def load(tx: Tx) -> tuple[Plan, str]:
        plan, _ = plan_and_project(tx, caller, plan_id)
        if plan.status not in (PlanState.DRAFT, PlanState.FAILED, PlanState.CANCELLED):
            raise Refused(
                f"the plan is {plan.status.value}: only a draft, a failed or a cancelled plan is planned again",
                code="plan_not_replannable",
                hint="cancel it first",
            )
        return plan, drafts.goal_again(plan)

    plan, said = await at.home.store.read(load)
    known = plan.policy.autonomy
    wish = PlanWish(
        packet_id=plan.packet_id,
        goal=goal.strip() or said,
        model=model,
        autonomy=autonomy
        or ("auto" if known == "auto" else "supervised" if known == "supervised" else "manual"),
    )
    made = await ask_for_plan(at, caller, plan.project_id, wish, replaces=plan.id)
    if plan.status is PlanState.DRAFT:
        # Only now: a refused request does not change the draft.
        with acting(
            at, caller, await at.home.store.read(lambda tx: seen_project(tx, caller, plan.project_id))
        ):
            await decisions.cancel(at, plan.id)
    return made


def planner(at: Session) -> Requested[Plan]:
    """Return the function that has drafts written on request."""
    return Requested(
        at,
        find=drafts.unwritten,
        carry_out=write_draft,
        give_up=lambda tx, plan, why: drafts.fail_generation(tx, plan.id, str(why)),
    )


async def write_draft(at: Session, plan: Plan) -> None:
    """Have an agent write the tasks of a draft; a second call continues the first."""

    def load(tx: Tx) -> tuple[Project | None, Bounds | None]:
        return tx.get(Project, plan.project_id), bounds_of_plan(tx, plan)

    project, bounds = await at.home.store.read(load)
    wish = plan.wish
    if project is None or wish is None:
        return
    path = Path(project.path) / str(wish["file"])
    with acting_as(at, str(wish["actor"]), project, bounds):
        planned = await plan_goal(
            GoalRequest(
                goal=str(wish["goal"]),
                out=path,
                flags={"model": wish["model"]} if wish.get("model") else {},
                packet=plan.packet_id,
                force=True,
                made_for=plan.id,
            ),
            drive=_until_ended,
        )
        if planned.path is None:
            why = "; ".join(planned.problems) or await _reason(at, planned.plan_id)
            raise Refused(f"no plan could be made of the goal: {why}", code="plan_not_generated")
        await _fill(path, plan.id, str(wish["autonomy"]))


async def _fill(path: Path, plan_id: str, autonomy: str) -> None:
    flags: Mapping[str, Any] = {"autonomy": autonomy}
    prepared = await prepare(
        RunRequest(plan=path, flags=flags, rests=True, fills=plan_id), drive=_until_ended
    )
    if isinstance(prepared, NothingToDo):
        raise Refused("the plan has no open task", code="nothing_to_do")
    async with prepared:
        await submit(prepared)


async def _until_ended(at: Session, plan: Plan, _submitter: str) -> Rested:
    """Wait until a plan has ended: the daemon's worker drives it, and the user may have to answer a question first."""

    def status(tx: Tx) -> PlanState | None:
        row = tx.get(Plan, plan.id)
        return row.status if row is not None else None

    while (state := await at.home.store.read(status)) is not None and state not in ENDED_PLAN:
        await at.home.store.changed(_TICK_S)
    return Rested(plan_id=plan.id)


async def _reason(at: Session, plan_id: str) -> str:
    plan = await at.home.store.read(lambda tx: tx.get(Plan, plan_id))
    return (plan.reason if plan is not None else "") or "the agent gave no answer that could be used"


async def edit_draft(at: Session, caller: Caller, plan_id: str, edit: DraftEdit) -> PlanRecord:
    """Change the title or the tasks of a draft: its file is written again, and the plan is evaluated again."""
    async with _EDITING.setdefault(plan_id, asyncio.Lock()):
        plan, project, path, named = await at.home.store.read(lambda tx: _editable(tx, caller, plan_id, edit))
        with acting(at, caller, project):
            before = await asyncio.to_thread(_text_of, path)
            try:
                await asyncio.to_thread(write_whole, path, edited(before, named), hint=_WRITABLE)
                await _fill(path, plan.id, plan.policy.autonomy)
            except BaseException:  # whatever went wrong: the file and the rows agree
                if not _is_refilled(at, plan):
                    write_whole(path, before, hint=_WRITABLE)
                raise
    return await get_plan(at, caller, plan_id)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(
            f"the file of this draft cannot be read: {error}",
            code="plan_not_editable",
            hint="replan it, or put the file back",
        ) from error


def _is_refilled(at: Session, plan: Plan) -> bool:
    """Return whether the rows of a plan have changed since it was read."""
    with contextlib.suppress(StoreUnavailable):
        now = at.home.store.read_sync(lambda tx: tx.get(Plan, plan.id))
        return now is not None and now.source_sha256 != plan.source_sha256
    return False


def _editable(tx: Tx, caller: Caller, plan_id: str, edit: DraftEdit) -> tuple[Plan, Project, Path, DraftEdit]:
    plan, project = plan_and_project(tx, caller, plan_id)
    loop = tx.get(Loop, plan.loop_id)
    check_seen(tx, plan.id)
    check_spending(tx, caller.bounds, [plan.id])
    if loop is None or plan.status is not PlanState.DRAFT or loop.state is LoopState.RUNNING:
        raise Refused(
            f"the plan is {plan.status.value}: only a draft can be changed", code="plan_not_a_draft"
        )
    drafts.refuse_unwritten(plan)
    if loop.source_kind != "yaml":
        raise Refused(
            f"this draft is made of {loop.source_path}", code="plan_not_editable", hint="edit that file"
        )
    if edit.has_commands and not caller.may(Scope.ADMIN):
        raise NotAllowed(
            "a task with commands needs a token with the scope `admin`",
            code="commands_need_admin",
            hint="describe the criteria in words, or use an admin token",
        )
    keys = {task.id: task.key for task in tx.find(Task, plan_id=plan.id)}

    def by_key(task: DraftTask) -> DraftTask:
        needs = None if task.depends_on is None else tuple(keys.get(one, one) for one in task.depends_on)
        return replace(task, key=keys.get(task.key, task.key), depends_on=needs)

    tasks = None if edit.tasks is None else tuple(map(by_key, edit.tasks))
    return plan, project, Path(project.path) / loop.source_path, replace(edit, tasks=tasks)
