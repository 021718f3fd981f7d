"""What a person changed in a source while its plan is unfinished: which command takes that in."""

from pathlib import Path

from loopwright.adapters import registry
from loopwright.adapters.sources.text.reading import read
from loopwright.core.rows.model import Loop, Plan, Project, Task
from loopwright.core.values.errors import BadPlan, Refused
from loopwright.core.values.shell_hints import to_type
from loopwright.core.values.states import TaskState
from loopwright.engine.intake.source_checks import JUDGED, could_be_an_agents, followed
from loopwright.engine.intake.submit import Submission, taken_in_by
from loopwright.engine.rows.moves import need
from loopwright.ports import Store, Tx


async def refuse_older_checks(store: Store, task: Task) -> None:
    """Refuse to try a task again by checks that its source has changed, where its plan does not follow the source."""
    plan, loop, project = await store.read(lambda tx: _around(tx, task))
    source = registry.source(loop.source_kind)
    kept = await store.read(lambda tx: could_be_an_agents(tx, plan))
    if (source.has_status or plan.policy.rounds.on) and not kept:
        return  # what changed there is taken in before anything starts
    try:
        work = read(source, Path(project.path) / loop.source_path)
    except BadPlan:
        return  # gone, or in the middle of an edit: nothing there says otherwise
    for now in work.tasks:
        if now.key == task.key and (now.acceptance, now.held_out) != (task.acceptance, task.held_out):
            raise Refused(
                f"{loop.source_path} has other checks for {task.key} now, and its plan keeps those that it began with",
                code="checks_changed",
                hint=f"{taken_in_by(plan, loop.source_path)}; or put them back in the file to try it by the old ones",
            )


def told_of_change(tx: Tx, asked: Submission, plan: Plan) -> tuple[str, ...]:
    """Return which failed tasks of a changed source take the change in only when they are tried again."""
    if plan.source_sha256 == asked.work.sha256:
        return ()
    failed = tx.find(Task, plan_id=plan.id, status=TaskState.ERROR, order_by=("position",))
    items = {item.key: item for item in asked.work.tasks}
    told = []
    for task in failed:
        item = items.get(task.key)
        new = followed(tx, plan, task, item, JUDGED) if item is not None else None
        if new is not None and new.against:
            told.append(f"{asked.source_path} has other checks for {task.key} now, and {new.against}")
        elif new is not None and new.kept:
            told.append(
                f"{asked.source_path} has other checks for {task.key} now, which an agent without a sandbox could have "
                f"written; if you did: {taken_in_by(plan, asked.source_path)}"
            )
        else:
            told.append(
                f"{asked.source_path} changed; {task.key} has failed, and `{to_type('retry', task.key)}` "
                "tries it as it is written now"
            )
    return tuple(told)


def _around(tx: Tx, task: Task) -> tuple[Plan, Loop, Project]:
    plan = need(tx.get(Plan, task.plan_id), "the plan")
    return (
        plan,
        need(tx.get(Loop, plan.loop_id), "the loop"),
        need(tx.get(Project, plan.project_id), "the project"),
    )
