"""Bringing rows and reality together: what nobody drives gets a new leg, what a dead host had starts over."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.cases import each_case
from tests.doubles import FAILED, Home, planned, recount

from loopwright.core.rows.model import Attempt, Leg, Run, Task, Worker
from loopwright.core.values.errors import FenceLost, StaleVersion
from loopwright.core.values.failures import Failure
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import AttemptState, LoopState, PlanState, RunState, TaskState
from loopwright.engine.rows.moves import commit_leg
from loopwright.engine.worker.advance import advance
from loopwright.engine.worker.leases import Lease
from loopwright.ports import Tx

HOST_LOST_AFTER = 120.0


async def worker_of(home: Home, *, seconds: float = 15.0) -> Lease:
    lease = home.lease(seconds=seconds)
    await lease.join()
    return lease


async def running(*tasks: Any, **changes: Any) -> tuple[Home, list[Leg]]:
    home = await Home().launch()
    home.submit(*(tasks or (planned("a"),)), **changes)
    return home, await home.turn()


async def two_hosts(**changes: Any) -> tuple[Home, Home, Leg]:
    """Return two workers of one home, and the leg of an attempt that the first one's host has."""
    one = await Home(exclusive=False).launch()
    other = await one.beside("host-b").launch()
    await worker_of(one)
    await worker_of(other, seconds=7 * 24 * 3600)
    one.submit(planned("a"), **changes)
    [leg] = await one.turn()
    one.hand.until(leg, AttemptState.WORKING)
    one.hand.go_on(leg)
    return one, other, leg


# --- nobody drives it --------------------------------------------------------------------------------


async def test_what_is_in_flight_is_left_alone() -> None:
    written: list[str] = []
    home = await Home(failpoint=written.append).launch()
    home.submit(planned("a"))
    await home.turn()
    written.clear()
    assert await home.reconcile() == []
    assert written == []


@pytest.mark.capability("C053", "C056")
@pytest.mark.trap("lost resume")
@each_case(
    "state",
    [AttemptState.PREPARING, AttemptState.WORKING, AttemptState.CHECKING, AttemptState.LANDING],
)
async def test_an_attempt_that_nobody_drives_gets_a_new_leg_with_a_higher_fence(state: AttemptState) -> None:
    home, [leg] = await running()
    home.hand.until(leg, state)
    await home.ended(leg)
    [second] = await home.reconcile()
    assert (second.subject, second.n, second.fence) == (leg.subject, leg.n + 1, leg.fence + 1)
    assert home.attempt("a").state is state
    assert home.hand.land(second).status is TaskState.COMPLETE
    assert len(home.all(Attempt)) == 1


@pytest.mark.capability("C056")
async def test_a_leg_that_was_committed_but_never_started_is_caught_up() -> None:
    """The worker died between the commit and the start."""
    home = await Home().launch()
    home.submit(planned("a"))
    [unstarted] = (await advance(home.world)).legs
    [leg] = await home.reconcile()
    assert (leg.n, leg.fence) == (unstarted.n + 1, unstarted.fence + 1)
    assert await home.reconcile() == []


@each_case(
    "act",
    [
        lambda home, leg: home.hand.go_on(leg),
        lambda home, leg: home.hand.fail(leg, Failure.GATE),
        lambda home, leg: home.hand.judge(leg, FAILED),
    ],
    ids=["go on", "fail", "judge"],
)
@each_case("state", [AttemptState.WORKING, AttemptState.CHECKING, AttemptState.LANDING])
async def test_a_stale_fence_changes_nothing(state: AttemptState, act: Any) -> None:
    home, [stale] = await running()
    home.hand.until(stale, state)
    await home.ended(stale)
    [fresh] = await home.reconcile()
    before, told = home.everything(), home.told()
    with pytest.raises(FenceLost if state is not AttemptState.LANDING else (FenceLost, StaleVersion)):
        act(home, stale)
    assert home.everything() == before
    assert home.told() == told
    assert home.hand.land(fresh).status is TaskState.COMPLETE


async def test_two_commits_to_a_leg_from_the_same_look_are_one_leg() -> None:
    home, [leg] = await running()
    seen = home.attempt("a")

    def commit(tx: Tx) -> Leg:
        return commit_leg(tx, seen)

    home.store.transact_sync("first", commit)
    with pytest.raises(StaleVersion):
        home.store.transact_sync("second", commit)
    assert home.attempt("a").fence == leg.fence + 1


@pytest.mark.capability("C056")
async def test_a_verification_that_nobody_drives_gets_a_new_leg_and_the_old_one_changes_nothing() -> None:
    home, [leg] = await running()
    home.hand.land(leg)
    [verify] = await home.turn()
    await home.ended(verify)
    [second] = await home.reconcile()
    assert (second.subject, second.n, second.fence) == (home.plan().id, verify.n + 1, verify.fence + 1)
    before = home.everything()
    await home.verify(verify, FAILED)
    assert home.everything() == before
    await home.verify(second)
    assert (home.plan().status, home.plan().verify_n) == (PlanState.VERIFIED, 1)


async def test_a_paused_loop_lets_an_orphan_finish_and_a_stopped_one_does_not() -> None:
    home, [leg] = await running()
    await home.ended(leg)
    await home.command("pause", home.plan().id)
    [second] = await home.reconcile()
    await home.ended(second)
    home.store.transact_sync("stop", lambda tx: tx.update(Attempt, leg.subject, wait_reason="parked"))
    assert await home.reconcile() == []
    await home.command("stop", home.plan().id)
    [third] = await home.reconcile()  # only to be told to stop
    home.hand.go_on(third)
    await home.ended(third)
    assert await home.reconcile() == []
    assert home.attempt("a").interrupt == ""


async def test_an_orphan_that_was_cancelled_gets_a_leg_to_end_it_in() -> None:
    home, [leg] = await running()
    home.hand.until(leg, AttemptState.CHECKING)
    await home.ended(leg)
    await home.command("cancel", home.plan().id)
    assert home.loop().state is LoopState.STOPPED
    [last] = await home.reconcile()
    home.hand.go_on(last)
    assert home.attempt("a").state is AttemptState.CANCELLED
    await home.ended(last)
    assert await home.reconcile() == []


# --- many hosts --------------------------------------------------------------------------------------


async def test_a_worker_whose_lease_lapsed_is_declared_lost_once() -> None:
    one, other, _ = await two_hosts()
    one.clock.advance(20)
    await other.reconcile()
    await other.reconcile()
    [lost] = one.events("worker_lost")
    assert lost.payload["hostname"] == "host-a"
    [row] = one.all(Worker, host_id="host-a")
    assert (row.slots, row.controls) == (0, False)


async def test_workers_that_live_are_not_declared_lost() -> None:
    one, other, _ = await two_hosts()
    one.clock.advance(10)
    await other.reconcile()
    assert one.told("worker_lost") == []


async def test_a_worker_that_leaves_while_it_is_being_declared_lost_disturbs_nobody() -> None:
    one, other, _ = await two_hosts()
    one.clock.advance(20)
    [row] = one.all(Worker, host_id="host-a")
    inner = other.engine.recover

    class Leaving:
        def __getattr__(self, name: str) -> Any:
            return getattr(other.engine, name)

        async def recover(self, owners: Any) -> list[str]:
            one.store.transact_sync("left", lambda tx: tx.delete(Worker, row.id))
            return await inner(owners)

    other.world = replace(other.world, engine=Leaving())
    await other.reconcile()
    assert one.told("worker_lost") == []


async def test_only_the_host_that_has_the_workspace_carries_an_attempt_on() -> None:
    one, other, leg = await two_hosts()
    await one.ended(leg)
    one.clock.advance(20)
    assert await other.reconcile() == []
    await worker_of(one)
    [second] = await other.reconcile()
    assert (second.subject, second.host_id) == (leg.subject, "host-a")


@pytest.mark.capability("C056")
async def test_a_lost_host_gives_a_new_attempt_that_does_not_count() -> None:
    one, other, leg = await two_hosts(policy=Policy(host_lost_after=HOST_LOST_AFTER))
    await one.ended(leg)
    one.clock.advance(15 + HOST_LOST_AFTER)
    await other.reconcile()
    assert one.attempt("a").id == leg.subject  # not a second too early
    one.clock.advance(1)
    await other.reconcile()
    task = one.task("a")
    assert (task.status, task.attempts, task.call_failures) == (TaskState.QUEUED, 0, 1)
    lost = one.get(Attempt, leg.subject)
    assert (lost.state, lost.failure, lost.fence) == (
        AttemptState.BROKEN,
        Failure.HOST_LOST,
        leg.fence + 1,
    )
    assert {run.state for run in one.all(Run, attempt_id=leg.subject)} == {RunState.ERROR}
    one.clock.advance(2)
    [again] = await other.turn()
    assert again.subject != leg.subject
    assert other.hand.land(again).status is TaskState.COMPLETE
    with pytest.raises(FenceLost):
        one.hand.fail(leg, Failure.GATE)


async def test_a_leg_that_waits_for_a_lost_host_is_forgotten_with_it() -> None:
    one, other, leg = await two_hosts(policy=Policy(host_lost_after=HOST_LOST_AFTER))
    await one.ended(leg)
    await one.engine.close()
    [second] = await other.reconcile()
    one.clock.advance(15)
    await other.reconcile()
    assert await other.engine.in_flight() == [second.id], "it waits for its host"
    one.clock.advance(HOST_LOST_AFTER + 1)
    await other.reconcile()
    assert await other.engine.in_flight() == [], "whoever works until nothing is left comes to an end"


async def test_a_host_is_only_lost_when_all_its_workers_are_silent() -> None:
    one, other, leg = await two_hosts()
    await one.ended(leg)
    one.clock.advance(HOST_LOST_AFTER + 20)
    await worker_of(one)
    [second] = await other.reconcile()
    assert second.subject == leg.subject


async def test_a_host_whose_worker_left_in_good_order_is_given_the_same_time() -> None:
    one = await Home(exclusive=False).launch()
    other = await one.beside("host-b").launch()
    lease = await worker_of(one)
    await worker_of(other, seconds=3600)
    one.submit(planned("a"))
    [leg] = await one.turn()
    one.hand.until(leg, AttemptState.WORKING)
    await lease.leave()
    await one.ended(leg)
    one.clock.advance(HOST_LOST_AFTER)
    assert await other.reconcile() == []
    assert one.attempt("a").id == leg.subject
    one.clock.advance(1)
    await other.reconcile()
    assert one.get(Attempt, leg.subject).state is AttemptState.BROKEN


async def test_a_lost_host_uses_up_calls_until_the_task_is_given_up() -> None:
    one, other, leg = await two_hosts(policy=Policy(max_call_retries=0))
    await one.ended(leg)
    one.clock.advance(HOST_LOST_AFTER + 20)
    await other.reconcile()
    assert one.task("a").status is TaskState.ERROR
    assert all(counted == kept for counted, kept in recount(one).values())


async def test_in_a_paused_loop_work_waits_for_its_host() -> None:
    one, other, leg = await two_hosts()
    await one.command("pause", one.plan().id)
    await one.ended(leg)
    one.clock.advance(3600)
    await other.reconcile()
    assert one.attempt("a").id == leg.subject
    assert one.attempt("a").state is AttemptState.WORKING


@each_case("target", ["plan", "task"])
async def test_what_was_cancelled_on_a_lost_host_is_over_whether_or_not_the_loop_runs(target: str) -> None:
    one, other, leg = await two_hosts()
    await one.command("cancel", one.plan().id if target == "plan" else one.task("a").id)
    await one.ended(leg)
    one.clock.advance(HOST_LOST_AFTER + 20)
    await other.reconcile()
    assert one.attempt("a").state is AttemptState.CANCELLED
    assert one.task("a").status is TaskState.CANCELLED
    assert [len(one.all(kind)) for kind in (Task, Attempt)] == [1, 1]


async def test_a_single_home_never_gives_a_host_up() -> None:
    """Its worker is known by a held lock; time alone says nothing."""
    home, [leg] = await running()
    home.hand.until(leg, AttemptState.WORKING)
    await home.ended(leg)
    home.clock.advance(timedelta(days=30).total_seconds())
    [second] = await home.reconcile()
    assert second.subject == leg.subject
