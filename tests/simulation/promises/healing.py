"""Healing in the simulation: how it is set, and the promises about its steps."""

from dataclasses import replace

from tests.simulation.promises.invariants import Problems, Watch, at_end, on_commit
from tests.simulation.rows import Change
from tests.simulation.services import OTHER
from tests.simulation.trouble import Trouble

from loopwright.core.healing.steps import SPLIT_ORIGIN
from loopwright.core.replies.investigations import MOST_PARTS
from loopwright.core.rows.healing_rows import Healing
from loopwright.core.rows.model import Outcome, Plan, Task
from loopwright.core.values.policy import HealPolicy, Policy
from loopwright.core.values.states import HealingState, TaskState

_VERIFIED = (Outcome.VERIFIED, Outcome.VERIFIED_WITH_GAPS, Outcome.NO_CHANGE_PROVEN)


def with_healing(trouble: Trouble, policy: Policy, plan: str) -> Policy:
    """Return a policy that heals, if anything does in this run."""
    if not trouble.has("heal"):
        return policy
    chance = trouble.chance(f"healing of {plan}")
    heal = HealPolicy(
        max_steps=chance.choice((0, 1, 2, 4)),
        stronger=chance.choice((None, f"{OTHER}:big")),
        investigator=chance.choice((None, OTHER)),
    )
    return replace(policy, auto_heal=True, heal=heal)


@on_commit(Healing)
def healing_steps_are_bounded(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """A task gets no step twice, no more steps than its plan allows, and none where healing is off."""
    for change in changes:
        if change.kind is not Healing or change.before is not None:
            continue
        new: Healing = change.after
        policy = watch.all(Plan)[new.plan_id].policy
        mine = [one for one in watch.all(Healing).values() if one.task_id == new.task_id]
        if not policy.auto_heal:
            yield f"{new.task_id} is healed although nobody asked for that"
        if len(mine) > policy.heal.max_steps:
            yield f"{new.task_id} gets step {len(mine)} of {policy.heal.max_steps}"
        if len({one.step for one in mine}) < len(mine):
            yield f"{new.task_id} gets {new.step} once more"


@on_commit(Healing)
def only_verified_tasks_were_healed(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """A step has healed only when its task has passed its checks."""
    for change in changes:
        if change.kind is not Healing or change.after.state is not HealingState.HEALED:
            continue
        task = watch.all(Task)[change.after.task_id]
        if task.status is not TaskState.COMPLETE or task.outcome not in _VERIFIED:
            yield f"{change.after.step} has healed {task.key}, which is {task.status} and {task.outcome}"


@on_commit(Task)
def a_split_task_waits_for_its_parts(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """A task that was split starts only when its parts are complete, and no part is split once more."""
    for change in changes:
        if change.kind is not Task or change.after.status is not TaskState.RUNNING:
            continue
        task: Task = change.after
        needed = [watch.all(Task)[one] for one in task.depends_on]
        parts = [one for one in needed if one.origin == SPLIT_ORIGIN]
        started = change.before is not None and change.before.status is TaskState.QUEUED
        if started and any(one.status is not TaskState.COMPLETE for one in parts):
            yield f"{task.key} starts before its parts are complete"
        if task.origin != SPLIT_ORIGIN and len(parts) > MOST_PARTS:
            yield f"{task.key} has {len(parts)} parts"


@at_end
def no_step_is_left_open(watch: Watch) -> Problems:
    """A step ends with its task: none is being tried for a task that is settled."""
    settled = (TaskState.COMPLETE, TaskState.ERROR, TaskState.CANCELLED)
    for one in watch.all(Healing).values():
        task = watch.all(Task)[one.task_id]
        if one.state is HealingState.TRYING and task.status in settled:
            yield f"{one.step} is still tried for {task.key}, which is {task.status}"
