"""What becomes of tasks that wait for one that failed: they are tried without it, wait, or go with it."""

import pytest
from tests.doubles import Home, planned

from loopwright.core.rows.healing_rows import Healing
from loopwright.core.rows.model import CommandState
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.failures import Failure
from loopwright.core.values.healing import HealStep
from loopwright.core.values.policy import GateCommand, HealPolicy, Policy
from loopwright.core.values.states import HealingState, LoopState, TaskState

CHECK = GateCommand(name="own", command="make own")


async def blocked(*, auto_heal: bool = True) -> Home:
    """Return a home in which a failed for good; b needs it, c needs b, and d needs nothing."""
    home = await Home().launch()
    tasks = (
        planned("a"),
        planned("b", "a", acceptance=(CHECK,)),
        planned("c", "b", acceptance=(CHECK,)),
        planned("d"),
    )
    policy = Policy(max_attempts=1, auto_heal=auto_heal, heal=HealPolicy(max_steps=1))
    home.submit(*tasks, policy=policy)
    for leg in await home.turn():
        task = home.store.read_sync(
            lambda tx, leg=leg: home.get(type(home.attempt("a")), leg.subject).task_id
        )
        if task == home.task("a").id:
            home.hand.fail(leg, Failure.GATE, "it failed", lasting=True)
        else:
            home.hand.land(leg)
        await home.ended(leg)
    assert home.task("d").status is TaskState.COMPLETE, "what needs nothing of it continues"
    return home


@pytest.mark.capability("C085")
async def test_without_auto_heal_what_waits_for_a_failed_task_waits_for_you() -> None:
    home = await blocked(auto_heal=False)
    assert await home.turn() == []
    assert home.loop().state is LoopState.FAILED
    assert (home.task("b").unmet, home.task("b").status) == (1, TaskState.QUEUED)


@pytest.mark.capability("C085")
async def test_a_task_is_tried_without_the_failed_one_that_it_needs_and_its_checks_prove_that_it_can() -> (
    None
):
    home = await blocked()
    (leg,) = await home.turn()
    told = home.attempt("b")
    assert (told.id, told.healing) == (leg.subject, HealStep.BYPASS)
    assert "come after a, which failed" in told.advice
    home.hand.land(leg)
    await home.ended(leg)
    (row,) = home.all(Healing)
    assert (row.step, row.state, row.about) == (HealStep.BYPASS, HealingState.HEALED, (home.task("a").id,))
    (leg,) = await home.turn()
    home.hand.land(leg)
    await home.ended(leg)
    assert home.task("c").status is TaskState.COMPLETE
    assert await home.turn() == []
    assert (home.task("a").status, home.loop().state) == (TaskState.ERROR, LoopState.FAILED), (
        "you decide about a"
    )


async def test_a_task_that_does_not_pass_without_it_waits_again_and_no_attempt_is_used_up() -> None:
    home = await blocked()
    (leg,) = await home.turn()
    home.hand.fail(leg, Failure.GATE, "a is missing")
    await home.ended(leg)
    (row,) = home.all(Healing)
    task = home.task("b")
    assert row.state is HealingState.FAILED
    assert (task.status, task.unmet, task.attempts, task.depends_on) == (
        TaskState.QUEUED,
        1,
        0,
        (home.task("a").id,),
    )
    assert await home.turn() == [], "not twice"
    await home.command("retry", home.task("a").id)
    (leg,) = await home.turn()
    home.hand.land(leg)
    await home.ended(leg)
    (leg,) = await home.turn()
    assert (home.attempt("b").id, home.attempt("b").healing) == (leg.subject, None)


async def test_a_task_whose_machine_was_lost_keeps_trying_without_it() -> None:
    home = await blocked()
    (leg,) = await home.turn()
    home.hand.fail(leg, Failure.HOST_LOST, "gone")
    assert (home.attempt("b").healing, home.task("b").unmet) == (HealStep.BYPASS, 0)


@pytest.mark.capability("C085")
async def test_a_failed_task_is_given_up_with_everything_that_waits_for_it_in_one_answer() -> None:
    home = await blocked(auto_heal=False)
    (question,) = home.all(Question)
    assert question.options[-1] == "cancel with what waits for it"
    answered = await home.command("answer", question.id, answer="4")
    assert answered.state is CommandState.APPLIED
    assert answered.result.startswith("cancelled: a, b, c; all the rest has landed")
    assert [home.task(key).status for key in "abc"] == [TaskState.CANCELLED] * 3


async def test_a_task_for_which_nothing_waits_has_no_such_answer_and_a_cancelled_one_can_take_the_rest_along() -> (
    None
):
    home = await Home().launch()
    home.submit(planned("a"), planned("b"), planned("c", "b"), policy=Policy(max_attempts=1))
    first, _ = await home.turn()
    home.hand.fail(first, Failure.GATE, "it failed")
    (question,) = home.all(Question)
    refused = await home.command("answer", question.id, answer="4")
    assert refused.state is CommandState.REFUSED
    await home.command("cancel", home.task("b").id)
    chain = await home.command("cancel", home.task("b").id, chain=True)
    assert (chain.result, home.task("c").status) == ("cancelled: c", TaskState.CANCELLED)
    again = await home.command("cancel", home.task("b").id, chain=True)
    assert again.result == "already cancelled"
