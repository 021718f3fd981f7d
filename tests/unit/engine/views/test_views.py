"""What people see of a plan: time that was worked, why a task rests, and when something last changed."""

from dataclasses import replace

from tests.doubles import Home, planned
from tests.wording_plugin import Wording

from loopwright.core.rows.model import Attempt, Plan, Role, Run
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import RunState
from loopwright.engine.money.pauses import go_on
from loopwright.engine.rows.moves import move_run
from loopwright.engine.views.overview import plan_summaries
from loopwright.engine.views.views import PlanView, is_busy, plan_view


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


async def test_a_task_of_a_stopped_plan_says_that_it_was_stopped(wording: Wording) -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    home.hand.go_on(leg)
    home.hand.go_on(leg)
    await home.command("stop", home.plan().id)
    home.hand.go_on(leg)
    wording(_view(home).tasks[0].doing)


async def test_a_paused_plan_does_not_say_that_it_goes_on(wording: Wording) -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    home.hand.go_on(leg)
    home.hand.go_on(leg)
    await home.command("pause", home.plan().id)
    wording(_view(home).tasks[0].doing)
    assert home.store.read_sync(is_busy), "its agent is at work"
    await home.command("pause", home.plan().id, now=True)
    wording(_view(home).tasks[0].doing)
    home.hand.go_on(leg)
    assert not home.store.read_sync(is_busy), "whoever stands by has nothing to do"
    home.store.transact_sync("resume", lambda tx: go_on(tx, home.plan(), home.loop(), "me"))
    wording(_view(home).tasks[0].doing)


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


async def test_what_holds_an_agent_up_before_it_starts_is_named(wording: Wording) -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    await home.turn()
    wording(_view(home).tasks[0].doing)
    policy = replace(home.plan().policy, setup="npm ci")
    home.store.transact_sync("t", lambda tx: tx.update(Plan, home.plan().id, policy=policy))
    wording(_view(home).tasks[0].doing)
    [attempt] = home.all(Attempt)
    run = Run(
        id="run_setup",
        plan_id=attempt.plan_id,
        task_id=attempt.task_id,
        attempt_id=attempt.id,
        role=Role.SETUP,
        state=RunState.QUEUED,
        label=f"setup_{attempt.base_sha}",
        created_at=home.clock.now(),
    )
    home.store.transact_sync("t", lambda tx: tx.insert(run))
    home.store.transact_sync("t", lambda tx: move_run(tx, run, RunState.RUNNING))
    home.clock.advance(12)
    assert _view(home).tasks[0].doing == "running setup for 12 s: npm ci"
    home.store.transact_sync("t", lambda tx: move_run(tx, home.get(Run, run.id), RunState.COMPLETE))
    wording(_view(home).tasks[0].doing)
    policy = replace(home.plan().policy, dependencies="uv sync")
    home.store.transact_sync("t", lambda tx: tx.update(Plan, home.plan().id, policy=policy))
    home.clock.advance(1)
    again = replace(run, id="run_deps", label=f"dependencies_{attempt.base_sha}", created_at=home.clock.now())
    home.store.transact_sync("t", lambda tx: tx.insert(again))
    home.store.transact_sync("t", lambda tx: move_run(tx, again, RunState.RUNNING))
    assert _view(home).tasks[0].doing == "installing dependencies for 0 s: uv sync"
