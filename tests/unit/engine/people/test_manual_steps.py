"""A manual step becomes one question; your answer settles it, and what depends on it follows."""

from typing import Any

from tests.cases import each_case
from tests.doubles import Home, planned, recount
from tests.wording_plugin import Wording

from loopwright.core.policy.manual_steps import KIND
from loopwright.core.rows.model import Attempt, CommandState, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import LoopState, QuestionState, TaskState


async def asked() -> Home:
    """Return a home in which `look` waits for you, `free` has landed and `ship` depends on `look`."""
    home = await Home(slots=8).launch()
    home.submit(
        planned("build"),
        planned("look", manual=True, after=("build",)),
        planned("free", after=("look",)),
        planned("ship", "look"),
        policy=Policy(parallel=8),
    )
    for key in ("build", "free"):
        [leg] = await home.turn()
        assert home.get(Attempt, leg.subject).task_id == home.task(key).id
        home.hand.land(leg)
        await home.ended(leg)
    assert await home.turn() == []
    return home


async def answer(home: Home, said: str) -> None:
    [question] = [one for one in home.all(Question, state=QuestionState.OPEN) if one.kind == KIND]
    done = await home.command("answer", question.id, answer=said)
    assert done.state is CommandState.APPLIED, done.result


def balanced(home: Home) -> bool:
    return all(counted == kept for counted, kept in recount(home).values())


async def test_a_plan_waits_for_you_when_only_a_manual_step_is_left(wording: Wording) -> None:
    home = await asked()
    assert home.loop().state is LoopState.FAILED
    wording(home.plan().reason)
    assert home.all(Attempt, task_id=home.task("look").id) == []
    await home.turn()
    assert len(home.all(Question)) == 1, "it is asked once"


@each_case("said, status", [("done", TaskState.COMPLETE), ("skip: no screen", TaskState.CANCELLED)])
async def test_what_depends_on_a_step_continues_when_it_is_done_or_skipped(
    said: str, status: TaskState
) -> None:
    home = await asked()
    await answer(home, said)
    assert home.task("look").status is status
    [leg] = await home.turn()
    assert home.get(Attempt, leg.subject).task_id == home.task("ship").id
    home.hand.land(leg)
    await home.ended(leg)
    [verify] = await home.turn()
    await home.verify(verify)
    assert home.plan().status == "VERIFIED"
    assert balanced(home)


async def test_a_step_that_failed_keeps_what_depends_on_it_and_is_asked_again_on_retry(
    wording: Wording,
) -> None:
    home = await asked()
    await answer(home, "failed: the header is red")
    assert home.task("look").status is TaskState.ERROR
    assert await home.turn() == []
    wording(home.plan().reason)
    again = await home.command("retry", home.task("look").id)
    assert again.state is CommandState.APPLIED, again.result
    assert await home.turn() == []
    await answer(home, "done")
    assert len(await home.turn()) == 1
    assert balanced(home)


@each_case(
    "verb, more",
    [("cancel", {}), ("take_over", {"directory": "/mine"})],
    ids=["cancelled", "taken over"],
)
async def test_other_commands_know_a_manual_step(verb: str, more: dict[str, Any], wording: Wording) -> None:
    home = await asked()
    done = await home.command(verb, home.task("look").id, **more)
    if verb == "take_over":
        assert done.state is CommandState.REFUSED
        wording(done.result)
        return
    assert home.task("look").status is TaskState.CANCELLED
    assert home.all(Question, state=QuestionState.OPEN) == [], "nobody is asked any more"
    assert len(await home.turn()) == 1, "it is skipped, so what depends on it continues"
    retried = await home.command("retry", home.task("look").id)
    wording(retried.result)
    assert balanced(home)


async def test_the_order_of_a_source_is_kept_until_a_task_waits_for_you() -> None:
    home = await Home(slots=8).launch()
    home.submit(
        planned("a"), planned("b", after=("a",)), planned("c", after=("b",)), policy=Policy(parallel=8)
    )
    [leg] = await home.turn()
    assert {one.key: one.early for one in home.all(Task)} == {"a": False, "b": True, "c": True}
    await home.command("cancel", home.task("a").id)
    home.hand.go_on(leg)
    await home.ended(leg)
    [leg] = await home.turn()
    assert home.get(Attempt, leg.subject).task_id == home.task("b").id
    assert home.task("c").early
    assert balanced(home)
