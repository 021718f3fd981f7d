"""What a plan with `auto_heal` tries for a task that failed for good: the steps as data, and the next one."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from loopwright.core.healing.diagnosis import ASKS, Diagnosis
from loopwright.core.policy import fallback
from loopwright.core.policy.order import is_met
from loopwright.core.policy.retry import Failed
from loopwright.core.policy.rounds import loops
from loopwright.core.replies.investigations import Investigation
from loopwright.core.replies.qa import TYPE as QA
from loopwright.core.rows.healing_rows import Healing
from loopwright.core.rows.model import Plan, Task
from loopwright.core.values.healing import MEANINGS, STEPS, Cause, HealStep
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.states import HealingState, TaskState
from loopwright.core.values.wording import listed, on_one_line

MOST_IN_VAIN: Final = 10
"""How often a step may heal nothing in one project within `REMEMBERED` before it is skipped."""
REMEMBERED: Final = timedelta(days=90)
"""After this time a useless step is tried again: agents and projects change."""
_LONGEST: Final = 500
_READ: Final = HealStep.INVESTIGATE

LADDER: Final[Mapping[Cause, tuple[HealStep, ...]]] = MappingProxyType(
    {
        Cause.UNCLEAR: (_READ, HealStep.RESTATE, HealStep.OTHER_AGENT, HealStep.STRONGER),
        Cause.TOO_LARGE: (_READ, HealStep.SPLIT, HealStep.PRUNE, HealStep.STRONGER),
        Cause.ENVIRONMENT: (_READ, HealStep.FRESH, HealStep.OTHER_AGENT),
        Cause.DEPENDENCY: (_READ, HealStep.RESTATE, HealStep.FRESH, HealStep.STRONGER),
        Cause.FLAKY: (_READ, HealStep.FRESH),
        Cause.MODEL: (
            *(_READ, HealStep.OTHER_AGENT, HealStep.STRONGER),
            *(HealStep.RESTATE, HealStep.SPLIT, HealStep.PRUNE),
        ),
    }
)
"""The steps against each cause, in order. After the last one the user decides."""


SPLIT_ORIGIN: Final = "split"
"""The origin of a task that is a part of a too large one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The next step for a task."""

    step: HealStep
    because: str
    """Why this step, in words."""


def may_heal(plan: Plan, task: Task, failed: Failed) -> bool:
    """Return whether Loopwright may try more for a task that failed for good.

    It may not if the user has to decide anyway, or if nothing changes until the user acts.
    """
    if not plan.policy.auto_heal or failed.lasting or failed.failure in ASKS:
        return False
    return plan.policy.answer is None and not loops(plan, task)


def next_step(
    plan: Plan,
    task: Task,
    found: Diagnosis,
    done: Collection[HealStep],
    useless: Collection[HealStep] = (),
) -> Chosen | None:
    """Return what to try next; None if no step is left for the cause, and the user decides.

    `done` has the steps that were tried for the task before: no step is tried twice. `useless` are left out.
    """
    if len(done) >= plan.policy.heal.max_steps:
        return None
    left_out: list[str] = []
    for step in LADDER[found.cause]:
        if step in done or not _is_possible(step, plan, task):
            continue
        if step not in useless:
            without = f" ({listed(left_out)} healed nothing in this project)" if left_out else ""
            return Chosen(step=step, because=f"{found.because}: {STEPS[step]}{without}")
        left_out.append(step.value.replace("_", " "))
    return None


def useless(ended: Iterable[Healing], now: datetime) -> frozenset[HealStep]:
    """Return the steps that were tried often enough in a project and healed nothing there."""
    recent = [one for one in ended if one.ended_at is not None and one.ended_at > now - REMEMBERED]
    in_vain = Counter(one.step for one in recent if one.state is HealingState.FAILED)
    healed = {one.step for one in recent if one.state is HealingState.HEALED}
    return frozenset(step for step, times in in_vain.items() if times >= MOST_IN_VAIN and step not in healed)


def _is_possible(step: HealStep, plan: Plan, task: Task) -> bool:
    match step:
        case HealStep.INVESTIGATE:
            return plan.policy.heal.investigator is not None
        case HealStep.SPLIT:
            return may_split(plan, task)
        case HealStep.OTHER_AGENT:
            return bool(fallback.after(task, plan.policy))
        case HealStep.STRONGER:
            stronger = plan.policy.heal.stronger
            return stronger is not None and stronger != fallback.entry(*fallback.meant(task, plan.policy))
        case _:
            return True


def may_split(plan: Plan, task: Task) -> bool:
    """Return whether a task may become smaller ones: gates check the parts, and its own commands the whole."""
    checked = bool(plan.gates) and bool(task.acceptance)
    return checked and task.origin != SPLIT_ORIGIN and task.type != QA and not task.manual


def may_bypass(plan: Plan, task: Task, needed: Collection[Task], done: Collection[HealStep]) -> bool:
    """Return whether a task may be tried without failed dependencies: it needs its own checks."""
    if not plan.policy.auto_heal or len(done) >= plan.policy.heal.max_steps:
        return False
    failed = [one for one in needed if not is_met(one)]
    stuck = bool(failed) and all(one.status is TaskState.ERROR for one in failed)
    return stuck and bool(task.acceptance) and HealStep.BYPASS not in done


def without(keys: Collection[str]) -> str:
    """Return the prompt text for an agent whose task is tried without some of its dependencies."""
    return (
        f"This task was to come after {', '.join(keys)}, which failed and is not done. "
        "Do the task without that. If it cannot be done without, change nothing and say why."
    )


def told_by(found: Diagnosis, answer: Investigation) -> Diagnosis:
    """Return the diagnosis with the cause that an investigator named."""
    why = on_one_line(answer.why)[:_LONGEST]
    return replace(found, cause=answer.cause, because=f"{MEANINGS[answer.cause]} (an investigator: {why})")


def facts(found: Diagnosis) -> str:
    """Return the diagnosis in lines."""
    at = found.signature
    where = " > ".join(on_one_line(one) for one in (at.step, at.file, at.test) if one)
    again = f", {found.repeated} times in a row" if found.repeated > 1 else ""
    return f"Likely cause: {found.because}.\nIt fails at {where}{again}: {at.error}"


def restated(found: Diagnosis, task: Task, gates: Collection[GateCommand]) -> str:
    """Return the diagnosis for an agent, with what the checks require."""
    lines = [
        facts(found),
        "At the end all of this must be true:",
        *(f"- {on_one_line(one)}" for one in task.criteria),
        *(f"- `{on_one_line(one.command)}` exits with 0" for one in gates),
        "Read these checks first. Work out what they ask for. Then change only what they need.",
    ]
    return "\n".join(lines)


def after_parts(keys: Collection[str]) -> str:
    """Return the prompt text for the agent of a split task whose parts have landed."""
    return (
        f"The task was too large, so it was split. These parts have landed: {', '.join(keys)}. "
        "Do what is still missing, so that the checks of the whole task pass. "
        "If nothing is missing, change nothing and say so."
    )
