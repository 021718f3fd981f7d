"""Loops of one project take turns: files are claimed before a plan starts, and locks have one holder."""

import pytest
from tests.cases import each_case
from tests.doubles import Home, planned

from loopwright.core.rows.hold_rows import Hold
from loopwright.core.rows.model import Attempt, Loop, Plan, Task
from loopwright.core.values.states import AttemptState, HoldState, PlanState, TaskState
from loopwright.engine.people import holds
from loopwright.engine.people.holds import ask_lock
from loopwright.engine.rows.moves import move_attempt
from loopwright.engine.views.views import plan_view

pytestmark = pytest.mark.capability("C076")


def submit(home: Home, name: str, *scope: str) -> Plan:
    return home.submit(planned(name, scope=scope), source_path=f"{name}.yaml")


def now(home: Home, plan: Plan) -> Plan:
    return home.get(Plan, plan.id)


def states(home: Home) -> dict[str, HoldState]:
    """Return what each plan has, by the title of its loop."""
    rows = home.all(Hold, order_by=("created_at", "id"))
    return {home.get(Loop, one.loop_id).name.rpartition("/")[2]: one.state for one in rows}


async def test_a_plan_waits_visibly_for_another_loop_that_changes_the_same_files() -> None:
    home = await Home().launch()
    first, second = submit(home, "first", "src/api/**"), submit(home, "second", "src/api/user.py")
    third = submit(home, "third", "docs/**")
    await home.turn()
    assert [now(home, one).status for one in (first, second, third)] == [
        PlanState.RUNNING,
        PlanState.DRAFT,
        PlanState.RUNNING,
    ]
    view = home.store.read_sync(lambda tx: plan_view(tx, second.id, paths=home.world.paths))
    assert view.reason == "waits for repo/first to end, which changes src/api/user.py too"
    assert home.told("loop_waits") == ["loop_waits"]
    await home.turn()
    assert home.told("loop_waits") == ["loop_waits"]
    await home.command("cancel", first.id)
    (leg,) = await home.turn()
    assert home.attempt("second").id == leg.subject
    assert (now(home, second).status, home.get(Loop, second.loop_id).reason) == (PlanState.RUNNING, "")
    assert home.told("loop_turn") == ["loop_turn"]
    assert states(home) == {"second": HoldState.HELD, "third": HoldState.HELD}


async def test_the_turn_goes_to_whoever_waited_longest() -> None:
    home = await Home().launch()
    plans = [submit(home, name, "app.py") for name in ("first", "second", "third")]
    await home.turn()
    await home.command("cancel", plans[0].id)
    await home.turn()
    assert [now(home, one).status for one in plans[1:]] == [PlanState.RUNNING, PlanState.DRAFT]
    assert "waits for repo/second" in home.get(Loop, plans[2].loop_id).reason


async def test_a_loop_that_needs_you_keeps_nobody_waiting() -> None:
    home = await Home().launch()
    first, second = submit(home, "first", "app.py"), submit(home, "second", "app.py")
    await home.turn()
    await home.command("pause", first.id)
    await home.turn()
    assert now(home, second).status is PlanState.DRAFT
    await home.command("stop", first.id)
    await home.turn()
    assert now(home, second).status is PlanState.RUNNING


async def test_files_that_work_changed_without_declaring_them_are_held_too() -> None:
    home = await Home().launch()
    submit(home, "first")
    (leg,) = await home.turn()
    attempt = home.hand.until(leg, AttemptState.WORKING)
    change = {"tip_sha": "3" * 40, "touched": ("app.py",)}
    home.store.transact_sync(
        "leg", lambda tx: move_attempt(tx, attempt, AttemptState.CHECKING, fence=leg.fence, **change)
    )
    second = submit(home, "second", "app.py")
    await home.turn()
    assert now(home, second).status is PlanState.DRAFT


async def test_a_task_that_is_added_later_waits_alone() -> None:
    home = await Home().launch()
    first = home.submit(planned("one", scope=("one.py",)), planned("two", "one"), source_path="first.yaml")
    submit(home, "second", "two.py")
    (leg, _) = await home.turn()
    task = home.task("two")
    home.store.transact_sync("scope", lambda tx: tx.update(Task, task.id, scope=("two.py",)))
    home.hand.land(leg)
    assert await home.turn() == []
    assert home.task("two").status is TaskState.QUEUED
    assert home.get(Loop, first.loop_id).reason == "waits for repo/second to end, which changes two.py too"
    held = home.all(Hold, task_id=task.id)
    assert [one.state for one in held] == [HoldState.WAITING]


def lock(home: Home, plan: Plan, name: str) -> Hold:
    return home.store.transact_sync("lock", lambda tx: ask_lock(tx, home.ids, plan, name))


async def test_a_lock_has_one_holder_and_the_next_one_gets_it() -> None:
    home = await Home().launch()
    first, second = submit(home, "first"), submit(home, "second")
    assert lock(home, first, "staging").state is HoldState.HELD
    waits = lock(home, second, "staging")
    assert (waits.state, waits.reason) == (
        HoldState.WAITING,
        "waits for repo/first, which has the lock staging",
    )
    assert lock(home, second, "staging").id == waits.id
    (leg,) = await home.turn()
    assert leg.subject == home.attempt("first").id
    (held,) = home.all(Hold, plan_id=first.id)
    home.store.transact_sync("release", lambda tx: holds.release(tx, held, "me"))
    (leg,) = await home.turn()
    assert leg.subject == home.attempt("second").id


@each_case("newest", [0, 1])
async def test_of_loops_that_wait_for_each_other_the_newest_request_is_refused(newest: int) -> None:
    home = await Home().launch()
    plans = [submit(home, "first"), submit(home, "second")]
    order = plans if newest else plans[::-1]
    lock(home, plans[0], "a")
    lock(home, plans[1], "b")
    names = {plans[0].id: "b", plans[1].id: "a"}
    assert lock(home, order[0], names[order[0].id]).state is HoldState.WAITING
    home.clock.advance(1)
    victim = lock(home, order[1], names[order[1].id])
    assert victim.state is HoldState.REFUSED
    assert "waited for each other" in victim.reason
    (event,) = home.events("deadlock_broken")
    assert (event.plan, event.payload["hold"]) == (plans[newest].id, victim.id)
    legs = await home.turn()
    going = home.get(Attempt, legs[0].subject)
    assert [going.plan_id] == [plans[newest].id]


async def test_a_loop_released_from_waiting_goes_ahead_without_the_files() -> None:
    home = await Home().launch()
    submit(home, "first", "app.py")
    second = submit(home, "second", "app.py")
    await home.turn()
    (waits,) = home.all(Hold, plan_id=second.id)
    home.store.transact_sync("release", lambda tx: holds.release(tx, waits, "me"))
    await home.turn()
    assert now(home, second).status is PlanState.RUNNING
    assert home.get(Loop, second.loop_id).reason == ""
