"""Find the plan or task that a decision is about."""

from functools import partial

from loopwright.core.rows.model import Plan, Project, Run, Task
from loopwright.core.values.errors import NotFound
from loopwright.core.values.shell_hints import to_type
from loopwright.engine.people import commands
from loopwright.engine.rows.moves import need
from loopwright.engine.rows.projects import recent_plans
from loopwright.ports import Tx
from loopwright.services.homes.read_only_home import find_here, nothing_named, project_here


def find_target(tx: Tx, text: str | None, verb: str) -> Plan | Task:
    """Return the plan or task with this name; without a name, the newest plan of this repository."""
    if text is None:
        project = project_here()
        if project is None:
            raise nothing_named(verb)
        plans = recent_plans(tx, project_path=project, limit=1)
        if not plans:
            raise NotFound(
                "there is no plan of this repository yet",
                code="no_plan",
                hint=f"`loopwright run plan.yaml`, or `{to_type(verb, 'PLAN')}` for one of another repository",
            )
        return plans[0]
    fits = partial(commands.may_retry, tx) if verb == "retry" else None
    row = find_here(tx, text, fits)
    if isinstance(row, Run):
        raise NotFound(f"{text} is a run", code="plan_or_task_expected", hint="name a plan or a task")
    return row


def find_task(tx: Tx, text: str, verb: str) -> tuple[Task, Plan, Project]:
    """Return the task with this name, its plan and its project."""
    row = find_target(tx, text, verb)
    if not isinstance(row, Task):
        raise NotFound(f"{text} is a plan", code="task_expected", hint="name a task")
    plan = plan_of(tx, row)
    return row, plan, need(tx.get(Project, plan.project_id), "the project")


def plan_of(tx: Tx, row: Plan | Task) -> Plan:
    """Return a plan, or the plan of a task, as it is now."""
    plan: Plan = need(tx.get(Plan, row.plan_id if isinstance(row, Task) else row.id), "the plan")
    return plan
