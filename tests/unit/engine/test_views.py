"""What people see of a plan: time that was worked, why a task rests, and when something last changed."""

from tests.doubles import Home, planned

from loopwright.core.failures import Failure
from loopwright.engine.overview import plan_summaries
from loopwright.engine.pauses import go_on
from loopwright.engine.views import PlanView, is_busy, plan_view


def _view(home: Home) -> PlanView:
    return home.store.read_sync(lambda tx: plan_view(tx, home.plan().id, home.world.paths))


def _changed(home: Home) -> float:
    return home.store.read_sync(plan_summaries)[0].changed_s


async def test_only_the_time_in_which_something_ran_counts() -> None:
    home = await Home().launch()
    home.submit(planned("a"), planned("b"))
    first, second = await home.turn()
    assert _view(home).elapsed_s == 0
    for leg in (first, second):
        home.hand.go_on(leg)
        home.hand.go_on(leg)  # both agents run, side by side
    home.clock.advance(10)
    home.hand.land(first)
    home.clock.advance(5)
    assert _view(home).elapsed_s == 15
    await home.command("stop", home.plan().id)
    home.hand.go_on(second)
    home.clock.advance(3600)
    assert _view(home).elapsed_s == 15, "a night in between is not work"


async def test_a_task_of_a_stopped_plan_says_that_it_was_stopped() -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    home.hand.go_on(leg)
    home.hand.go_on(leg)
    await home.command("stop", home.plan().id)
    home.hand.go_on(leg)
    assert _view(home).tasks[0].doing == "parked: stopped by a person"


async def test_a_paused_plan_does_not_say_that_it_goes_on() -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    home.hand.go_on(leg)
    home.hand.go_on(leg)
    await home.command("pause", home.plan().id)
    assert _view(home).tasks[0].doing == "may finish, then nothing more starts: working"
    assert home.store.read_sync(is_busy), "its agent is at work"
    await home.command("pause", home.plan().id, now=True)
    assert _view(home).tasks[0].doing == "is asked to stop; its work is kept"
    home.hand.go_on(leg)
    assert not home.store.read_sync(is_busy), "whoever stands by has nothing to do"
    home.store.transact_sync("resume", lambda tx: go_on(tx, home.plan(), home.loop(), "me"))
    assert _view(home).tasks[0].doing == "goes on with the next free slot"


async def test_how_long_ago_means_since_the_last_change() -> None:
    home = await Home().launch()
    home.submit(planned("a"), planned("b"))
    first, _ = await home.turn()
    home.clock.advance(100)
    assert _changed(home) == 100
    home.hand.fail(first, Failure.AUTH)
    home.clock.advance(7)
    assert _changed(home) == 7
    await home.command("pause", home.plan().id)
    assert _changed(home) == 0
