"""Work that agents found and did not do: recorded at the end of their run, and decided by the user."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from loopwright.core.replies.discoveries import (
    Discovery,
    Noticed,
    discovered_in,
    discovery_id,
    key_for,
    same_work,
)
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Command, Loop, Plan, Project, Run, Task
from loopwright.core.values.errors import NotFound, Refused
from loopwright.core.values.ids import Kind, short_id
from loopwright.core.values.states import DISCOVERY, DiscoveryState, PlanState, step
from loopwright.core.values.wording import to_type
from loopwright.engine.people.retries import refuse_superseded, reopen_plan
from loopwright.engine.rows.added_tasks import add_task
from loopwright.engine.rows.moves import MACHINE, need
from loopwright.engine.rows.plan_states_text import plan_word
from loopwright.engine.rows.projects import Checkouts, project_ids
from loopwright.engine.rows.world import World
from loopwright.ports import Ids, PlannedTask, RunSpec, Tx

if TYPE_CHECKING:  # `status` lists discoveries and starts no process
    from loopwright.engine.processes.runs import Ended

ORIGIN: Final = "discovered"
"""The origin of a task that the user made from such work."""
CURRENT: Final = "current"
NEW: Final = "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryView:
    """A discovery, for the user."""

    id: str
    title: str
    reason: str
    recommendation: str
    state: DiscoveryState
    became: str
    decided_by: str
    project: str
    path: str
    """Where the project's repository is."""
    plan_id: str
    task: str
    """The name of the task in which it was found first."""
    found_at: datetime
    decided_at: datetime | None
    tasks: tuple[str, ...] = ()
    """The names of all tasks of the plan in which it was found."""
    fits: bool = True
    """Whether its plan could still include it."""
    source_kind: str = ""
    source: str = ""
    """The work source of its plan, relative to the repository."""


def with_discovered(world: World, spec: RunSpec, ended: "Ended") -> "Ended":
    """Return how a run ended, with its discoveries: from the tool, or its last message."""
    said = (ended.result.last_words or ended.result.summary) if ended.result else ""
    noticed = (
        *world.discovered(spec.directory, spec.secrets),
        *discovered_in(world.redact(said, spec.secrets)),
    )
    return replace(ended, discovered=noticed)


def note(tx: Tx, plan: Plan, run: Run, noticed: Sequence[Noticed]) -> None:
    """Record the discoveries of a run; those that its task already has are not repeated."""
    for n, one in enumerate(noticed):
        id_ = discovery_id(run.task_id or "", one.title)
        if tx.get(Discovery, id_) is not None:
            continue
        tx.insert(
            Discovery(
                id=id_,
                project_id=plan.project_id,
                plan_id=plan.id,
                task_id=run.task_id or "",
                attempt_id=run.attempt_id or "",
                title=one.title,
                reason=one.reason,
                recommendation=one.recommendation,
                # Separately, so that they keep their order.
                created_at=tx.now() + timedelta(microseconds=n),
            )
        )
        tx.append(happened("work_discovered", MACHINE, plan=plan, run=run, discovery=id_, title=one.title))


# --- the user's decisions ----------------------------------------------------------------------------


def accept(tx: Tx, ids: Ids, command: Command) -> str:
    """Make it a task of its plan, or record the file that was written for a separate plan."""
    found = _decidable(tx, command.target, DiscoveryState.ACCEPTED)
    way = str(command.arguments.get("as") or found.recommendation)
    if way not in (CURRENT, NEW):
        raise Refused(
            f"work cannot be accepted as {way!r}",
            code="discovery_use_unknown",
            hint=f"as {CURRENT} or as {NEW}",
        )
    if way == CURRENT:
        target = str(command.arguments.get("plan") or found.plan_id)
        task = _into_plan(tx, ids, found, command.actor, target)
        if target != found.plan_id:
            _all_decided(tx, found, DiscoveryState.ACCEPTED, command.actor, task=task, became=task.key)
            return f"the task {task.key} was added to {short_id(target)}"
        _all_decided(tx, found, DiscoveryState.ACCEPTED, command.actor, task=task, became=task.key)
        return f"the task {task.key} was added to the plan"
    file = str(command.arguments.get("file") or "")
    if not file:
        raise Refused(
            "a separate plan needs the file that it was written to",
            code="plan_file_not_named",
        )
    _all_decided(tx, found, DiscoveryState.ACCEPTED, command.actor, became=file)
    return f"a plan for it is in {file}"


def dismiss(tx: Tx, _ids: Ids, command: Command) -> str:
    """Record that the user does not want it done."""
    found = _decidable(tx, command.target, DiscoveryState.DISMISSED)
    _all_decided(tx, found, DiscoveryState.DISMISSED, command.actor)
    return "dismissed"


def check_decidable(found: Discovery, target: DiscoveryState) -> None:
    """Raise if it cannot be decided."""
    if target not in DISCOVERY[found.state]:
        became = f": {found.became}" if found.became else ""
        raise Refused(
            f"{short_id(found.id)} is {found.state.value.lower()} already{became}",
            code="discovery_decided",
            hint=_what_came_of(found),
        )


def _what_came_of(found: Discovery) -> str:
    if not found.became:
        return "`loopwright discovered` lists what is to be decided"
    # A separate plan is in a folder; the key of a task contains none.
    if "/" in found.became:
        return f"`{to_type('run', found.became)}` does it"
    return f"`{to_type('status', found.became)}` shows its status"


def _decidable(tx: Tx, id_: str, target: DiscoveryState) -> Discovery:
    found = tx.get(Discovery, id_)
    if found is None:
        raise NotFound(f"there is no discovered work {id_}", code="discovery_not_found", hint=_LISTS)
    check_decidable(found, target)
    return found


def _into_plan(tx: Tx, ids: Ids, found: Discovery, actor: str, target: str) -> Task:
    plan = tx.get(Plan, target)
    if plan is None or plan.project_id != found.project_id:
        raise NotFound(f"its project has no plan {target}", code="plan_not_found")
    refuse_superseded(plan, need(tx.get(Loop, plan.loop_id), "the loop"))
    apart = f"`loopwright discovered accept {short_id(found.id)} --as {NEW}` makes a separate plan for it"
    if plan.status in (PlanState.VERIFIED, PlanState.CANCELLED):
        raise Refused(f"the plan is {plan_word(tx, plan)}", code="plan_ended", hint=apart)
    if plan.status is PlanState.VERIFYING:
        raise Refused(
            "the plan is being verified right now",
            code="plan_verifying",
            hint=f"`stop` the plan first, or {apart}",
        )
    tasks = tx.find(Task, plan_id=plan.id)
    by = next((task.key for task in tasks if task.id == found.task_id), "")
    item = PlannedTask(
        key=key_for(found.title, {task.key for task in tasks}),
        title=found.title,
        description=told_of(found, by),
    )
    reopen_plan(tx, plan.id, actor)
    position = max((task.position for task in tasks), default=-1) + 1
    return add_task(tx, ids, plan, item, position=position, origin=ORIGIN)


def told_of(found: Discovery, by: str) -> str:
    """Return the description of its task."""
    where = f"The agent of task {by} found it and left it to others." if by else ""
    return "\n\n".join(filter(None, (found.reason, where)))


def _all_decided(
    tx: Tx,
    found: Discovery,
    target: DiscoveryState,
    actor: str,
    *,
    task: Task | None = None,
    became: str = "",
) -> None:
    """Record a decision for all equal work: what several tasks of a plan found is decided once.

    A new decision about dismissed work also applies to the agents that found it since.
    """
    states = [state for state, leads in DISCOVERY.items() if target in leads]
    for one in tx.find(Discovery, plan_id=found.plan_id, state=states, order_by=("created_at", "id")):
        if same_work(one.title) == same_work(found.title):
            _decided(tx, one, target, actor, task=task, became=became)


def _decided(
    tx: Tx,
    found: Discovery,
    target: DiscoveryState,
    actor: str,
    *,
    task: Task | None,
    became: str,
) -> None:
    step("discovery", DISCOVERY, found.id, found.state, target)
    now = tx.now()
    expect = {"state": found.state}
    facts = {"state": target, "became": became, "decided_by": actor, "decided_at": now}
    tx.update(Discovery, found.id, expect=expect, **facts)
    plan = need(tx.get(Plan, found.plan_id), "the plan")
    event = "discovery_accepted" if target is DiscoveryState.ACCEPTED else "discovery_dismissed"
    tx.append(
        happened(event, actor, plan=plan, task=task, discovery=found.id, note=found.title, became=became)
    )


# --- views ---------------------------------------------------------------------------------------------

_LISTS: Final = "`loopwright discovered` lists what there is"


def _key(tx: Tx, found: Discovery) -> str:
    task = tx.get(Task, found.task_id)
    return task.key if task else ""


def discovery_view(tx: Tx, found: Discovery) -> DiscoveryView:
    """Return the view of a discovery."""
    project, plan = tx.get(Project, found.project_id), tx.get(Plan, found.plan_id)
    loop = tx.get(Loop, plan.loop_id) if plan else None
    return DiscoveryView(
        id=found.id,
        title=found.title,
        reason=found.reason,
        recommendation=found.recommendation,
        state=found.state,
        became=found.became,
        decided_by=found.decided_by,
        project=project.name if project else "",
        path=project.path if project else "",
        plan_id=found.plan_id,
        task=_key(tx, found),
        found_at=found.created_at,
        decided_at=found.decided_at,
        tasks=(_key(tx, found),),
        fits=plan is not None
        and plan.status not in (PlanState.VERIFIED, PlanState.CANCELLED)
        and loop is not None
        and loop.plan_id == plan.id,
        source_kind=loop.source_kind if loop is not None else "",
        source=loop.source_path if loop is not None else "",
    )


def list_discovered(
    tx: Tx, *, plan_id: str | None = None, project_path: Checkouts | None = None, closed: bool = False
) -> list[DiscoveryView]:
    """Return open discoveries, of one plan, of one project or of all; with `closed`, decided ones too."""
    where: dict[str, Any] = {} if closed else {"state": DiscoveryState.OPEN}
    if plan_id is not None:
        where["plan_id"] = plan_id
    elif project_path is not None:
        where["project_id"] = project_ids(tx, project_path)
    found: dict[tuple[str, ...], DiscoveryView] = {}
    for row in tx.find(Discovery, order_by=("created_at", "id"), **where):
        view = discovery_view(tx, row)
        first = found.setdefault((row.plan_id, same_work(row.title), row.state), view)
        if first is not view:
            tasks = (*first.tasks, *view.tasks)
            found[row.plan_id, same_work(row.title), row.state] = replace(first, tasks=tasks)
    return list(found.values())


def find_discovered(tx: Tx, text: str) -> Discovery:
    """Find a discovery by its id or the beginning of one."""
    exact = tx.get(Discovery, text)
    if exact is not None:
        return exact
    bare = text.removeprefix(f"{Kind.DISCOVERY.value}_")
    known = tx.find(Discovery, order_by=("created_at",))
    found = [one for one in known if bare and one.id.partition("_")[2].startswith(bare)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(short_id(one.id) for one in found)
        raise NotFound(
            f"{text!r} could be any of {names}", code="discovery_ambiguous", hint="give more of the id"
        )
    raise NotFound(f"there is no discovered work {text!r}", code="discovery_not_found", hint=_LISTS)
