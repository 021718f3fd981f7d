"""What follows when an investigator has answered: the next step, or smaller tasks before the task itself."""

import pytest
from tests.doubles import Home, planned

from loopwright.core.replies.investigations import Investigation, Part
from loopwright.core.rows.healing_rows import Healing
from loopwright.core.rows.model import Attempt, Leg, Loop, Project, Role, Run, Task
from loopwright.core.values.failures import Failure
from loopwright.core.values.healing import Cause, HealStep
from loopwright.core.values.policy import GateCommand, HealPolicy, Policy
from loopwright.core.values.states import AttemptState, HealingState, TaskState
from loopwright.engine.attempt.consulting import consulted
from loopwright.engine.rows.legs import Rows

CHECK = GateCommand(name="whole", command="make whole")
TWO = (Part(title="First half"), Part(title="Second half", description="Do the rest."))


async def consulting(failure: Failure, **heal: object) -> tuple[Home, Leg]:
    """Return a home in which an investigator works on a task that failed, with another task that needs it."""
    home = await Home().launch()
    policy = Policy(max_attempts=1, auto_heal=True, heal=HealPolicy(**heal))  # type: ignore[arg-type]
    home.submit(planned("a", acceptance=(CHECK,)), planned("b", "a"), policy=policy)
    (leg,) = await home.turn()
    home.hand.fail(leg, failure, "it failed")
    await home.ended(leg)
    (leg,) = await home.turn()
    home.hand.until(leg, AttemptState.WORKING)
    return home, leg


def answers(home: Home, leg: Leg, answer: Investigation) -> None:
    attempt = home.get(Attempt, leg.subject)
    rows = Rows(
        attempt=attempt,
        task=home.get(Task, attempt.task_id),
        plan=home.plan(),
        loop=home.all(Loop)[0],
        project=home.all(Project)[0],
    )
    home.store.transact_sync("answer", lambda tx: consulted(tx, home.ids, rows, answer, fence=leg.fence))


def steps(home: Home) -> list[tuple[HealStep, HealingState]]:
    return [(one.step, one.state) for one in home.all(Healing, order_by=("n",))]


@pytest.mark.capability("C088")
async def test_a_task_that_is_too_large_is_done_in_parts_and_then_checked_as_a_whole() -> None:
    home, leg = await consulting(Failure.TURNS)
    attempt = home.get(Attempt, leg.subject)
    assert (attempt.healing, home.get(Run, attempt.run_id).role) == (HealStep.SPLIT, Role.INVESTIGATOR)
    assert home.get(Run, attempt.run_id).permission_mode == "read-only"
    answers(home, leg, Investigation(cause=Cause.TOO_LARGE, why="two things", parts=TWO))
    await home.ended(leg)
    assert home.get(Attempt, leg.subject).state is AttemptState.BROKEN
    first, second = home.task("a-part-1"), home.task("a-part-2")
    assert (first.unmet, second.unmet, home.task("a").unmet) == (0, 1, 2)
    assert (second.depends_on, second.origin) == ((first.id,), "split")
    started = []
    for _ in range(3):
        (leg,) = await home.turn()
        started.append(home.hand.land(leg).key)
        await home.ended(leg)
        assert home.task("b").status is TaskState.QUEUED
    assert started == ["a-part-1", "a-part-2", "a"]
    assert "These parts have landed: a-part-1, a-part-2" in home.attempt("a").advice
    assert steps(home) == [(HealStep.SPLIT, HealingState.HEALED)]
    assert home.task("b").unmet == 0
    assert home.plan().open_tasks == 1


async def test_an_investigator_that_names_another_cause_chooses_another_step_and_its_advice_is_told() -> None:
    home, leg = await consulting(Failure.TURNS, investigator="other:big")
    attempt = home.get(Attempt, leg.subject)
    assert (attempt.agent, attempt.model, attempt.healing) == ("other", "big", HealStep.INVESTIGATE)
    answers(home, leg, Investigation(cause=Cause.FLAKY, why="test_sum sleeps", advice="Run it twice."))
    assert steps(home) == [
        (HealStep.INVESTIGATE, HealingState.TRYING),
        (HealStep.FRESH, HealingState.TRYING),
    ]
    told = home.attempt("a")
    assert (told.agent, told.n, told.advice) == (
        "claude",
        3,
        "An investigator says: test_sum sleeps\nRun it twice.",
    )
    await home.ended(leg)
    (leg,) = await home.turn()
    home.hand.land(leg)
    assert {state for _, state in steps(home)} == {HealingState.HEALED}


async def test_an_investigator_after_which_nothing_is_left_to_try_leaves_the_task_to_you() -> None:
    home, leg = await consulting(Failure.TURNS, investigator="other", max_steps=1)
    answers(home, leg, Investigation(cause=Cause.UNCLEAR, why="two readings", advice="Ask which one."))
    assert home.task("a").status is TaskState.ERROR
    assert "an investigator: two readings" in home.task("a").reason
    assert steps(home) == [(HealStep.INVESTIGATE, HealingState.FAILED)]


async def test_an_investigator_whose_machine_was_lost_is_asked_again_and_one_that_failed_is_not() -> None:
    home, leg = await consulting(Failure.TURNS, investigator="other")
    home.hand.fail(leg, Failure.HOST_LOST, "gone")
    assert (home.attempt("a").healing, home.attempt("a").agent) == (HealStep.INVESTIGATE, "other")
    await home.ended(leg)
    home.clock.advance(60)
    (leg,) = await home.turn()
    home.hand.fail(leg, Failure.AGENT_ERROR, "no answer")
    assert steps(home) == [(HealStep.INVESTIGATE, HealingState.FAILED), (HealStep.SPLIT, HealingState.TRYING)]
    assert home.attempt("a").evidence == "evidence of: it failed", "what was judged last"


async def test_a_task_that_is_cancelled_while_its_investigator_works_gets_no_step() -> None:
    home, leg = await consulting(Failure.TURNS, investigator="other")
    await home.command("cancel", home.task("a").id)
    answers(home, leg, Investigation(cause=Cause.UNCLEAR, why="two readings"))
    assert home.get(Attempt, leg.subject).state is AttemptState.CANCELLED
    assert steps(home) == [(HealStep.INVESTIGATE, HealingState.WITHDRAWN)]
