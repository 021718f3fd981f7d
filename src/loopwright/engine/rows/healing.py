"""Healing steps as rows: begun in the transaction in which a task fails for good, ended in the one that settles it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from loopwright.core.gates.gates import task_commands
from loopwright.core.healing.diagnosis import Diagnosis
from loopwright.core.healing.steps import Chosen, next_step, restated, useless, without
from loopwright.core.policy import fallback
from loopwright.core.policy.order import is_met
from loopwright.core.rows.events import happened
from loopwright.core.rows.healing_rows import Healing
from loopwright.core.rows.model import Attempt, Outcome, Plan, Task
from loopwright.core.values.healing import STEPS, Cause, HealStep
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import HEALING, HealingState, TaskState, step
from loopwright.engine.rows.queue import new_attempt
from loopwright.ports import Ids, Tx

_VERIFIED = frozenset({Outcome.VERIFIED, Outcome.VERIFIED_WITH_GAPS, Outcome.NO_CHANGE_PROVEN})
"""Outcomes of a task with which its checks passed."""
_MOST_MEASURED: Final = 500
"""How many of a project's newest steps decide which kinds heal nothing."""
_ANEW: dict[str, Any] = {"call_failures": 0, "races": 0, "failure_mark": ""}


def steps_of(tx: Tx, task_id: str) -> list[Healing]:
    """Return the steps that were tried for a task, the oldest first."""
    return tx.find(Healing, task_id=task_id, order_by=("n",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A step that begins."""

    row: Healing
    attempt: Attempt
    """The attempt that it starts for the task."""
    task: Task
    changes: Mapping[str, Any]
    """What changes on the task."""


def begin(
    tx: Tx, ids: Ids, plan: Plan, task: Task, found: Diagnosis, *, n: int, evidence: str, advice: str = ""
) -> Begun | None:
    """Begin the next step for a task that failed for good, with attempt `n`; None if the user has to decide."""
    before = steps_of(tx, task.id)
    chosen = next_step(plan, task, found, {one.step for one in before}, _useless(tx, plan))
    if chosen is None:
        return None
    changes = _ANEW | {"max_attempts": max(task.max_attempts, task.attempts + 1)}
    changes |= _who(plan, task, chosen)
    steered = tx.update(Task, task.id, **changes)
    told = [advice] if advice else []
    if chosen.step is HealStep.RESTATE:
        told.append(restated(found, task, task_commands(plan, task)))
    following = new_attempt(
        tx, ids, plan, steered, n=n, evidence=evidence, healing=chosen.step, advice="\n\n".join(told)
    )
    row = Healing(
        id=ids(Kind.HEALING),
        project_id=plan.project_id,
        plan_id=plan.id,
        task_id=task.id,
        n=len(before) + 1,
        step=chosen.step,
        cause=found.cause,
        signature=found.signature.id,
        because=chosen.because,
        attempt_id=following.id,
        created_at=tx.now(),
    )
    tx.insert(row)
    return Begun(row=row, attempt=following, task=steered, changes=changes)


def _useless(tx: Tx, plan: Plan) -> frozenset[HealStep]:
    settled = (HealingState.HEALED, HealingState.FAILED)
    newest = {"order_by": ("-ended_at",), "limit": _MOST_MEASURED}
    ended = tx.find(Healing, project_id=plan.project_id, state=settled, **newest)  # type: ignore[arg-type]
    return useless(ended, tx.now())


def fail_open(tx: Tx, plan: Plan, task: Task) -> None:
    """End the current steps of a task: it failed for good once more."""
    for one in tx.find(Healing, task_id=task.id, state=HealingState.TRYING):
        end(tx, plan, task, one, HealingState.FAILED)


def bypass(tx: Tx, ids: Ids, task: Task) -> None:
    """Let a task start once without its failed dependencies."""
    plan = tx.get(Plan, task.plan_id)
    assert plan is not None, "a task has a plan"
    needed = tx.find(Task, id=task.depends_on)
    failed = [one for one in needed if not is_met(one)]
    keys = [one.key for one in failed]
    for one in failed:
        tx.update(Task, one.id, dependents=tuple(each for each in one.dependents if each != task.id))
    left = tuple(one for one in task.depends_on if one not in {each.id for each in failed})
    freed = tx.update(Task, task.id, depends_on=left, unmet=0)
    if task.attempt_id is not None:
        tx.update(Attempt, task.attempt_id, healing=HealStep.BYPASS, advice=without(keys))
    row = Healing(
        id=ids(Kind.HEALING),
        project_id=plan.project_id,
        plan_id=plan.id,
        task_id=task.id,
        n=len(steps_of(tx, task.id)) + 1,
        step=HealStep.BYPASS,
        cause=Cause.DEPENDENCY,
        signature="",
        because=f"{', '.join(keys)} failed: {STEPS[HealStep.BYPASS]}",
        attempt_id=task.attempt_id,
        created_at=tx.now(),
        about=tuple(one.id for one in failed),
    )
    tx.insert(row)
    told: dict[str, Any] = {"without": keys, "because": row.because}
    tx.append(happened("dependency_bypassed", "loopwright", plan=plan, task=freed, **told))


def restore(tx: Tx, plan: Plan, task: Task) -> dict[str, Any] | None:
    """Restore a task's dependencies after a bypass; return what changes on it, None if it had no bypass."""
    tried = tx.find(Healing, task_id=task.id, step=HealStep.BYPASS, state=HealingState.TRYING)
    if not tried:
        return None
    (row,) = tried
    end(tx, plan, task, row, HealingState.FAILED)
    needed = tx.find(Task, id=row.about)
    for one in needed:
        tx.update(Task, one.id, dependents=tuple(dict.fromkeys((*one.dependents, task.id))))
    told: dict[str, Any] = {"waits_for": [one.key for one in needed]}
    tx.append(happened("dependency_restored", "loopwright", plan=plan, task=task, **told))
    waits_for = tuple(dict.fromkeys((*task.depends_on, *row.about)))
    unmet = sum(not is_met(one) for one in tx.find(Task, id=waits_for))
    return {"depends_on": waits_for, "unmet": unmet}


def _who(plan: Plan, task: Task, chosen: Chosen) -> dict[str, Any]:
    """Return what changes on a task so that another agent works on it."""
    if chosen.step is HealStep.OTHER_AGENT:
        return {"passed_over": task.passed_over + 1}
    if chosen.step is HealStep.STRONGER and plan.policy.heal.stronger is not None:
        agent, model = fallback.named(plan.policy.heal.stronger)
        return {"agent": agent, "model": model, "passed_over": 0}
    return {}


def settle(tx: Tx, plan: Plan, task: Task, *, by_machine: bool) -> None:
    """End the open steps of a task that is settled: it was healed only if its checks passed."""
    if not plan.policy.auto_heal:
        return
    for one in tx.find(Healing, task_id=task.id, state=HealingState.TRYING):
        if task.status is TaskState.ERROR:
            state = HealingState.FAILED
        elif task.status is TaskState.COMPLETE and by_machine and task.outcome in _VERIFIED:
            state = HealingState.HEALED
        else:
            state = HealingState.WITHDRAWN
        end(tx, plan, task, one, state)


def end(tx: Tx, plan: Plan, task: Task, healing: Healing, state: HealingState) -> Healing:
    """End a step, and record it."""
    step("healing", HEALING, healing.id, healing.state, state)
    ended = tx.update(Healing, healing.id, expect={"state": healing.state}, state=state, ended_at=tx.now())
    told: dict[str, Any] = {"step": healing.step.value, "state": state.value, "cause": healing.cause.value}
    tx.append(happened("healing_ended", "loopwright", plan=plan, task=task, healing=healing.id, **told))
    return ended
