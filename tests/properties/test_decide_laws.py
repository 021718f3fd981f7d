"""Laws of the policy, over any frontier: what may start never exceeds what there is room for."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contracts.store import rows

from loopwright.core.policy.decide import (
    BeginVerify,
    Decided,
    Dispatch,
    FailPlan,
    Front,
    Frontier,
    HoldPlan,
    PauseLoop,
    StartAttempt,
    WakeAttempt,
    ahead,
    decide,
)
from loopwright.core.policy.graph import scopes_overlap
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import LoopState, PlanState

NOW = rows.AT
LAW = settings(max_examples=60, deadline=None)
MOMENTS = st.none() | st.integers(-2, 5).map(lambda minutes: NOW + timedelta(minutes=minutes))
SCOPES = st.sampled_from([(), ("src",), ("src/api",), ("docs/**",)])
POLICIES = st.builds(
    Policy,
    parallel=st.integers(1, 4),
    on_task_error=st.sampled_from(["hold", "fail"]),
    max_cost=st.sampled_from([None, None, None, 100]),
)


@st.composite
def fronts(draw: st.DrawFn, number: int) -> Front:
    """One plan with anything that may stand on its rows, its counts at least as large as what is seen."""
    state = draw(st.sampled_from([LoopState.RUNNING] * 20 + list(LoopState)))
    loop = rows.loop(rows.project(), id=f"loop_{number}", state=state, priority=draw(st.integers(1, 3)))
    status = draw(st.sampled_from([PlanState.RUNNING] * 20 + list(PlanState)))
    blank = rows.plan(loop)
    busy = status is PlanState.RUNNING and draw(st.sampled_from([True, True, False]))

    def tasks(kind: str, limit: int) -> tuple[Any, ...]:
        count = draw(st.integers(0, limit)) if busy else 0
        return tuple(
            rows.task(blank, id=f"{kind}_{number}_{n}", scope=draw(SCOPES), not_before=draw(MOMENTS))
            for n in range(count)
        )

    ready, working = tasks("ready", 4), tasks("working", 2)
    parked = tasks("waiting", 2)
    waiting = tuple(rows.attempt(task, id=f"att_{task.id}", wake_at=draw(MOMENTS)) for task in parked)
    plan = rows.plan(
        loop,
        id=f"plan_{number}",
        status=status,
        policy=draw(POLICIES),
        open_tasks=len(ready) + len(working) + len(waiting) + draw(st.sampled_from([0, 0, 2])),
        failed_tasks=draw(st.sampled_from([0, 0, 1, 2])),
        not_before=draw(MOMENTS),
        spent_micros=draw(st.sampled_from([0, 99, 100])),
        unknown_costs=draw(st.integers(0, 1)),
    )
    return Front(loop=loop, plan=plan, ready=ready, working=working, waiting=waiting, parked=parked)


@st.composite
def frontiers(draw: st.DrawFn) -> Frontier:
    found = tuple(draw(fronts(number)) for number in range(draw(st.integers(0, 3))))
    # How much room there is does not depend on what is seen here: other loops take some.
    room = draw(st.integers(-1, 3))
    alone = draw(st.booleans())
    return Frontier(fronts=found, room=room, verify_room=draw(st.integers(-1, 2)) if alone else None)


def of(decided: Decided, front: Front) -> list[Any]:
    """Return what was decided about one front."""
    mine = {front.loop.id, front.plan.id} | {task.id for task in front.ready}
    mine |= {attempt.id for attempt in front.waiting}
    return [
        one
        for one in decided.decisions
        if mine
        & {
            getattr(one, name)
            for name in ("plan_id", "loop_id", "task_id", "attempt_id")
            if hasattr(one, name)
        }
    ]


@LAW
@given(frontier=frontiers())
def test_never_more_is_started_than_there_are_free_slots(frontier: Frontier) -> None:
    starting, verifying = _begun(decide(frontier, NOW))
    if frontier.verify_room is None:
        assert starting + verifying <= max(0, frontier.room)
    else:
        assert starting <= max(0, frontier.room)
        assert verifying <= max(0, frontier.verify_room)


@LAW
@given(frontier=frontiers())
def test_no_plan_runs_more_side_by_side_than_it_may(frontier: Frontier) -> None:
    decided = decide(frontier, NOW)
    for front in frontier.fronts:
        started = [one for one in of(decided, front) if isinstance(one, StartAttempt | WakeAttempt)]
        most = front.plan.policy.parallel
        most += 0 if frontier.verify_room is None else ahead(most)
        assert not started or len(front.working) + len(started) <= most


@LAW
@given(frontier=frontiers())
def test_only_what_is_ready_starts_and_only_what_is_parked_wakes_and_each_once(frontier: Frontier) -> None:
    decided = decide(frontier, NOW)
    due = {task.id for front in frontier.fronts for task in front.ready if _is_due(task.not_before)}
    parked = {
        attempt.id
        for front in frontier.fronts
        for attempt in front.waiting
        if attempt.wake_at is not None and attempt.wake_at <= NOW
    }
    started = [one.task_id for one in decided.decisions if isinstance(one, StartAttempt)]
    woken = [one.attempt_id for one in decided.decisions if isinstance(one, WakeAttempt)]
    assert set(started) <= due
    assert set(woken) <= parked
    assert len(set(started)) == len(started)
    assert len(set(woken)) == len(woken)


@LAW
@given(frontier=frontiers())
def test_nothing_is_decided_for_a_loop_that_does_not_run_or_a_plan_that_is_over(frontier: Frontier) -> None:
    decided = decide(frontier, NOW)
    for front in frontier.fronts:
        over = front.plan.status not in (PlanState.DRAFT, PlanState.DISPATCHING, PlanState.RUNNING)
        if over or front.loop.state is not LoopState.RUNNING:
            assert of(decided, front) == []


@pytest.mark.trap("verified too early")
@LAW
@given(frontier=frontiers())
def test_a_verification_begins_only_when_nothing_is_open_and_nothing_has_failed(frontier: Frontier) -> None:
    decided = decide(frontier, NOW)
    for front in frontier.fronts:
        if any(isinstance(one, BeginVerify) for one in of(decided, front)):
            assert front.plan.failed_tasks == front.plan.open_tasks == 0
            assert front.ready + front.working + front.waiting == ()
            assert _is_due(front.plan.not_before)


@LAW
@given(frontier=frontiers())
def test_a_plan_is_held_or_failed_only_when_nothing_in_it_can_move(frontier: Frontier) -> None:
    decided = decide(frontier, NOW)
    for front in frontier.fronts:
        ends = [one for one in of(decided, front) if isinstance(one, HoldPlan | FailPlan)]
        if ends:
            assert len(of(decided, front)) == 1
            assert front.ready + front.working + front.waiting == ()
            assert ends[0].reason


@LAW
@given(frontier=frontiers())
def test_a_running_plan_in_which_nothing_can_move_never_goes_without_a_word(frontier: Frontier) -> None:
    """No stall: it is verified, held, failed, due later, or there is no free slot."""
    decided = decide(frontier, NOW)
    for front in frontier.fronts:
        idle = not (front.ready or front.working or front.waiting)
        runs = front.loop.state is LoopState.RUNNING and front.plan.status is PlanState.RUNNING
        if idle and runs and not of(decided, front):
            waits = front.plan.not_before is not None and front.plan.not_before > NOW
            starting, verifying = _begun(decided)
            if frontier.verify_room is None:
                assert waits or starting + verifying >= frontier.room
            else:
                assert waits or verifying >= frontier.verify_room


@LAW
@given(frontier=frontiers())
def test_the_next_look_is_at_the_earliest_thing_that_is_due(frontier: Frontier) -> None:
    decided = decide(frontier, NOW)
    later = []
    for front in frontier.fronts:
        if front.loop.state is not LoopState.RUNNING or front.plan.status is not PlanState.RUNNING:
            continue
        if any(isinstance(one, PauseLoop) for one in of(decided, front)):
            continue
        times = [task.not_before for task in front.ready] + [one.wake_at for one in front.waiting]
        if not (
            front.ready or front.working or front.waiting or front.plan.failed_tasks or front.plan.open_tasks
        ):
            times.append(front.plan.not_before)
        later += [at for at in times if at is not None and at > NOW]
    assert decided.look_again_at == min(later, default=None)


@LAW
@given(frontier=frontiers())
def test_tasks_that_are_started_together_do_not_write_to_the_same_paths(frontier: Frontier) -> None:
    decided = decide(frontier, NOW)
    for front in frontier.fronts:
        started = {one.task_id for one in of(decided, front) if isinstance(one, StartAttempt)}
        scopes = [task.scope for task in front.ready if task.id in started]
        busy = [task.scope for task in (*front.working, *front.parked)]
        for n, scope in enumerate(scopes):
            assert not any(scopes_overlap(scope, other) for other in busy + scopes[:n])


@LAW
@given(frontier=frontiers())
def test_a_plan_over_its_budget_starts_nothing(frontier: Frontier) -> None:
    decided = decide(frontier, NOW)
    for front in frontier.fronts:
        limit = front.plan.policy.max_cost
        if limit is not None and (front.plan.spent_micros >= limit or front.plan.unknown_costs):
            assert not [one for one in of(decided, front) if isinstance(one, StartAttempt | WakeAttempt)]


@LAW
@given(frontier=frontiers(), data=st.data())
def test_the_same_frontier_in_any_order_leads_to_the_same(frontier: Frontier, data: st.DataObject) -> None:
    shuffled = Frontier(
        fronts=tuple(data.draw(st.permutations(frontier.fronts))),
        room=frontier.room,
        verify_room=frontier.verify_room,
    )
    assert decide(frontier, NOW) == decide(shuffled, NOW) == decide(frontier, NOW)


@LAW
@given(frontier=frontiers())
def test_the_more_urgent_loop_is_served_first(frontier: Frontier) -> None:
    priority = {front.plan.id: front.loop.priority for front in frontier.fronts}
    plan_of = {task.id: front.plan.id for front in frontier.fronts for task in front.ready}
    plan_of |= {one.id: front.plan.id for front in frontier.fronts for one in front.waiting}
    order = []
    for one in decide(frontier, NOW).decisions:
        match one:
            case StartAttempt(task_id=key) | WakeAttempt(attempt_id=key):
                order.append(priority[plan_of[key]])
            case BeginVerify(plan_id=key) | Dispatch(plan_id=key):
                order.append(priority[key])
    assert order == sorted(order)


def _begun(decided: Decided) -> tuple[int, int]:
    """Return how many attempts and how many verifications begin."""
    attempts = sum(isinstance(one, StartAttempt | WakeAttempt) for one in decided.decisions)
    return attempts, sum(isinstance(one, BeginVerify) for one in decided.decisions)


def _is_due(at: Any) -> bool:
    return at is None or at <= NOW
