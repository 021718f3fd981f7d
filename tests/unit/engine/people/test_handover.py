"""A person does a task by hand: what the machine leaves alone meanwhile, and what becomes of the work."""

from tests.cases import each_case
from tests.doubles import Home, planned, recount
from tests.wording_plugin import Wording

from loopwright.core.rows.model import Attempt, CommandState, Leg, Run, Task
from loopwright.core.values.failures import Failure
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import AttemptState, LoopState, TaskState

HANDED = {"base_sha": "2" * 40, "tip_sha": "5" * 40}


async def running(*, limit: int = 0) -> tuple[Home, dict[str, Leg]]:
    """Return a home where `a` and `free` have begun and `b` waits for `a`."""
    home = await Home(slots=8).launch()
    home.submit(
        planned("a"), planned("b", "a"), planned("free"), policy=Policy(max_unreviewed=limit, parallel=8)
    )
    return home, await turn(home)


async def turn(home: Home) -> dict[str, Leg]:
    """Apply policy; return the legs of attempts by the key of their task."""
    legs = await home.turn()
    keys = {task.id: task.key for task in home.all(Task)}
    return {keys[one.task_id]: leg for leg in legs for one in home.all(Attempt, id=leg.subject)}


async def taken(home: Home, key: str = "a") -> None:
    """Let a person take a task over."""
    done = await home.command("take_over", home.task(key).id, directory="/mine")
    assert done.state is CommandState.APPLIED, done.result


def balanced(home: Home) -> bool:
    return all(counted == kept for counted, kept in recount(home).values())


async def test_an_agent_is_stopped_and_nothing_starts_for_a_task_that_a_person_has(wording: Wording) -> None:
    home, legs = await running()
    home.hand.work(legs["a"])
    await taken(home)
    old = home.get(Attempt, legs["a"].subject)
    assert (old.interrupt, home.task("a").status, home.task("a").taken_by) == ("cancel", "RUNNING", "me")
    early = await home.command("hand_back", home.task("a").id, **HANDED)
    wording(early.result)
    home.hand.go_on(legs["a"])
    await home.reconcile()
    assert home.task("a").status is TaskState.QUEUED
    assert home.get(Attempt, old.id).state is AttemptState.CANCELLED
    assert await home.turn() == []
    home.hand.land(legs["free"])
    await home.turn()
    wording(home.plan().reason)
    assert home.loop().state is LoopState.FAILED
    assert balanced(home)


async def test_what_is_handed_back_is_an_attempt_that_is_about_to_be_checked(wording: Wording) -> None:
    home, legs = await running()
    home.hand.work(legs["a"])
    await taken(home)
    home.hand.go_on(legs["a"])
    unknown = home.plan().unknown_costs
    done = await home.command("hand_back", home.task("a").id, **HANDED)
    wording(done.result)
    attempt = home.attempt("a")
    assert (attempt.n, attempt.agent, attempt.state) == (2, "human", AttemptState.CHECKING)
    assert (attempt.tip_sha, attempt.base_sha) == ("5" * 40, "2" * 40)
    run = home.get(Run, attempt.run_id)
    assert (run.agent, run.state, run.cost_micros) == (None, "COMPLETE", 0)
    assert (home.task("a").status, home.plan().unknown_costs) == (TaskState.RUNNING, unknown)
    again = await home.command("hand_back", home.task("a").id, **HANDED)
    wording(again.result)
    await home.ended(legs["a"])
    [leg] = await home.reconcile()
    home.hand.land(leg)
    task = home.task("a")
    assert (task.status, task.taken_by, task.reviewed_by) == (TaskState.COMPLETE, "", "me")
    assert "b" in await turn(home)


async def test_work_that_does_not_pass_stays_with_the_person_and_uses_up_no_attempt() -> None:
    home, legs = await running()
    home.hand.work(legs["a"])
    await taken(home)
    home.hand.go_on(legs["a"])
    await home.ended(legs["a"])
    for n in (2, 3, 4, 5):
        await home.command("hand_back", home.task("a").id, **HANDED)
        [leg] = await home.reconcile()
        home.hand.fail(leg, Failure.GATE, "one test failed")
        await home.ended(leg)
        task = home.task("a")
        assert (task.status, task.taken_by, task.attempts) == (TaskState.QUEUED, "me", 0)
        assert (task.reason, home.attempt("a").n) == ("one test failed", n + 1)
    assert await home.turn() == []
    assert len(home.events("task_not_accepted")) == 4
    dropped = await home.command("hand_back", home.task("a").id, drop=True)
    assert dropped.result.startswith("Loopwright continues a")
    assert list(await turn(home)) == ["a"]
    assert home.attempt("a").agent == "claude"
    assert balanced(home)


@each_case(
    ("verb", "key", "words"),
    [
        ("take_over", "b", "b waits for other tasks"),
        ("take_over", "free", "free has landed already"),
        ("hand_back", "a", "a is not taken over"),
        ("reviewed", "a", "a has not landed"),
    ],
)
async def test_what_cannot_be_is_refused_in_plain_words(verb: str, key: str, words: str) -> None:
    home, legs = await running()
    home.hand.land(legs["free"])
    refused = await home.command(verb, home.task(key).id, **HANDED)
    assert (refused.state, refused.result.startswith(words)) == (CommandState.REFUSED, True), refused.result


async def test_a_cancelled_task_is_with_nobody() -> None:
    home, _ = await running()
    await taken(home)
    await home.command("cancel", home.task("a").id)
    assert (home.task("a").status, home.task("a").taken_by) == (TaskState.CANCELLED, "")


async def test_results_that_nobody_looked_at_and_work_in_progress_count_together() -> None:
    home, legs = await running(limit=1)
    assert list(legs) == ["a"]
    home.hand.land(legs["a"])
    assert await turn(home) == {}
    assert home.loop().state is LoopState.RUNNING
    assert (await home.command("reviewed", home.plan().id)).result == "reviewed: a"
    assert (await home.command("reviewed", home.task("a").id)).result == "reviewed already"
    assert len(home.events("results_reviewed")) == 1
    legs = await turn(home)
    assert len(legs) == 1
