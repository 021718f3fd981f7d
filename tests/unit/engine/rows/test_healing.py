"""Healing as rows: a step begins where a task failed for good, and ends with the task."""

from typing import Any

import pytest
from tests.doubles import Home, planned

from loopwright.core.healing.steps import MOST_IN_VAIN
from loopwright.core.rows.healing_rows import Healing
from loopwright.core.rows.model import Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.failures import Failure
from loopwright.core.values.healing import Cause, HealStep
from loopwright.core.values.policy import HealPolicy, Policy
from loopwright.core.values.states import HealingState, TaskState


async def healing_home(**policy: Any) -> Home:
    """Return a home with one task that has one attempt before it is healed."""
    home = await Home().launch()
    home.submit(planned("a"), policy=Policy(**{"max_attempts": 1, "auto_heal": True} | policy))
    return home


async def fails(home: Home, detail: str, failure: Failure = Failure.GATE) -> None:
    """Let the next attempt fail."""
    (leg,) = await home.turn()
    home.hand.fail(leg, failure, detail)
    await home.ended(leg)


def steps(home: Home) -> list[tuple[HealStep, HealingState]]:
    return [(one.step, one.state) for one in home.all(Healing, order_by=("n",))]


@pytest.mark.capability("C091")
async def test_without_auto_heal_a_task_that_used_up_its_attempts_waits_for_you() -> None:
    home = await healing_home(auto_heal=False)
    await fails(home, "no")
    assert (home.task("a").status, steps(home)) == (TaskState.ERROR, [])


@pytest.mark.capability("C088")
async def test_each_step_gives_one_attempt_none_is_repeated_and_then_you_are_asked() -> None:
    home = await healing_home(fallback=("other",), heal=HealPolicy(stronger="claude:big"))
    await fails(home, "it changed nothing", Failure.NO_CHANGE)
    assert steps(home) == [(HealStep.RESTATE, HealingState.TRYING)]
    assert home.task("a").status is TaskState.QUEUED
    told = home.attempt("a")
    assert (told.healing, told.n) == (HealStep.RESTATE, 2)
    assert "Likely cause: the task is unclear" in told.advice
    assert told.evidence == "evidence of: it changed nothing"
    await fails(home, "nothing again", Failure.NO_CHANGE)
    assert home.attempt("a").agent == "other"
    await fails(home, "and again", Failure.NO_CHANGE)
    assert (home.attempt("a").agent, home.attempt("a").model) == ("claude", "big")
    await fails(home, "for the last time", Failure.NO_CHANGE)
    assert steps(home) == [
        (HealStep.RESTATE, HealingState.FAILED),
        (HealStep.OTHER_AGENT, HealingState.FAILED),
        (HealStep.STRONGER, HealingState.FAILED),
    ]
    assert (home.task("a").status, home.task("a").attempts) == (TaskState.ERROR, 4)
    (question,) = home.all(Question)
    assert "Likely cause: the task is unclear" in question.text
    assert [event.payload["step"] for event in home.events("task_healing")] == [
        "restate",
        "other_agent",
        "stronger_agent",
    ]


async def test_a_step_has_healed_only_when_the_task_lands() -> None:
    home = await healing_home()
    await fails(home, "it hung", Failure.HANG)
    (leg,) = await home.turn()
    assert steps(home) == [(HealStep.FRESH, HealingState.TRYING)]
    home.hand.land(leg)
    assert steps(home) == [(HealStep.FRESH, HealingState.HEALED)]
    (ended,) = home.events("healing_ended")
    assert ended.payload["cause"] == Cause.ENVIRONMENT.value


async def test_a_step_is_withdrawn_when_you_cancel_the_task() -> None:
    home = await healing_home()
    await fails(home, "no")
    await home.command("cancel", home.task("a").id)
    assert steps(home) == [(HealStep.RESTATE, HealingState.WITHDRAWN)]


async def test_failures_that_only_a_person_can_fix_are_not_healed() -> None:
    home = await healing_home()
    await fails(home, "you did not answer", Failure.UNANSWERED)
    assert (home.task("a").status, steps(home)) == (TaskState.ERROR, [])


async def test_a_service_that_failed_too_often_gets_a_fresh_start_with_new_calls() -> None:
    home = await healing_home(max_call_retries=0)
    await fails(home, "the machine went away", Failure.HOST_LOST)
    assert steps(home) == [(HealStep.FRESH, HealingState.TRYING)]
    task = home.task("a")
    assert (task.status, task.attempts, task.call_failures) == (TaskState.QUEUED, 0, 0)


@pytest.mark.capability("C088")
async def test_a_step_that_heals_nothing_in_a_project_costs_at_most_ten_attempts_there() -> None:
    home = await Home().launch()
    for n in range(MOST_IN_VAIN + 2):
        home.submit(
            planned("a"), source_path=f"{n}.yaml", policy=Policy(max_attempts=1, auto_heal=True, parallel=1)
        )
        await fails(home, "it changed nothing", Failure.NO_CHANGE)
        while legs := await home.turn():
            for leg in legs:
                home.hand.fail(leg, Failure.NO_CHANGE, "nothing again")
                await home.ended(leg)
    tried = [one.state for one in home.all(Healing)]
    assert tried == [HealingState.FAILED] * MOST_IN_VAIN
    assert {one.status for one in home.all(Task)} == {TaskState.ERROR}
