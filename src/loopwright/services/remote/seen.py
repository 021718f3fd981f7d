"""Rows as a caller sees them: what is not in the caller's projects does not exist."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loopwright.core.rows.model import Loop, Plan, Project, Run, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.access import Bounds, Caller
from loopwright.core.values.environments import FORGE_TOKENS
from loopwright.core.values.errors import NotFound, Refused
from loopwright.core.values.ids import Kind, is_id
from loopwright.engine.rows.versions import check_version
from loopwright.engine.views.loop_views import plan_of
from loopwright.ports import Tx
from loopwright.services.homes.caller import called_from, expected_version
from loopwright.services.homes.session import Session


def seen_project(tx: Tx, caller: Caller, project_id: str) -> Project:
    """Return a project that the caller may see."""
    project = tx.get(Project, project_id) if is_id(project_id, Kind.PROJECT) else None
    if project is None or not caller.sees(project.id):
        raise NotFound(f"there is no project {project_id}", code="project_not_found")
    return project


def seen_where(tx: Tx, caller: Caller, project_id: str | None) -> dict[str, Any]:
    """Return the filter for one project, or for all that the caller can see."""
    if project_id is not None:
        return {"project_id": seen_project(tx, caller, project_id).id}
    return {} if caller.projects is None else {"project_id": sorted(caller.projects)}


def seen_loop(tx: Tx, caller: Caller, loop_id: str, *, deleted: bool = False) -> Loop:
    """Return a loop that the caller may see; with `deleted`, also one that was deleted."""
    loop = tx.get(Loop, loop_id) if is_id(loop_id, Kind.LOOP) else None
    if loop is None or not caller.sees(loop.project_id) or (loop.deleted_at is not None and not deleted):
        raise NotFound(f"there is no loop {loop_id}", code="loop_not_found")
    return loop


def seen_plan(tx: Tx, caller: Caller, plan_id: str) -> Plan:
    """Return a plan that the caller may see."""
    plan = tx.get(Plan, plan_id) if is_id(plan_id, Kind.PLAN) else None
    if plan is None or not caller.sees(plan.project_id):
        raise NotFound(f"there is no plan {plan_id}", code="plan_not_found")
    return plan


def seen_task(tx: Tx, caller: Caller, plan: Plan, task: str) -> Task:
    """Return a task of a plan, by its id or by its key in the source."""
    found = tx.get(Task, task) if is_id(task, Kind.TASK) else None
    if found is None or found.plan_id != plan.id:
        found = next(iter(tx.find(Task, plan_id=plan.id, key=task, limit=1)), None)
    if found is None or not caller.sees(plan.project_id):
        raise NotFound(f"the plan {plan.id} has no task {task}", code="task_not_found")
    return found


def plan_and_project(tx: Tx, caller: Caller, plan_id: str) -> tuple[Plan, Project]:
    """Return a plan that the caller may see, and its project."""
    plan = seen_plan(tx, caller, plan_id)
    return plan, seen_project(tx, caller, plan.project_id)


def task_and_project(tx: Tx, caller: Caller, plan_id: str, task: str) -> tuple[Task, Project]:
    """Return a task of a plan that the caller may see, and its project."""
    plan, project = plan_and_project(tx, caller, plan_id)
    return seen_task(tx, caller, plan, task), project


def seen_run(tx: Tx, caller: Caller, run_id: str) -> Run:
    """Return a run that the caller may see."""
    run = tx.get(Run, run_id) if is_id(run_id, Kind.RUN) else None
    plan = tx.get(Plan, run.plan_id) if run is not None else None
    if run is None or plan is None or not caller.sees(plan.project_id):
        raise NotFound(f"there is no run {run_id}", code="run_not_found")
    return run


def seen_question(tx: Tx, caller: Caller, question_id: str) -> Question:
    """Return a question that the caller may see."""
    question = tx.get(Question, question_id) if is_id(question_id, Kind.QUESTION) else None
    if question is None or not caller.sees(question.project_id):
        raise NotFound(f"there is no question {question_id}", code="question_not_found")
    return question


def check_seen(tx: Tx, target: str) -> None:
    """Refuse a change of a loop or a plan by a caller that saw another version of it."""
    if expected := expected_version():
        check_version(tx, expected.loop_id or target, expected.version)


def current_plan(tx: Tx, loop: Loop) -> Plan:
    """Return the plan that a loop drives, or drove last."""
    found = plan_of(tx, loop)
    plan = tx.get(Plan, found) if found else None
    if plan is None:
        raise Refused(
            f"the loop {loop.name} has no plan yet", code="loop_without_plan", hint="start the loop first"
        )
    return plan


@contextmanager
def acting(at: Session, caller: Caller, project: Project) -> Iterator[None]:
    """Let services act in a project's folder, for this caller, with the project's recorded environment."""
    with acting_as(at, caller.actor, project, caller.bounds):
        yield


@contextmanager
def acting_as(at: Session, actor: str, project: Project, bounds: Bounds | None) -> Iterator[None]:
    """Let services act in a project's folder, for an actor that was allowed to before."""
    values = dict(project.environment.values) if project.environment else {}
    # The home is the daemon's own, and so are the tokens with which it asks a forge.
    tokens = {name: at.env[name] for name in FORGE_TOKENS if name in at.env}
    env = {**values, **tokens, "LOOPWRIGHT_HOME": str(at.home.root)}
    if at.settings.values.database:
        env["LOOPWRIGHT_DATABASE"] = at.settings.values.database
    where = Path(project.path) / project.subfolder
    with called_from(where, env, name=actor, recorded=project.environment, bounds=bounds):
        yield
