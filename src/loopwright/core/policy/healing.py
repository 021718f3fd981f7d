"""What a plan with `auto_heal` tries for a task that failed for good: the ladder as data, and the next step on it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from loopwright.core.policy import fallback
from loopwright.core.policy.diagnosis import ASKS, Diagnosis
from loopwright.core.policy.retry import Failed
from loopwright.core.policy.rounds import loops
from loopwright.core.rows.model import Plan, Task
from loopwright.core.values.healing import STEPS, Cause, HealStep
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.wording import on_one_line

LADDER: Final[Mapping[Cause, tuple[HealStep, ...]]] = MappingProxyType(
    {
        Cause.UNCLEAR: (HealStep.RESTATE, HealStep.OTHER_AGENT, HealStep.STRONGER),
        Cause.TOO_LARGE: (HealStep.PRUNE, HealStep.STRONGER),
        Cause.ENVIRONMENT: (HealStep.FRESH, HealStep.OTHER_AGENT),
        Cause.DEPENDENCY: (HealStep.RESTATE, HealStep.FRESH, HealStep.STRONGER),
        Cause.FLAKY: (HealStep.FRESH,),
        Cause.MODEL: (HealStep.OTHER_AGENT, HealStep.STRONGER, HealStep.RESTATE, HealStep.PRUNE),
    }
)
"""The steps against each cause, in order. After the last one a person decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The next step for a task."""

    step: HealStep
    because: str
    """Why this one, in words."""


def may_heal(plan: Plan, task: Task, failed: Failed) -> bool:
    """Return whether the machine may try more for a task that failed for good.

    It may not where a person has to decide anyway, or where nothing changes before a person does something.
    """
    if not plan.policy.auto_heal or failed.lasting or failed.failure in ASKS:
        return False
    return plan.policy.answer is None and not loops(plan, task)


def next_step(plan: Plan, task: Task, found: Diagnosis, done: Collection[HealStep]) -> Chosen | None:
    """Return what to try next; None when the ladder of the cause ends, and a person decides.

    `done` has the steps that were tried for the task before: no step is tried twice.
    """
    if len(done) >= plan.policy.heal.max_steps:
        return None
    for step in LADDER[found.cause]:
        if step not in done and _is_possible(step, plan, task):
            return Chosen(step=step, because=f"{found.because}: {STEPS[step]}")
    return None


def _is_possible(step: HealStep, plan: Plan, task: Task) -> bool:
    match step:
        case HealStep.OTHER_AGENT:
            return bool(fallback.after(task, plan.policy))
        case HealStep.STRONGER:
            stronger = plan.policy.heal.stronger
            return stronger is not None and stronger != fallback.entry(*fallback.meant(task, plan.policy))
        case _:
            return True


def advice(found: Diagnosis, task: Task, gates: Collection[GateCommand]) -> str:
    """Return the diagnosis for an agent, with what the checks ask for, restated."""
    at = found.signature
    where = " > ".join(on_one_line(one) for one in (at.step, at.file, at.test) if one)
    again = f", {found.repeated} times in a row" if found.repeated > 1 else ""
    lines = [
        f"Likely cause: {found.because}.",
        f"It fails at {where}{again}: {at.error}",
        "At the end all of this must be true:",
        *(f"- {on_one_line(one)}" for one in task.criteria),
        *(f"- `{on_one_line(one.command)}` exits with 0" for one in gates),
        "Read these checks first. Work out what they ask for. Then change only what they need.",
    ]
    return "\n".join(lines)
