"""A task that one agent hands on for good: who works next, what is said, and what a person's word changes."""

from tests.doubles import Home, planned

from loopwright.core.rows.model import Leg, Run
from loopwright.core.values.failures import Failure
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import TaskState


async def failed_with(failure: Failure, *, max_attempts: int = 3) -> tuple[Home, Leg]:
    home = await Home(slots=1).launch()
    policy = Policy(parallel=1, model="big", fallback=("other:small",), max_attempts=max_attempts)
    home.submit(planned("a"), policy=policy)
    [leg] = await home.turn()
    home.hand.fail(leg, failure)
    await home.ended(leg)
    return home, leg


async def test_what_a_model_refuses_goes_to_the_next_agent_and_stays_with_it() -> None:
    home, _ = await failed_with(Failure.REFUSAL)
    second = home.attempt("a")
    because = "claude big handed it on: The model refused the task; reword it."
    assert (second.n, second.agent, second.model, second.stands_in) == (2, "other", "small", because)
    assert home.get(Run, second.run_id).agent == "other"
    [told] = home.events("task_handed_on")
    assert told.payload == {"was": "claude:big", "agent": "other", "model": "small", "because": because}
    [leg] = await home.turn()
    home.hand.fail(leg, Failure.GATE)
    await home.ended(leg)
    third = home.attempt("a")
    assert (third.n, third.agent, third.stands_in) == (3, "other", because), "no return to who handed it on"
    assert len(home.events("task_handed_on")) == 1


async def test_the_attempts_of_a_task_are_not_more_for_it() -> None:
    home, _ = await failed_with(Failure.CONTEXT, max_attempts=1)
    assert home.task("a").status is TaskState.ERROR
    assert home.events("task_handed_on") == []


async def test_another_failure_is_tried_again_by_the_same_agent() -> None:
    home, _ = await failed_with(Failure.GATE)
    assert (home.attempt("a").agent, home.attempt("a").stands_in) == ("claude", "")


async def test_a_persons_retry_begins_with_the_agent_that_was_meant() -> None:
    home, _ = await failed_with(Failure.REFUSAL, max_attempts=2)
    [leg] = await home.turn()
    home.hand.fail(leg, Failure.GATE)
    await home.ended(leg)
    assert home.task("a").status is TaskState.ERROR
    await home.command("retry", home.task("a").id)
    assert (home.attempt("a").agent, home.attempt("a").stands_in) == ("claude", "")
    assert home.task("a").passed_over == 0
