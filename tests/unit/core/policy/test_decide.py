"""The whole policy in small scenes: what starts, what waits, what is held, and when to look again."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.cases import each_case
from tests.contracts.store import rows
from tests.wording_plugin import Wording

from loopwright.core.policy.decide import (
    AskByHand,
    BeginVerify,
    Bypass,
    Decided,
    Dispatch,
    FailPlan,
    Front,
    Frontier,
    HoldPlan,
    PauseLoop,
    ResumeLoop,
    StartAttempt,
    TakeTurn,
    WakeAttempt,
    decide,
    room,
    turn_of,
)
from loopwright.core.policy.retry import LONGEST_PAUSE
from loopwright.core.rows.model import Attempt, Task
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import ENDED_PLAN, LoopState, PlanState

NOW = rows.AT
LATER = NOW + timedelta(minutes=10)
LATEST = NOW + timedelta(hours=1)
MICROS = 1_000_000


def front(
    *,
    ready: tuple[Task, ...] = (),
    working: tuple[Task, ...] = (),
    waiting: tuple[Attempt, ...] = (),
    state: LoopState = LoopState.RUNNING,
    priority: int = 5,
    **plan: Any,
) -> Front:
    loop = rows.loop(rows.project(), state=state, priority=priority)
    values = {"status": PlanState.RUNNING, "open_tasks": len(ready) + len(working) + len(waiting)} | plan
    return Front(loop=loop, plan=rows.plan(loop, **values), ready=ready, working=working, waiting=waiting)


def task(**changes: Any) -> Task:
    return rows.task(rows.plan(rows.loop(rows.project())), **changes)


def parked(**changes: Any) -> Attempt:
    return rows.attempt(task(), **changes)


def decided(*fronts: Front, slots: int = 4, busy: int = 0) -> Decided:
    """Decide on a shared home, where everything takes a slot."""
    return decide(Frontier(fronts=fronts, room=slots - busy), NOW)


def test_nothing_to_do_is_nothing_decided() -> None:
    assert decided() == Decided(decisions=(), look_again_at=None)


@each_case("status", [PlanState.DRAFT, PlanState.DISPATCHING])
def test_a_plan_that_was_accepted_or_half_dispatched_is_dispatched(status: PlanState) -> None:
    accepted = front(status=status)
    assert decided(accepted).decisions == (Dispatch(plan_id=accepted.plan.id),)


@each_case("status", [PlanState.VERIFYING, *sorted(ENDED_PLAN)])
def test_a_plan_that_is_verifying_or_over_is_left_alone(status: PlanState) -> None:
    assert decided(front(status=status, ready=(task(),))).decisions == ()


def test_ready_tasks_start_best_first_up_to_the_plans_own_limit() -> None:
    tasks = tuple(task() for _ in range(3))
    scene = front(ready=tasks, policy=Policy(parallel=2))
    assert decided(scene).decisions == tuple(StartAttempt(task_id=one.id) for one in tasks[:2])


def test_running_tasks_count_against_the_plans_limit() -> None:
    ready = (task(), task())
    scene = front(ready=ready, working=(task(),), policy=Policy(parallel=2))
    assert decided(scene, busy=1).decisions == (StartAttempt(task_id=ready[0].id),)


@each_case(
    ("slots", "working", "judged", "left"),
    [
        (2, 0, 0, 4),
        (2, 2, 0, 2),
        (2, 4, 0, 0),
        (2, 2, 2, 2),
        (2, 2, 3, 1),
        (2, 2, 4, 0),
        (8, 0, 0, 12),
    ],
    ids=[
        "free",
        "slots taken",
        "ready ahead",
        "judged beside",
        "judged piles up",
        "judged keeps off",
        "a few ahead",
    ],
)
def test_alone_in_a_home_some_are_made_ready_and_some_are_judged_beside_the_slots(
    slots: int, working: int, judged: int, left: int
) -> None:
    assert room(slots, working=working, judged=judged) == left


def test_alone_in_a_home_a_verification_takes_no_room_of_attempts() -> None:
    done, busy = front(priority=1), front(ready=(task(),), priority=2)
    also_done = front(priority=3)
    both = decide(Frontier(fronts=(done, busy, also_done), room=1, verify_room=1), NOW)
    assert both.decisions == (BeginVerify(plan_id=done.plan.id), StartAttempt(task_id=busy.ready[0].id)), (
        "and of verifications there are as many as there is room for"
    )


@pytest.mark.capability("C074")
def test_free_slots_go_to_the_most_urgent_loop_first_and_are_never_given_twice() -> None:
    patient, urgent = front(ready=(task(), task()), priority=9), front(ready=(task(),), priority=1)
    assert decided(patient, urgent, slots=2).decisions == (
        StartAttempt(task_id=urgent.ready[0].id),
        StartAttempt(task_id=patient.ready[0].id),
    )


def test_of_equally_urgent_loops_the_older_plan_goes_first() -> None:
    young = front(ready=(task(),), created_at=LATER)
    old = front(ready=(task(),), created_at=NOW)
    assert decided(young, old, slots=1).decisions == (StartAttempt(task_id=old.ready[0].id),)


def test_without_a_free_slot_nothing_starts_and_nothing_is_held() -> None:
    assert decided(front(ready=(task(),)), slots=2, busy=2) == Decided(decisions=())
    assert decided(front(ready=(task(),)), slots=1, busy=3) == Decided(decisions=())


@pytest.mark.capability("C073")
def test_tasks_that_may_write_to_the_same_paths_take_turns() -> None:
    running = task(scope=("src/api/**",))
    clashing, first, clashing_with_first = (task(scope=(s,)) for s in ("src/api/x.py", "docs", "docs/a.md"))
    scene = front(ready=(clashing, first, clashing_with_first), working=(running,), policy=Policy(parallel=9))
    assert decided(scene).decisions == (StartAttempt(task_id=first.id),)


@pytest.mark.capability("C073")
def test_what_is_parked_and_what_was_touched_outside_of_a_scope_keeps_others_off_too() -> None:
    waits = parked(wake_at=None)
    held = task(scope=("src/api",))
    strayed = task(scope=("docs",), touched=("docs/a.md", "lib/x.py"))
    into_parked, into_strayed, returning, free = (
        task(scope=("src/api/x.py",)),
        task(scope=("lib",)),
        task(touched=("docs/a.md",)),
        task(touched=("docs/b.md", "readme.md")),
    )
    ready, policy = (into_parked, into_strayed, returning, free), Policy(parallel=9)
    scene = front(ready=ready, working=(strayed,), waiting=(waits,), policy=policy)
    assert decided(replace(scene, parked=(held,))).decisions == ()
    alone = front(ready=ready, policy=policy)
    assert decided(alone).decisions == tuple(StartAttempt(task_id=one.id) for one in ready)


def test_a_task_that_waits_for_another_loop_does_not_start_and_another_one_does() -> None:
    waits, free = task(), task()
    scene = replace(front(ready=(waits, free)), asks=(waits.id,), held_up=frozenset({waits.id}))
    assert decided(scene).decisions == (
        StartAttempt(task_id=free.id),
        TakeTurn(plan_id=scene.plan.id, tasks=(waits.id,)),
    )


def test_a_plan_that_waits_for_another_loop_is_not_dispatched() -> None:
    scene = front(status=PlanState.DRAFT)
    assert decided(replace(scene, held_up=frozenset({scene.plan.id}))).decisions == ()


def test_a_task_that_backs_off_is_looked_at_again_when_it_is_due() -> None:
    scene = front(ready=(task(not_before=LATEST), task(not_before=LATER), task(not_before=NOW)))
    made = decided(scene)
    assert made.decisions == (StartAttempt(task_id=scene.ready[2].id),)
    assert made.look_again_at == LATER


def test_a_parked_attempt_wakes_when_its_time_has_come_and_goes_before_new_work() -> None:
    due, later = parked(wake_at=NOW), parked(wake_at=LATER)
    scene = front(ready=(task(),), waiting=(later, due), policy=Policy(parallel=1))
    made = decided(scene)
    assert made.decisions == (WakeAttempt(attempt_id=due.id),)
    assert made.look_again_at == LATER


@each_case("kind", ["task", "attempt", "plan"])
def test_a_pause_of_ours_is_over_when_the_clock_was_set_back_but_a_time_that_was_named_is_not(
    kind: str,
) -> None:
    """Three hours after the jump they would start otherwise: the rows were written by a clock that was ahead."""
    written = NOW + timedelta(hours=3)

    def scene(pause: timedelta) -> Front:
        until = written + pause
        return {
            "task": lambda: front(ready=(task(not_before=until, updated_at=written),)),
            "attempt": lambda: front(waiting=(parked(wake_at=until, updated_at=written),)),
            "plan": lambda: front(open_tasks=0, not_before=until, updated_at=written),
        }[kind]()

    assert decided(scene(LONGEST_PAUSE)).decisions != ()
    named = decided(scene(timedelta(hours=5)))
    assert (named.decisions, named.look_again_at) == ((), written + timedelta(hours=5))


def test_of_attempts_that_are_due_only_as_many_wake_as_there_is_room() -> None:
    scene = front(waiting=tuple(parked(wake_at=NOW) for _ in range(3)), policy=Policy(parallel=2))
    assert decided(scene).decisions == tuple(WakeAttempt(attempt_id=one.id) for one in scene.waiting[:2])


def test_an_attempt_that_a_person_parked_waits_for_a_person() -> None:
    assert decided(front(waiting=(parked(wake_at=None),))) == Decided(decisions=())


@pytest.mark.capability("C074")
def test_a_parked_attempt_does_not_take_a_slot_from_other_work() -> None:
    scene = front(ready=(task(),), waiting=(parked(wake_at=LATER),), policy=Policy(parallel=1))
    assert decided(scene, slots=1).decisions == (StartAttempt(task_id=scene.ready[0].id),)


def test_while_something_runs_an_empty_queue_means_nothing() -> None:
    assert decided(front(working=(task(),), failed_tasks=1), busy=1) == Decided(decisions=())


def test_the_last_landing_leads_to_the_verification() -> None:
    scene = front(open_tasks=0)
    assert decided(scene).decisions == (BeginVerify(plan_id=scene.plan.id),)
    assert decided(scene, slots=1, busy=1).decisions == ()


def test_a_manual_plan_waits_for_its_verification_until_you_ask_for_it() -> None:
    scene = front(open_tasks=0)
    manual = replace(scene.plan, policy=replace(scene.plan.policy, autonomy="manual"))
    (waits,) = decided(replace(scene, plan=manual)).decisions
    assert isinstance(waits, PauseLoop)
    assert "loopwright reverify" in waits.reason
    asked = replace(manual, verify_asked_at=NOW)
    assert decided(replace(scene, plan=asked)).decisions == (BeginVerify(plan_id=scene.plan.id),)


def test_a_verification_whose_gate_was_broken_waits_its_turn() -> None:
    scene = front(open_tasks=0, not_before=LATER)
    assert decided(scene) == Decided(decisions=(), look_again_at=LATER)
    assert decided(front(open_tasks=0, not_before=NOW)).decisions != ()


@each_case(
    ("failed", "held_up", "reason"),
    [
        (1, 0, "1 task needs you"),
        (2, 0, "2 tasks need you"),
        (1, 3, "1 task needs you; 3 more wait for it"),
        (2, 1, "2 tasks need you; 1 more waits for them"),
    ],
)
def test_a_plan_with_failed_tasks_is_held_and_says_for_what(failed: int, held_up: int, reason: str) -> None:
    scene = front(open_tasks=held_up, failed_tasks=failed)
    assert decided(scene).decisions == (HoldPlan(plan_id=scene.plan.id, reason=reason),)


@each_case(
    ("count", "told"),
    [(1, "1 task contradicts existing checks and waits"), (2, "2 tasks contradict existing checks and wait")],
)
def test_a_plan_of_which_only_undecided_contradictions_are_left_is_held(count: int, told: str) -> None:
    waiting = tuple(parked() for _ in range(count))
    scene = replace(front(waiting=waiting), undecided=frozenset(one.id for one in waiting))
    reason = f"{told} for your decision: `loopwright answer`"
    assert decided(scene).decisions == (HoldPlan(plan_id=scene.plan.id, reason=reason),)
    overlaps = task(scope=("src",))
    held_up = replace(scene, ready=(overlaps,), parked=(task(scope=("src",)),))
    assert decided(held_up).decisions == (HoldPlan(plan_id=scene.plan.id, reason=reason),)
    for busy in (
        replace(scene, waiting=(*waiting, parked())),
        replace(scene, working=(task(),)),
        replace(scene, judged=(task(),)),
    ):
        assert not any(isinstance(one, HoldPlan) for one in decided(busy).decisions), "something still moves"


def test_a_plan_whose_policy_says_so_fails_with_its_task() -> None:
    scene = front(failed_tasks=1, policy=Policy(on_task_error="fail"))
    assert decided(scene).decisions == (FailPlan(plan_id=scene.plan.id, reason="1 task needs you"),)


@each_case(
    ("keys", "reason"),
    [
        (["a"], "a is with a person: `loopwright take-over a --done` continues"),
        (list("abcdefg"), "a, b, c, d, e are with a person: `loopwright take-over a --done` continues"),
    ],
)
def test_a_plan_of_which_only_what_people_took_over_is_left_waits_for_them(
    keys: list[str], reason: str
) -> None:
    scene = replace(front(open_tasks=len(keys)), taken=tuple(task(key=one) for one in keys))
    assert decided(scene).decisions == (HoldPlan(plan_id=scene.plan.id, reason=reason),)


def test_open_tasks_of_which_none_can_ever_start_are_said_and_not_waited_for() -> None:
    scene = front(open_tasks=2)
    assert decided(scene).decisions == (
        HoldPlan(plan_id=scene.plan.id, reason="2 tasks are open and none of them can start"),
    )


@each_case("state", sorted(set(LoopState) - {LoopState.RUNNING}))
def test_nothing_happens_in_a_loop_that_does_not_run(state: LoopState) -> None:
    busy = front(ready=(task(not_before=LATER),), waiting=(parked(wake_at=LATER),), state=state)
    assert decided(busy, front(status=PlanState.DRAFT, state=state)) == Decided(decisions=())


@each_case("state", sorted(set(LoopState) - {LoopState.RUNNING}))
def test_a_pause_with_an_end_is_over_then_and_not_before(state: LoopState) -> None:
    def at(moment: datetime) -> Decided:
        paused = front(ready=(task(),), state=state)
        return decided(replace(paused, loop=replace(paused.loop, resume_at=moment)))

    is_paused = state is LoopState.PAUSED
    assert at(LATER) == Decided(decisions=(), look_again_at=LATER if is_paused else None)
    assert [type(one) for one in at(NOW).decisions] == [ResumeLoop] * is_paused


@pytest.mark.capability("C075")
def test_a_loop_whose_budget_is_used_up_is_paused_before_the_next_start(wording: Wording) -> None:
    policy = Policy(max_cost=2 * MICROS)
    spent = front(ready=(task(),), policy=policy, spent_micros=2 * MICROS)
    (pause,) = decided(spent).decisions
    assert isinstance(pause, PauseLoop)
    assert pause.loop_id == spent.loop.id
    assert pause.over is not None
    wording(pause.over.why)
    assert pause.reason == pause.over.reason(spent.plan.id)
    parked_only = front(waiting=(parked(wake_at=NOW),), policy=policy, spent_micros=3 * MICROS)
    assert isinstance(decided(parked_only).decisions[0], PauseLoop)


def test_below_its_budget_a_plan_goes_on() -> None:
    scene = front(ready=(task(),), policy=Policy(max_cost=MICROS), spent_micros=MICROS - 1)
    assert isinstance(decided(scene).decisions[0], StartAttempt)


def test_a_budget_that_cannot_be_counted_pauses_the_loop_and_says_so(wording: Wording) -> None:
    scene = front(ready=(task(),), policy=Policy(max_cost=MICROS), unknown_costs=1)
    made = decided(scene).decisions[0]
    assert isinstance(made, PauseLoop)
    wording(made.reason)


def test_a_used_up_budget_stops_neither_what_runs_nor_the_verification() -> None:
    policy = Policy(max_cost=MICROS)
    assert decided(front(working=(task(),), policy=policy, spent_micros=MICROS), busy=1).decisions == ()
    done = front(open_tasks=0, policy=policy, spent_micros=MICROS)
    assert decided(done).decisions == (BeginVerify(plan_id=done.plan.id),)


def test_a_used_up_budget_does_not_hold_back_work_that_a_person_accepted() -> None:
    policy = Policy(max_cost=MICROS)
    accepted, other = parked(wake_at=NOW), parked(wake_at=NOW)
    scene = replace(
        front(ready=(task(),), waiting=(other, accepted), policy=policy, spent_micros=MICROS),
        decided=frozenset({accepted.id}),
    )
    assert decided(scene).decisions == (WakeAttempt(attempt_id=accepted.id),)
    assert decided(scene, busy=4).decisions == ()
    assert isinstance(decided(replace(scene, waiting=(other,))).decisions[0], PauseLoop)


def test_attempts_stand_in_line_by_loop_plan_priority_and_position() -> None:
    loop = rows.loop(rows.project())
    plan = rows.plan(loop, policy=Policy(parallel=2))
    first, second = (rows.task(plan, position=n, priority=5) for n in (1, 2))
    urgent = rows.task(plan, position=3, priority=1)
    turns = [turn_of(loop, plan, one) for one in (second, urgent, first)]
    assert [turn.rank[-2] for turn in sorted(turns, key=lambda one: one.rank)] == [3, 1, 2]
    assert (turns[0].plan_id, turns[0].parallel) == (plan.id, 2)


def test_a_manual_step_is_asked_before_anything_starts_and_holds_the_plan_when_nothing_else_moves(
    wording: Wording,
) -> None:
    step = task(key="look", manual=True)
    asking = replace(front(ready=(task(),)), manual=(step,))
    assert decided(asking).decisions == (AskByHand(task_id=step.id),)
    waiting = replace(front(open_tasks=1), by_hand=(step,))
    [held] = decided(waiting).decisions
    assert isinstance(held, HoldPlan)
    wording(held.reason)
    both = replace(front(open_tasks=2, failed_tasks=1), by_hand=(step, step))
    [held] = decided(both).decisions
    assert isinstance(held, HoldPlan)
    wording(held.reason)
    failing = replace(
        front(open_tasks=1, failed_tasks=2, policy=Policy(on_task_error="fail")), by_hand=(step,)
    )
    [failed] = decided(failing).decisions
    assert isinstance(failed, FailPlan)


def test_what_waits_only_for_failed_tasks_is_tried_without_them_before_the_plan_is_held() -> None:
    blocked = task(unmet=1)
    scene = replace(front(open_tasks=1, failed_tasks=1), blocked=(blocked,))
    assert decided(scene).decisions == (Bypass(task_id=blocked.id),)
