"""Which template a run's prompt is made from: the project's own one at the plan's base commit, else the packaged one.

Never the one in a workspace: there it is the work of an agent.
"""

from loopwright.core.replies import qa
from loopwright.core.rows.model import Plan, Project, Review, Task
from loopwright.core.values.templates import Template, own_path, replaced
from loopwright.engine.rows.world import World
from loopwright.prompts import packaged


async def template_of(
    world: World, project: Project, plan: Plan, task: Task, review: Review | None
) -> Template:
    """Return the template for the role that an agent has in this task; raise `BadConfig` for a wrong one."""
    role = _role(plan, task, review)
    path = own_path(project.subfolder, role)
    found = await world.repository(project).files_at(plan.base_sha, [path])
    return replaced(packaged(role), path, found[path]) if path in found else packaged(role)


def _role(plan: Plan, task: Task, review: Review | None) -> str:
    if review is not None:
        return "reviewer"
    if task.type == qa.TYPE:
        return "qa"
    return plan.policy.answer.role if plan.policy.answer is not None else "implementer"
