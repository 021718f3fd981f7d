"""Work that agents come upon in the simulation: what a person makes of it, and the promises about it."""

from typing import TYPE_CHECKING, Any, Final

from tests.simulation.promises.invariants import Problems, Watch, at_end, moves, on_commit
from tests.simulation.rows import Change

from loopwright.core.healing.steps import SPLIT_ORIGIN
from loopwright.core.replies.discoveries import Discovery, same_work
from loopwright.core.rows.model import Command, CommandState, Plan, Role, Run, Task
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import ENDED_RUN, DiscoveryState, RunState
from loopwright.engine.people.discoveries import CURRENT, NEW, ORIGIN

if TYPE_CHECKING:
    from tests.simulation.universe import Universe

_ADDED_BY: Final = {
    "": ("submit", "source.edited"),
    ORIGIN: ("command.accept_discovered",),
    SPLIT_ORIGIN: ("attempt.consulted",),
    "fix": ("verify.evaluated",),
    "docs": ("verify.docs",),
    "qa": ("look.over",),
    "round": ("advance",),
}
"""In which transactions a task of each origin comes into a plan."""


def decide(universe: "Universe") -> tuple[str, str, dict[str, Any]] | None:
    """Return what a person makes of something that was found: mostly of what is open, sometimes once more."""
    chance = universe.trouble.chance("discoveries")
    known = list(universe.database.all(Discovery).values())
    still_open = [one for one in known if one.state is DiscoveryState.OPEN]
    if still_open and chance.random() < 0.8:
        known = still_open
    if not known:
        return None
    found = chance.choice(known)
    if chance.random() < 0.3:
        return "dismiss_discovered", found.id, {}
    way = chance.choice((CURRENT, CURRENT, CURRENT, NEW, None))
    arguments = {"as": way, "file": chance.choice(("found.yaml", "found.yaml", ""))}
    return "accept_discovered", found.id, arguments


@on_commit(Task)
def nobody_adds_tasks_on_his_own(_watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """A task comes into a plan from its source, by a person's word, or as the rules of its kind say: else never."""
    for change in changes:
        if change.kind is Task and change.before is None and name not in _ADDED_BY[change.after.origin]:
            yield f"{name} adds {change.after.key} ({change.after.origin or 'planned'})"


@on_commit(Run)
def discovered_work_is_done_only_when_a_person_wants_it(
    watch: Watch, name: str, changes: tuple[Change, ...]
) -> Problems:
    """No agent is started for work that another one came upon before a person has accepted it."""
    for change in moves(changes, Run, RunState.RUNNING):
        task = watch.all(Task).get(change.after.task_id or "")
        if task is None or task.origin != ORIGIN:
            continue
        wanted = [
            one
            for one in watch.all(Discovery).values()
            if one.plan_id == task.plan_id and one.became == task.key and one.state is DiscoveryState.ACCEPTED
        ]
        if not wanted or any(one.decided_by != "person" for one in wanted):
            yield f"{name} starts {change.id} for {task.key}, which nobody accepted"


@on_commit(Discovery)
def the_same_work_is_decided_once(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """A decision about discovered work is one about all who came upon it in a plan so far, however they spell it."""
    for change in changes:
        if change.kind is not Discovery or change.after.state is DiscoveryState.OPEN:
            continue
        decided: Discovery = change.after
        for one in watch.all(Discovery).values():
            same = one.plan_id == decided.plan_id and same_work(one.title) == same_work(decided.title)
            if same and one.state is DiscoveryState.OPEN:
                yield f"{name} decides {decided.id}, and leaves {one.id} open"


@at_end
def what_agents_come_upon_is_kept(watch: Watch) -> Problems:
    """What an agent noted is written down when its run has ended in order, once for each task however it is spelt."""
    known = [(one.task_id, same_work(one.title)) for one in watch.all(Discovery).values()]
    if len(known) != len(set(known)):
        yield "a task came upon the same work twice"
    for machine in watch.universe.machines:
        for kept in machine.kept.values():
            run: Run = watch.all(Run)[kept.spec.run_id]
            if run.role is not Role.IMPLEMENTER or run.state not in ENDED_RUN or machine.gone:
                continue
            if run.failure is Failure.HOST_LOST:
                continue  # nobody could hear of it any more when it was given up
            for one in kept.noticed:
                if (run.task_id, same_work(one.title)) not in known:
                    yield f"{run.id} is {run.state.value}, and nobody knows that it noted {one.title!r}"


@at_end
def accepted_work_is_one_task(watch: Watch) -> Problems:
    """Each yes to discovered work is one task of its plan or a plan of its own, and what was dismissed is nothing."""
    tasks = {(one.plan_id, one.key) for one in watch.all(Task).values() if one.origin == ORIGIN}
    accepted: set[tuple[str, str]] = set()
    for one in watch.all(Discovery).values():
        if one.state is DiscoveryState.ACCEPTED:
            accepted.add((one.plan_id, one.became))
        elif one.became:
            yield f"{one.id} is {one.state.value}, and became {one.became}"
    said = [
        one
        for one in watch.all(Command).values()
        if one.verb == "accept_discovered" and one.state is CommandState.APPLIED
    ]
    into_plans = [
        one
        for one in said
        if (one.arguments["as"] or watch.all(Discovery)[one.target].recommendation) == CURRENT
    ]
    if len(into_plans) != len(tasks):
        yield f"{len(into_plans)} were accepted into {len(watch.all(Plan))} plans, and became {len(tasks)} tasks"
    for plan_id, became in accepted:
        if (plan_id, became) not in tasks and became != "found.yaml":
            yield f"{became} of {plan_id} was accepted, and is no task"
