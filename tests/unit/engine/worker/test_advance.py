"""Applying policy: dispatch, starts, wakes, verification and holds, each with its rows and its events."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.cases import each_case
from tests.doubles import BROKEN, FAILED, GATE, Home, planned, recount
from tests.wording_plugin import Wording

from loopwright.core.replies.questions import Asking
from loopwright.core.rows.model import Attempt, Loop, Outcome, Plan, Role, Run, Task, Worker
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.errors import GitFailed
from loopwright.core.values.failures import Failure
from loopwright.core.values.policy import GateCommand, Policy
from loopwright.core.values.states import AttemptState, LoopState, PlanState, RunState, TaskState
from loopwright.engine.views.views import plan_view

UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
PLAN_EVENTS = (
    "plan_created",
    "plan_dispatching",
    "plan_dispatched",
    "plan_completed",
    "plan_verifying",
    "plan_verified",
    "plan_failed",
)


# --- dispatch ----------------------------------------------------------------------------------------


@pytest.mark.capability("C071")
async def test_dispatch_gives_every_task_its_first_attempt_and_queued_run_whatever_it_waits_for() -> None:
    home = await Home(slots=1).launch()
    home.submit(planned("a"), planned("b", "a"), planned("c", "b", agent="other", model="small"))
    await home.turn()
    for key in "abc":
        task = home.task(key)
        [attempt] = home.all(Attempt, task_id=task.id)
        [run] = home.all(Run, task_id=task.id)
        assert (attempt.id, attempt.n, attempt.run_id) == (task.attempt_id, 1, run.id)
        assert (run.role, run.state) == (Role.IMPLEMENTER, RunState.QUEUED)
    assert (home.attempt("c").agent, home.attempt("c").model) == ("other", "small")
    assert home.plan().status is PlanState.RUNNING


@pytest.mark.capability("C071")
async def test_independent_tasks_start_side_by_side_and_dependents_wait() -> None:
    home = await Home(slots=4).launch()
    home.submit(planned("a"), planned("b"), planned("c", "a", "b"), policy=Policy(parallel=4))
    legs = await home.turn()
    assert {leg.subject for leg in legs} == {home.attempt("a").id, home.attempt("b").id}
    home.hand.land(legs[0])
    assert await home.turn() == []
    home.hand.land(legs[1])
    [leg] = await home.turn()
    assert leg.subject == home.attempt("c").id


async def test_what_is_parked_or_restarted_goes_on_in_the_order_of_its_tasks_not_of_its_ids() -> None:
    home = await Home(slots=3).launch()
    ranks = {"c": 90, "a": 10, "b": 50}
    home.submit(*(planned(key, priority=n) for key, n in ranks.items()), policy=Policy(parallel=3))
    legs = {leg.subject: leg for leg in await home.turn()}
    assert list(legs) == [home.attempt(key).id for key in "abc"]
    turns = [leg.turn for leg in legs.values() if leg.turn]
    assert turns == sorted(turns, key=lambda one: one.rank)
    for leg in legs.values():
        home.hand.park(leg, home.clock.now())
        await home.ended(leg)
    woken = await home.turn()
    assert [leg.subject for leg in woken] == list(legs)
    assert [leg.turn for leg in woken] == turns
    for leg in woken:
        await home.ended(leg)
    assert {leg.subject: leg.turn for leg in await home.reconcile()} == dict(zip(legs, turns, strict=True))


async def test_of_two_tasks_with_one_position_the_older_starts_first() -> None:
    """The machine adds a task behind the last one, and a person then adds an item there."""
    home = await Home(slots=1).launch()
    home.submit(planned("a"), planned("b"), policy=Policy(parallel=1))
    older = home.task("b")
    home.store.transact_sync(
        "moved",
        lambda tx: tx.update(
            Task, home.task("a").id, position=older.position, created_at=older.created_at + timedelta(1)
        ),
    )
    assert [leg.subject for leg in await home.turn()][:1] == [home.attempt("b").id]


@pytest.mark.capability("C072")
async def test_a_run_that_cannot_be_created_fails_its_task_and_nothing_else(wording: Wording) -> None:
    home = await Home().launch()
    home.submit(planned("a"), planned("bad", agent="nobody"), planned("c"), planned("d", "bad"))
    legs = await home.turn()
    bad = home.task("bad")
    assert (bad.status, bad.failure, bad.outcome) == (
        TaskState.ERROR,
        Failure.CANNOT_START,
        Outcome.NEEDS_HUMAN,
    )
    wording(bad.reason)
    [attempt] = home.all(Attempt, task_id=bad.id)
    [run] = home.all(Run, attempt_id=attempt.id)
    assert (attempt.state, run.state, run.summary) == (AttemptState.BROKEN, RunState.ERROR, bad.reason)
    assert home.plan().status is PlanState.RUNNING
    assert {leg.subject for leg in legs} == {home.attempt("a").id, home.attempt("c").id}
    for leg in legs:
        home.hand.land(leg)
    await home.turn()
    assert home.plan().status is PlanState.RUNNING
    wording(home.plan().reason)
    assert all(counted == kept for counted, kept in recount(home).values())


async def test_a_plan_of_which_no_run_can_be_created_is_held() -> None:
    home = await Home().launch()
    home.submit(planned("a", agent="nobody"))
    assert await home.turn() == []
    assert (home.plan().status, home.plan().outcome) == (PlanState.RUNNING, Outcome.NEEDS_HUMAN)
    assert home.loop().state is LoopState.FAILED


async def test_a_plan_branch_that_cannot_be_made_pauses_the_loop_with_gits_words_until_it_is_mended(
    wording: Wording,
) -> None:
    home = await Home().launch()
    home.repository.broken = GitFailed("cannot lock ref")
    home.submit(planned("a"))
    assert await home.turn() == []
    assert home.plan().status is PlanState.DRAFT
    assert home.loop().state is LoopState.PAUSED
    wording(home.loop().reason)
    assert home.told("loop_paused", "plan_dispatching") == ["loop_paused"]
    home.repository.broken = None
    await home.command("resume", home.plan().id)
    assert len(await home.turn()) == 1


class Killed(Exception):
    """The process is gone."""


@pytest.mark.capability("C051")
@each_case("nth", range(1, 13))
async def test_a_dispatch_that_is_killed_at_any_commit_is_carried_on_from_there(nth: int) -> None:
    """More than one batch, and a kill right before and right after each transaction."""
    reached = 0

    def failpoint(name: str) -> None:
        nonlocal reached
        if not name.startswith("store.submit"):
            reached += 1
            if reached == nth:
                raise Killed(name)

    home = await Home(slots=1, failpoint=failpoint).launch()
    home.submit(*(planned(str(n)) for n in range(201)))
    with pytest.raises(Killed):
        await home.turn()
    legs = [*await home.turn(), *await home.reconcile()]
    assert len(legs) == 2, "one to work, one to be made ready"
    assert home.told("plan_dispatching", "plan_dispatched") == ["plan_dispatching", "plan_dispatched"]
    assert len(home.told("task_queued")) == 201
    assert len(home.all(Attempt)) == len(home.all(Run)) == 201
    assert {one.n for one in home.all(Attempt)} == {1}


# --- starting and waking -----------------------------------------------------------------------------


async def test_starting_commits_the_first_leg_with_its_fence_and_says_so() -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    attempt = home.attempt("a")
    assert (leg.subject, leg.n, leg.fence) == (attempt.id, 1, 1)
    assert (attempt.state, attempt.leg, attempt.fence) == (AttemptState.PREPARING, 1, 1)
    assert home.task("a").status is TaskState.RUNNING
    [told] = home.events("attempt_leg_started")
    assert (told.attempt, told.payload) == (attempt.id, {"leg": 1, "fence": 1})


async def test_an_idle_home_is_never_locked_for_writing() -> None:
    written: list[str] = []
    home = await Home(failpoint=written.append).launch()
    home.submit(planned("a"))
    await home.turn()
    written.clear()
    assert await home.turn() == []
    assert written == []


async def test_a_parked_attempt_gets_a_new_run_in_its_old_place_when_its_time_has_come() -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    first = home.attempt("a").run_id
    home.hand.park(leg, home.clock.now() + timedelta(minutes=5))
    assert await home.turn() == []
    home.clock.advance(300)
    [second] = await home.turn()
    attempt = home.attempt("a")
    assert (second.subject, second.n, second.fence) == (leg.subject, 2, 2)
    assert second.host_id == "host-a"  # the workspace is there
    assert attempt.state is AttemptState.WORKING
    assert (attempt.wake_at, attempt.wait_reason) == (None, "")
    assert attempt.run_id != first
    assert [run.state for run in home.all(Run, order_by=("created_at",))] == [RunState.ERROR, RunState.QUEUED]
    assert home.hand.land(second).status is TaskState.COMPLETE


async def test_a_task_that_backs_off_starts_again_when_it_is_due() -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    task = home.hand.fail(leg, Failure.OVERLOADED)
    assert task.not_before == home.clock.now() + timedelta(seconds=5)
    assert await home.turn() == []
    home.clock.advance(5)
    [again] = await home.turn()
    assert again.subject != leg.subject
    assert home.task("a").not_before is None


@pytest.mark.capability("C074")
async def test_slots_of_all_living_workers_are_shared_and_never_exceeded() -> None:
    """A leased home counts the slots of every worker whose lease stands."""
    home = await Home(exclusive=False).launch()
    now = home.clock.now()
    worker = Worker(
        id="worker_1",
        host_id="h",
        boot_id="b",
        pid=1,
        hostname="h",
        slots=2,
        version="0",
        started_at=now,
        lease_until=now + timedelta(seconds=15),
    )
    for row in (worker, replace(worker, id="worker_2", slots=1), replace(worker, id="dead", lease_until=now)):
        home.store.transact_sync("join", lambda tx, row=row: tx.insert(row))
    home.submit(*(planned(str(n)) for n in range(9)), policy=Policy(parallel=9))
    assert len(await home.turn()) == 3


async def test_some_are_made_ready_while_all_slots_are_taken_and_some_may_wait_to_be_judged() -> None:
    home = await Home(slots=2).launch()
    home.submit(*(planned(key) for key in "abcdefghij"), policy=Policy(parallel=2))
    first = await home.turn()
    assert len(first) == 4, "two to work, two to be made ready"
    assert await home.turn() == []
    for leg in first[:2]:
        home.hand.until(leg, AttemptState.CHECKING)
    assert len(await home.turn()) == 2
    for leg in first[2:]:
        home.hand.until(leg, AttemptState.CHECKING)
    assert await home.turn() == [], "what waits to be judged does not pile up"
    home.hand.land(first[0])
    assert len(await home.turn()) == 1


async def test_no_more_than_four_are_made_ready() -> None:
    home = await Home(slots=20).launch()
    home.submit(*(planned(str(n)) for n in range(60)), policy=Policy(parallel=20))
    assert len(await home.turn()) == 24


async def test_work_that_is_being_judged_keeps_others_off_its_scope() -> None:
    home = await Home(slots=2).launch()
    home.submit(planned("a", scope=("src/**",)), planned("b", scope=("src/x.py",)), policy=Policy(parallel=2))
    [leg] = await home.turn()
    home.hand.until(leg, AttemptState.CHECKING)
    assert await home.turn() == []
    home.hand.land(leg)
    assert len(await home.turn()) == 1


async def test_work_that_waits_for_an_answer_keeps_others_off_its_scope(wording: Wording) -> None:
    home = await Home(slots=2).launch()
    home.submit(planned("a", scope=("src/**",)), planned("b", scope=("src/x.py",)), policy=Policy(parallel=2))
    [leg] = await home.turn()
    home.hand.ask(leg, Asking(kind="question", text="which one?"))
    assert await home.turn() == []
    view = home.store.read_sync(lambda tx: plan_view(tx, home.plan().id, home.world.paths))
    wording(view.tasks[1].doing)


async def test_on_a_shared_home_judging_takes_a_slot_like_all_else() -> None:
    home = await Home(exclusive=False, slots=1).launch()
    lease_until = home.clock.now() + timedelta(hours=1)
    me = home.world.me
    home.store.transact_sync(
        "join",
        lambda tx: tx.insert(
            Worker(
                id=home.ids("worker"),
                host_id=me.host_id,
                boot_id=me.boot_id,
                pid=1,
                hostname=me.hostname,
                slots=1,
                version="0",
                started_at=home.clock.now(),
                lease_until=lease_until,
            )
        ),
    )
    home.submit(planned("a"), planned("b"), policy=Policy(parallel=2))
    [leg] = await home.turn()
    home.hand.until(leg, AttemptState.CHECKING)
    assert await home.turn() == []


@pytest.mark.capability("C074")
async def test_the_attempts_of_a_paused_loop_hold_their_slots_until_they_have_ended() -> None:
    home = await Home(slots=2).launch()
    paused = home.submit(*(planned(key) for key in "abcd"), source_path="one.yaml")
    legs = await home.turn()
    await home.command("pause", paused.id)
    home.submit(planned("e"), planned("f"), source_path="two.yaml")
    assert await home.turn() == []
    home.hand.land(legs[0])
    assert len(await home.turn()) == 1


async def test_an_attempt_that_was_stopped_between_two_stages_holds_no_slot() -> None:
    home = await Home(slots=1).launch()
    stopped = home.submit(planned("a"), source_path="one.yaml")
    [leg] = await home.turn()
    await home.command("pause", stopped.id, now=True)
    home.hand.go_on(leg)
    assert home.attempt("a").state is AttemptState.PREPARING
    home.submit(planned("b"), source_path="two.yaml")
    assert len(await home.turn()) == 1


async def test_a_verification_needs_no_agent_but_keeps_others_waiting_even_in_a_paused_loop() -> None:
    home = await Home(slots=1).launch()
    verifying = home.submit(planned("a"), source_path="one.yaml")
    [leg] = await home.turn()
    home.hand.land(leg)
    [verify] = await home.turn()
    await home.command("pause", verifying.id)
    other = home.submit(planned("b"), source_path="two.yaml")
    [leg] = await home.turn()
    home.hand.land(leg)
    assert await home.turn() == []
    await home.verify(verify)
    [leg] = await home.turn()
    assert leg.subject == other.id


async def test_a_verification_waits_for_no_agent() -> None:
    home = await Home(slots=1).launch()
    done = home.submit(planned("a"), source_path="one.yaml")
    [leg] = await home.turn()
    home.submit(*(planned(str(n)) for n in range(9)), source_path="two.yaml")
    await home.turn()
    home.hand.land(leg)
    assert done.id in {one.subject for one in await home.turn()}


@pytest.mark.capability("C075")
async def test_a_plan_that_has_spent_its_budget_pauses_its_loop_and_says_why(wording: Wording) -> None:
    home = await Home(slots=1).launch()
    home.submit(planned("a"), planned("b"), planned("c"), policy=Policy(max_cost=10))
    leg, _ = await home.turn()
    home.hand.land(leg)
    assert home.plan().spent_micros == 10
    assert await home.turn() == []
    assert home.loop().state is LoopState.PAUSED
    wording(home.loop().reason)
    wording([one.text for one in home.all(Question)])


# --- the end of a plan -------------------------------------------------------------------------------


@pytest.mark.capability("C114")
async def test_each_step_of_a_plan_is_told_exactly_once() -> None:
    home = await Home().launch()
    home.submit(planned("a"), planned("b", "a"))
    while legs := await home.turn():
        for leg in legs:
            if leg.subject == home.plan().id:
                await home.verify(leg)
            else:
                home.hand.land(leg)
    assert home.told(*PLAN_EVENTS) == list(PLAN_EVENTS[:-1])
    assert {event.plan for event in home.events(*PLAN_EVENTS)} == {home.plan().id}
    assert home.loop().state is LoopState.COMPLETED


@pytest.mark.capability("C052")
async def test_ids_tell_their_kind_and_each_time_is_set_once_at_its_step() -> None:
    home = await Home().launch()
    plan_id = home.submit(planned("a")).id
    seen: list[tuple[str, Plan]] = []

    def look(step: str) -> None:
        seen.append((step, home.plan()))
        home.clock.advance(60)

    look("created")
    [leg] = await home.turn()
    look("dispatched")
    home.hand.land(leg)
    look("completed")
    [verify] = await home.turn()
    look("verifying")
    await home.verify(verify)
    look("verified")
    start = seen[0][1].created_at
    after = {step: start + timedelta(minutes=n) for n, (step, _) in enumerate(seen)}
    times = {step: (plan.executed_at, plan.completed_at, plan.verified_at) for step, plan in seen}
    executed, completed, verified = after["dispatched"], after["completed"], after["verified"]
    assert times == {
        "created": (None, None, None),
        "dispatched": (executed, None, None),
        "completed": (executed, completed, None),
        "verifying": (executed, completed, None),
        "verified": (executed, completed, verified),
    }
    assert {plan.created_at for _, plan in seen} == {start}
    assert seen[-1][1].updated_at == verified
    assert re.fullmatch(f"plan_{UUID}", plan_id)
    assert all(re.fullmatch(f"ptask_{UUID}", task.id) for task in home.all(Task))
    assert all(re.fullmatch(f"run_{UUID}", run.id) for run in home.all(Run))
    assert all(re.fullmatch(f"att_{UUID}", attempt.id) for attempt in home.all(Attempt))


@pytest.mark.capability("C116", "C080")
async def test_every_run_names_its_plan_and_task_and_the_plan_names_the_run_that_verified_it() -> None:
    home = await Home().launch()
    plan = home.submit(planned("a"), planned("b"))
    for leg in await home.turn():
        home.hand.land(leg)
    [leg] = await home.turn()
    await home.verify(leg)
    for task in home.all(Task):
        [run] = home.all(Run, task_id=task.id)
        assert (run.plan_id, run.attempt_id) == (plan.id, task.attempt_id)
    verify = home.get(Run, home.plan().verify_run_id)
    assert (verify.plan_id, verify.task_id, verify.role) == (plan.id, None, Role.VERIFY)
    assert verify.label == f"verify_{plan.id}"
    assert verify.state is RunState.COMPLETE
    [judged] = home.events("gate_judged")
    assert judged.run == verify.id


@pytest.mark.capability("C079")
async def test_the_verification_runs_the_plans_gates_and_then_every_acceptance_again() -> None:
    home = await Home().launch()
    own = GateCommand(name="own", command="pytest own")
    home.submit(planned("a", acceptance=(own, GATE)), policy=Policy(setup="make deps"))
    [leg] = await home.turn()
    home.hand.land(leg)
    [leg] = await home.turn()
    await home.verify(leg)
    assert [[command.name for command in asked] for asked in home.gate.asked] == [["setup", "tests", "own"]]


@pytest.mark.capability("C082")
async def test_a_failed_verification_is_recorded_and_never_run_again_by_the_machine() -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    home.hand.land(leg)
    [leg] = await home.turn()
    await home.verify(leg, FAILED)
    plan = home.plan()
    assert (plan.status, plan.outcome, plan.verdict) == (PlanState.FAILED, Outcome.NOT_VERIFIED, FAILED)
    assert (plan.reason, plan.result_sha) == ("1 of 1 checks failed", "1" * 40)
    assert home.loop().state is LoopState.FAILED
    home.clock.advance(24 * 3600)
    assert [*await home.turn(), *await home.reconcile(), *await home.turn()] == []
    assert len(home.gate.asked) == 1
    assert home.told("plan_failed") == ["plan_failed"]


async def test_a_gate_that_could_not_run_is_asked_again_later_a_bounded_number_of_times(
    wording: Wording,
) -> None:
    home = await Home().launch()
    home.submit(planned("a"), policy=Policy(max_call_retries=2))
    [leg] = await home.turn()
    home.hand.land(leg)
    pauses = []
    for _ in range(2):
        [leg] = await home.turn()
        await home.verify(leg, BROKEN)
        assert home.plan().status is PlanState.RUNNING
        assert await home.turn() == []
        due = home.plan().not_before
        assert due is not None
        pauses.append((due - home.clock.now()).total_seconds())
        home.clock.advance(pauses[-1])
    assert pauses == [1, 2]
    [leg] = await home.turn()
    await home.verify(leg, BROKEN)
    assert home.plan().status is PlanState.FAILED
    wording(home.plan().reason)
    home.clock.advance(3600)
    assert [*await home.turn(), *await home.reconcile()] == []


async def test_a_gate_that_cannot_run_before_a_person_mends_something_pauses_the_loop(
    wording: Wording,
) -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    home.hand.land(leg)
    [leg] = await home.turn()
    await home.verify(leg, replace(BROKEN, lasting=True))
    assert home.plan().status is PlanState.RUNNING
    assert home.plan().call_failures == 0
    [loop] = home.store.read_sync(lambda tx: tx.find(Loop))
    assert loop.state is LoopState.PAUSED
    wording(loop.reason)


async def test_a_plan_that_is_held_says_so_once_and_stays_open() -> None:
    home = await Home().launch()
    home.submit(planned("a"), planned("b", "a"))
    [leg] = await home.turn()
    home.hand.fail(leg, Failure.AUTH)
    for _ in range(3):
        assert await home.turn() == []
    plan, loop = home.plan(), home.loop()
    assert (plan.status, plan.outcome) == (PlanState.RUNNING, Outcome.NEEDS_HUMAN)
    assert plan.reason == loop.reason == "1 task needs you; 1 more waits for it"
    assert loop.state is LoopState.FAILED
    [held] = home.events("plan_held")
    assert (held.plan, held.payload) == (plan.id, {"reason": plan.reason})


async def test_a_plan_whose_policy_says_so_fails_with_its_task() -> None:
    home = await Home().launch()
    home.submit(planned("a"), planned("b"), policy=Policy(on_task_error="fail"))
    first, second = await home.turn()
    home.hand.fail(first, Failure.AUTH)
    assert await home.turn() == []
    assert home.plan().status is PlanState.RUNNING  # what runs may finish
    home.hand.land(second)
    await home.turn()
    assert (home.plan().status, home.loop().state) == (PlanState.FAILED, LoopState.FAILED)


# --- attempts ----------------------------------------------------------------------------------------


@pytest.mark.capability("C083")
@pytest.mark.trap("counted twice")
async def test_the_attempt_limit_is_kept_with_the_task_and_holds() -> None:
    home = await Home().launch()
    home.submit(planned("a"), planned("own", max_attempts=1), policy=Policy(max_attempts=2))
    assert {task.key: task.max_attempts for task in home.all(Task)} == {"a": 2, "own": 1}
    first, own = await home.turn()
    assert home.hand.fail(own, Failure.GATE).status is TaskState.ERROR
    again = home.hand.fail(first, Failure.GATE, "pytest failed")
    assert (again.status, again.attempts, again.failure) == (TaskState.QUEUED, 1, Failure.GATE)
    [second] = await home.turn()
    assert home.attempt("a").n == 2
    assert home.attempt("a").evidence == "evidence of: pytest failed"
    over = home.hand.fail(second, Failure.NO_CHANGE)
    assert (over.status, over.attempts) == (TaskState.ERROR, 2)
    assert "2 of 2 attempts failed" in over.reason
    assert await home.turn() == []


async def test_a_machine_fault_uses_up_no_attempt_and_hands_the_earlier_evidence_on() -> None:
    home = await Home().launch()
    home.submit(planned("a"), policy=Policy(max_attempts=2))
    [leg] = await home.turn()
    home.hand.fail(leg, Failure.GATE, "pytest failed")
    [leg] = await home.turn()
    after = home.hand.fail(leg, Failure.CRASH, "gone")
    assert (after.attempts, after.call_failures) == (1, 1)
    assert [one.state for one in home.all(Attempt, order_by=("n",))] == [
        AttemptState.REJECTED,
        AttemptState.BROKEN,
        AttemptState.QUEUED,
    ]
    assert home.attempt("a").evidence == "evidence of: pytest failed"


async def test_an_agent_that_cannot_even_start_twice_is_not_started_a_third_time() -> None:
    home = await Home().launch()
    home.submit(planned("a"), policy=Policy(max_attempts=9))
    [leg] = await home.turn()
    home.hand.fail(leg, Failure.AGENT_ERROR, "no such model", lasted=1)
    [leg] = await home.turn()
    assert home.hand.fail(leg, Failure.AGENT_ERROR, "no such model", lasted=1).status is TaskState.ERROR


async def test_an_attempt_that_is_over_has_no_run_that_is_not() -> None:
    home = await Home(slots=2).launch()
    home.submit(planned("a"), planned("b"))
    first, second = await home.turn()
    home.hand.until(first, AttemptState.WORKING)
    home.hand.go_on(first)
    home.hand.fail(first, Failure.HOST_LOST)
    home.hand.fail(second, Failure.SETUP)
    ended = [run for run in home.all(Run) if run.attempt_id in (first.subject, second.subject)]
    assert {(run.state, run.ended_by) for run in ended} == {
        (RunState.ERROR, "lost"),
        (RunState.ERROR, "not_started"),
    }
    assert home.plan().unknown_costs == 1  # only the one that was started can have cost something
