"""Projects: list and show them."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from loopwright.adapters.machine.host import new_id
from loopwright.core.rows.model import Loop, Plan, Project
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.access import Caller
from loopwright.core.values.errors import NotAllowed, UserError
from loopwright.core.values.states import LoopState, QuestionState
from loopwright.engine.intake.submit import register_project
from loopwright.ports import Tx
from loopwright.services.driving.recorded_environments import record_environment
from loopwright.services.homes.caller import called_from
from loopwright.services.homes.context import look_settings, needed_folder
from loopwright.services.homes.session import Session
from loopwright.services.remote.pages import Asked, Page, find_page
from loopwright.services.remote.seen import seen_project


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectView:
    """A project with counts of its loops, plans and questions."""

    project: Project
    loops: int
    running: int
    plans: int
    open_questions: int


async def list_projects(at: Session, caller: Caller, page: Asked) -> Page[ProjectView]:
    """Return the projects that the caller may see, by name."""

    def load(tx: Tx) -> Page[ProjectView]:
        where = {} if caller.projects is None else {"id": sorted(caller.projects)}
        return find_page(tx, Project, page, order_by=("name",), **where).map(lambda one: _view(tx, one))

    return await at.home.store.read(load)


async def get_project(at: Session, caller: Caller, project_id: str) -> ProjectView:
    """Return one project."""
    return await at.home.store.read(lambda tx: _view(tx, seen_project(tx, caller, project_id)))


async def add_project(at: Session, caller: Caller, path: str) -> ProjectView:
    """Register a repository; its environment is recorded in a terminal, because a client never sends one."""
    if not caller.sees(None):
        raise NotAllowed(
            "a token for some projects cannot register others",
            code="token_reaches_too_far",
            hint="use a token for all projects",
        )
    folder = Path(path)
    if "\0" in path or not folder.is_absolute() or not folder.is_dir():
        raise UserError(
            f"{path!r} is not the path of a folder", code="project_path_wrong", hint="send an absolute path"
        )
    with called_from(folder, at.env, name=caller.actor):
        place = await asyncio.to_thread(needed_folder)
        settings = await asyncio.to_thread(look_settings)
        project = await at.home.store.transact(
            "project.add",
            lambda tx: register_project(
                tx, new_id, place.root, place.subfolder, caller.actor, settings.values.state_folder
            ),
        )
    return await get_project(at, caller, project.id)


async def use_daemon_environment(at: Session, caller: Caller, project_id: str) -> Project:
    """Record the environment of the daemon for a project, so that its plans can start without a terminal."""
    project = await at.home.store.read(lambda tx: seen_project(tx, caller, project_id))
    with called_from(Path(project.path) / project.subfolder, at.env, name=caller.actor):
        place = await asyncio.to_thread(needed_folder)
        settings = await asyncio.to_thread(look_settings)
        return await record_environment(at.home, place, settings.policy(), settings.values.state_folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedVariables:
    """The recorded environment of a project, without its values."""

    project_id: str
    recorded: bool
    variables: tuple[str, ...]
    secrets: tuple[str, ...]
    """Variables that are not stored; they are requested when work starts."""


async def project_environment(at: Session, caller: Caller, project_id: str) -> RecordedVariables:
    """Return the names of the variables that plans of a project take."""
    project = await at.home.store.read(lambda tx: seen_project(tx, caller, project_id))
    known = project.environment
    return RecordedVariables(
        project_id=project.id,
        recorded=known is not None,
        variables=tuple(sorted(known.values)) if known else (),
        secrets=tuple(sorted(known.secrets)) if known else (),
    )


def _view(tx: Tx, project: Project) -> ProjectView:
    return ProjectView(
        project=project,
        loops=tx.count(Loop, project_id=project.id),
        running=tx.count(Loop, project_id=project.id, state=LoopState.RUNNING),
        plans=tx.count(Plan, project_id=project.id),
        open_questions=tx.count(Question, project_id=project.id, state=QuestionState.OPEN),
    )
