"""Create loops, and start them: read the source, check it, and submit it as a plan, without a terminal."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

from loopwright.adapters.home.statefiles import ProjectStateFiles
from loopwright.adapters.machine.host import new_id
from loopwright.core.plans.planning import name_of
from loopwright.core.rows.model import Loop, Plan, Project
from loopwright.core.values.access import Bounds, Caller, Scope
from loopwright.core.values.errors import (
    BadPlan,
    LoopwrightError,
    NotAllowed,
    NotFound,
    Refused,
    UserError,
)
from loopwright.core.values.states import ENDED_PLAN, LoopState
from loopwright.engine.intake import loops
from loopwright.engine.money.charges import bounds_of_loop, check_creation, check_start
from loopwright.ports import Tx
from loopwright.services.control import decisions
from loopwright.services.driving.recorded_environments import needed_environment
from loopwright.services.homes.context import look_settings
from loopwright.services.homes.session import Session
from loopwright.services.preflight.checks import check_agent
from loopwright.services.preflight.run_inputs import meant_path, read_plan
from loopwright.services.remote.loops import LoopView, get_loop
from loopwright.services.remote.requested import Requested
from loopwright.services.remote.rounds import drive_rounds, is_in_rounds
from loopwright.services.remote.seen import acting, acting_as, check_seen, seen_loop, seen_project
from loopwright.services.remote.templates import find_template
from loopwright.services.runs.preparation import NothingToDo, RunRequest, prepare, submit


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLoop:
    """A loop to create, from exactly one of a source, a spec and a template."""

    project_id: str
    source: str | None = None
    """The file or folder with the work, relative to the project."""
    spec: Mapping[str, Any] | None = None
    """A plan, in the form of a plan file."""
    template: str | None = None
    """The name of a registered template."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The values of the template's parameters."""
    kind: str | None = None
    """The format of the source; None to recognise it."""
    name: str | None = None
    priority: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that its plans start with, by their keys."""


async def create_loop(at: Session, caller: Caller, wanted: NewLoop) -> LoopView:
    """Register a loop over a readable source; a source has one loop."""

    def may_create(tx: Tx) -> Project:
        check_creation(tx, caller.bounds)
        return seen_project(tx, caller, wanted.project_id)

    project = await at.home.store.read(may_create)
    with acting(at, caller, project):
        _check_settings(caller, wanted)
        path, is_made = await asyncio.to_thread(_source, at, caller, project, wanted)
        try:
            source, work = await asyncio.to_thread(read_plan, path, wanted.kind)
        except BadPlan:
            if is_made:
                path.unlink()
            raise
    relative = path.relative_to(project.path).as_posix()
    settings = (
        {**wanted.settings} if wanted.priority is None else {**wanted.settings, "priority": wanted.priority}
    )

    def insert(tx: Tx) -> Loop:
        return loops.register_loop(
            tx,
            new_id,
            project,
            caller.actor,
            name=wanted.name or f"{project.name}/{path.stem}",
            kind=source.kind,
            source=relative,
            priority=wanted.priority if wanted.priority is not None else work.priority,
            settings=settings,
            template=wanted.template,
            bounds=caller.bounds,
        )

    loop = await at.home.store.transact("loop.create", insert)
    return await get_loop(at, caller, loop.id)


def _check_settings(caller: Caller, wanted: NewLoop) -> None:
    """Refuse settings that only an admin may set, and an agent that no plan could use."""
    if "max_cost" in wanted.settings and not caller.may(Scope.ADMIN):
        raise NotAllowed(
            "a budget can only be set with the scope admin: loops inherit the project's",
            code="budget_needs_admin",
        )
    if (agent := wanted.settings.get("agent")) is not None:
        check_agent(agent, wanted.settings.get("model"), look_settings())


def _source(at: Session, caller: Caller, project: Project, wanted: NewLoop) -> tuple[Path, bool]:
    """Return the file or folder with the work, and whether it was made for this loop."""
    if sum(one is not None for one in (wanted.source, wanted.spec, wanted.template)) != 1:
        raise UserError(
            "a loop is made from a source, a spec or a template",
            code="loop_source_wrong",
            hint="send exactly one of source, spec and template",
        )
    if wanted.source is not None:
        return meant_path(_inside(project, wanted.source), wanted.kind), False
    if wanted.template is not None:
        text = find_template(at, project, wanted.template).filled(wanted.values)
    elif caller.may(Scope.ADMIN):
        text = json.dumps(wanted.spec, indent=2, ensure_ascii=False) + "\n"
    else:
        raise NotAllowed(
            "a spec defines commands, which needs the scope `admin`",
            code="spec_needs_admin",
            hint="use a registered template",
        )
    folder = Path(project.path) / project.subfolder / project.state_folder
    file = f"{name_of(wanted.name or wanted.template or 'loop')}-{uuid4().hex[:8]}.json"
    return ProjectStateFiles().put_text(folder, "loops", file, text), True


async def ask_to_start(
    at: Session, caller: Caller, loop_id: str, *, flags: Mapping[str, Any] | None = None
) -> LoopView:
    """Request the start of a loop; a loop that runs, or is being started, is unchanged."""

    def ask(tx: Tx) -> None:
        loop = seen_loop(tx, caller, loop_id)
        check_seen(tx, loop.id)
        needed_environment(seen_project(tx, caller, loop.project_id))
        check_start(tx, caller.bounds, loop)
        loops.ask_to_start(tx, loop, caller.actor, flags or {}, caller.bounds)

    await at.home.store.transact("loop.start", ask)
    return await get_loop(at, caller, loop_id)


def starter(at: Session) -> Requested[Loop]:
    """Return the function that starts loops on request."""
    return Requested(at, find=loops.asked_starts, carry_out=_begin, give_up=_note_not_started)


def _note_not_started(tx: Tx, loop: Loop, why: LoopwrightError) -> None:
    hint = getattr(why, "hint", None) or ""
    loops.note_not_started(tx, loop, code=why.code, reason=str(why), hint=hint)


async def _begin(at: Session, loop: Loop) -> None:
    """Start a loop, or be the controller of one over a folder with roles."""

    def load(tx: Tx) -> tuple[Project | None, Bounds | None]:
        return tx.get(Project, loop.project_id), bounds_of_loop(tx, loop)

    project, bounds = await at.home.store.read(load)
    if project is None or not is_in_rounds(loop, project):
        await start(at, loop)
        return
    needed_environment(project)
    with acting_as(at, loops.starter_of(loop), project, bounds):
        await drive_rounds(at, loop, _request(loop, project))


async def start(at: Session, loop: Loop) -> None:
    """Continue the unfinished plan of a loop, or create a plan from the open items of its source."""

    def load(tx: Tx) -> tuple[Loop | None, Project | None, Plan | None, Bounds | None]:
        row = tx.get(Loop, loop.id)
        plan = tx.get(Plan, row.plan_id) if row is not None and row.plan_id else None
        bounds = bounds_of_loop(tx, row) if row is not None else None
        return row, tx.get(Project, loop.project_id), plan, bounds

    row, project, plan, bounds = await at.home.store.read(load)
    if row is None or project is None or row.start is None:
        return
    needed_environment(project)
    with acting_as(at, loops.starter_of(row), project, bounds):
        if row.state is LoopState.RUNNING:
            pass  # the daemon was killed between the submission and this note
        elif plan is not None and plan.status not in ENDED_PLAN:
            await decisions.resume(at, plan.id)
        else:
            await _submit(row, project)
    await at.home.store.transact("loop.started", lambda tx: loops.note_started(tx, row))


def _request(loop: Loop, project: Project) -> RunRequest:
    own = {key: value for key, value in (loop.settings or {}).items() if key != "priority"}
    flags = {**own, **(loop.start or {}).get("flags", {})}
    return RunRequest(plan=Path(project.path) / loop.source_path, source=loop.source_kind, flags=flags)


async def _submit(loop: Loop, project: Project) -> None:
    prepared = await prepare(_request(loop, project))
    if isinstance(prepared, NothingToDo):
        raise Refused(
            f"{loop.source_path} has no open work: {prepared.done} done, {prepared.skipped} skipped",
            code="nothing_to_do",
            hint="add an item to it, then start the loop again",
        )
    async with prepared:
        await submit(prepared)


async def delete_loop(at: Session, caller: Caller, loop_id: str) -> None:
    """Delete a loop that is at rest; its plans are kept."""

    def remove(tx: Tx) -> None:
        loop = seen_loop(tx, caller, loop_id, deleted=True)
        if loop.deleted_at is None:
            check_seen(tx, loop.id)
        loops.delete_loop(tx, loop, caller.actor)

    await at.home.store.transact("loop.delete", remove)


def _inside(project: Project, source: str) -> Path:
    """Return the path of a source; one outside the project does not exist for a caller."""
    root = (Path(project.path) / project.subfolder).resolve()
    if not source or PurePosixPath(source).is_absolute() or "\0" in source:
        raise UserError("a source is a path relative to the project", code="source_path_wrong")
    path = (root / source).resolve()
    if not path.is_relative_to(root) or ".git" in path.relative_to(root).parts or not path.exists():
        raise NotFound(f"the project has no {source}", code="source_not_found")
    return path
