"""A plan of any shape, driven by chance: agents succeed, fail and wait, workers die, a person interferes.

Whatever happens, the counts on the rows are what a full scan says, every move is legal and told once (the store
watches that), no task has two lives, no limit is exceeded, and in the end the plan is verified or says what it needs.
"""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.doubles import BROKEN, FAILED, PASSED, Home, planned, recount

from loopwright.core.policy.decide import ahead
from loopwright.core.policy.manual_steps import KIND
from loopwright.core.policy.order import is_met
from loopwright.core.rows.model import Attempt, CommandState, Leg, Outcome, Plan, Role, Run, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.errors import FenceLost
from loopwright.core.values.failures import Failure
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import (
    ENDED_PLAN,
    ENDED_RUN,
    LIVE_ATTEMPT,
    AttemptState,
    LoopState,
    PlanState,
    QuestionState,
    RunState,
    TaskState,
)
from loopwright.engine.rows.legs import DRIVEN
from loopwright.engine.worker.advance import JUDGED

KEYS = "abcde"
LONGEST_WAIT_MINUTES = 20
AGENT_FAILURES = (
    Failure.GATE,
    Failure.NO_CHANGE,
    Failure.AGENT_ERROR,
    Failure.CRASH,
    Failure.OVERLOADED,
    Failure.AUTH,
)


class Killed(Exception):
    """The worker's process is gone."""


class Fuse:
    """Kills the worker at the nth commit from now, before or after it."""

    def __init__(self) -> None:
        self.left: int | None = None

    def __call__(self, name: str) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise Killed(name)


@st.composite
def plans(draw: st.DrawFn) -> tuple[Any, ...]:
    """Return tasks of which each depends on earlier ones only; now and then one that cannot be started."""
    tasks = []
    for n in range(draw(st.integers(1, len(KEYS)))):
        before = draw(st.sets(st.sampled_from(KEYS[:n]), max_size=2)) if n else set()
        tasks.append(
            planned(
                KEYS[n],
                *sorted(before),
                after=tuple(sorted(draw(st.sets(st.sampled_from(KEYS), max_size=2)))),
                manual=draw(st.sampled_from([False] * 5 + [True])),
                agent=draw(st.sampled_from([None] * 9 + ["nobody"])),
                max_attempts=draw(st.sampled_from([None, 1])),
                scope=draw(st.sampled_from([(), (), ("src",)])),
                priority=draw(st.sampled_from([50, 10])),
            )
        )
    return tuple(tasks)


POLICIES = st.builds(
    Policy,
    parallel=st.integers(1, 3),
    max_attempts=st.integers(1, 2),
    max_call_retries=st.integers(0, 2),
    on_task_error=st.sampled_from(["hold", "hold", "fail"]),
    max_cost=st.sampled_from([None, None, None, 15]),
)


class PlanMachine(RuleBasedStateMachine):
    """One home with one plan."""

    @initialize(tasks=plans(), policy=POLICIES, slots=st.integers(1, 3))
    def begin(self, tasks: tuple[Any, ...], policy: Policy, slots: int) -> None:
        self.runner = asyncio.Runner()
        self.fuse = Fuse()
        self.home = Home(slots=slots, failpoint=self.fuse)
        self.do(self.home.launch())
        self.policy = policy
        self.plan_id = self.home.submit(*tasks, policy=policy).id
        self.legs: list[Leg] = []
        """What this worker drives now."""
        self.stale: list[Leg] = []
        """What a dead worker, or one that was taken over, might still try to drive."""
        self.limits = {task.key: task.max_attempts for task in self.home.all(Task)}
        self.highest: dict[str, int] = {}

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            try:
                self.play_to_the_end()
            finally:
                self.runner.close()

    def do(self, work: Any) -> Any:
        return self.runner.run(work)

    # --- the machine's side ---

    @rule(kill=st.none() | st.integers(0, 7))
    def policy_is_applied(self, kill: int | None) -> None:
        self._survive(self.home.turn(), kill)

    @rule(kill=st.none() | st.integers(0, 3))
    def rows_and_reality_are_brought_together(self, kill: int | None) -> None:
        self._survive(self.home.reconcile(), kill)

    @rule(seconds=st.sampled_from([1, 30, 600]))
    def time_passes(self, seconds: int) -> None:
        self.home.clock.advance(seconds)

    @precondition(lambda self: self.legs)
    @rule()
    def the_worker_dies(self) -> None:
        self._die()

    # --- the agents' side ---

    @precondition(lambda self: self._attempt_legs())
    @rule(data=st.data(), stages=st.integers(1, 6))
    def an_agent_goes_on(self, data: st.DataObject, stages: int) -> None:
        leg = data.draw(st.sampled_from(self._attempt_legs()))
        for _ in range(stages):
            if not self.home.hand.go_on(leg):
                self._end(leg)
                return

    @precondition(lambda self: self._attempt_legs())
    @rule(data=st.data(), failure=st.sampled_from(AGENT_FAILURES), lasted=st.sampled_from([None, 1, 600]))
    def an_agent_fails(self, data: st.DataObject, failure: Failure, lasted: int | None) -> None:
        leg = data.draw(st.sampled_from(self._attempt_legs()))
        self.home.hand.fail(leg, failure, lasted=lasted)
        self._end(leg)

    @precondition(lambda self: self._attempt_legs(AttemptState.PREPARING, AttemptState.WORKING))
    @rule(data=st.data(), minutes=st.integers(0, LONGEST_WAIT_MINUTES))
    def an_agent_waits_for_its_quota(self, data: st.DataObject, minutes: int) -> None:
        leg = data.draw(st.sampled_from(self._attempt_legs(AttemptState.PREPARING, AttemptState.WORKING)))
        if self.home.get(Attempt, leg.subject).interrupt:
            self.home.hand.go_on(leg)
        else:
            self.home.hand.park(leg, self.home.clock.now() + timedelta(minutes=minutes))
        self._end(leg)

    @precondition(lambda self: self._verify_legs())
    @rule(answer=st.sampled_from([PASSED, FAILED, BROKEN]))
    def the_gate_speaks(self, answer: Any) -> None:
        for leg in self._verify_legs():
            self.do(self.home.verify(leg, answer))
            self._end(leg)

    @precondition(lambda self: self.stale)
    @rule(data=st.data())
    def someone_who_was_taken_over_tries_to_go_on(self, data: st.DataObject) -> None:
        leg = data.draw(st.sampled_from(self.stale))
        if self._fence_of(leg.subject) == leg.fence:
            return  # nobody has taken it over yet
        before = self.home.everything()
        if leg.subject == self.plan_id:
            self.do(self.home.verify(leg, FAILED))
        else:
            for act in (self._fails, self._judges):
                with pytest.raises(FenceLost):
                    act(leg)
        assert self.home.everything() == before

    # --- the person's side ---

    @rule(verb=st.sampled_from(["pause", "resume", "resume", "stop", "reverify"]), now=st.booleans())
    def a_person_commands_the_plan(self, verb: str, now: bool) -> None:
        self.do(self.home.command(verb, self.plan_id, now=now))

    @rule(key=st.sampled_from(KEYS), verb=st.sampled_from(["retry", "retry", "cancel"]))
    def a_person_commands_a_task(self, key: str, verb: str) -> None:
        if not self.home.all(Task, key=key):
            return
        task = self.home.task(key)
        agent = "other" if task.agent == "nobody" else None
        done = self.do(self.home.command(verb, task.id, agent=agent))
        if verb == "retry" and done.state is CommandState.APPLIED:
            # As many more as it had to begin with, and never fewer than it still had.
            more = min(self.limits[key], self.policy.max_attempts)
            self.limits[key] = max(self.limits[key], task.attempts + more)

    @precondition(lambda self: self._by_hand())
    @rule(answer=st.sampled_from(["done", "skip", "failed: no"]))
    def a_person_does_a_manual_step(self, answer: str) -> None:
        self._answers(answer)

    @precondition(lambda self: self.home.clock.now().minute % 7 == 6)
    @rule()
    def a_person_cancels_everything(self) -> None:
        self.do(self.home.command("cancel", self.plan_id))

    # --- what always holds ---

    @invariant()
    def the_counts_are_what_a_scan_says(self) -> None:
        if hasattr(self, "home"):
            wrong = {name: both for name, both in recount(self.home).items() if both[0] != both[1]}
            assert wrong == {}

    @invariant()
    def no_task_has_two_lives(self) -> None:
        for task in self._tasks():
            attempts = self.home.all(Attempt, task_id=task.id, order_by=("n",))
            assert [one.n for one in attempts] == list(range(1, len(attempts) + 1))
            live = [one for one in attempts if one.state in LIVE_ATTEMPT]
            match task.status:
                case _ if task.manual:
                    assert attempts == []
                    asked = self.home.all(Question, task_id=task.id, state=QuestionState.OPEN)
                    assert len(asked) == (task.status is TaskState.AWAITING_RESPONSE)
                case TaskState.QUEUED:
                    assert [(one.id, one.state) for one in live] == [(task.attempt_id, AttemptState.QUEUED)]
                case TaskState.RUNNING:
                    assert [one.id for one in live] == [task.attempt_id]
                    assert live[0].state is not AttemptState.QUEUED
                case TaskState.CANCELLED:
                    assert len(live) <= 1
                    assert {one.interrupt for one in live} <= {"cancel"}
                case _:
                    assert live == []

    @invariant()
    def limits_hold_on_every_level(self) -> None:
        for task in self._tasks():
            rejected = self.home.all(Attempt, task_id=task.id, state=AttemptState.REJECTED)
            assert task.attempts == len(rejected) <= self.limits[task.key] == task.max_attempts
            assert task.call_failures <= self.policy.max_call_retries + 1

    @invariant()
    def no_task_starts_before_what_it_waits_for_has_landed(self) -> None:
        met = {task.id for task in self._tasks() if is_met(task)}
        for task in self._tasks():
            if task.status in (TaskState.RUNNING, TaskState.COMPLETE):
                assert met.issuperset(task.depends_on)

    @invariant()
    def there_is_room_for_everything_that_runs(self) -> None:
        if hasattr(self, "home"):
            driven = self.home.all(Attempt, state=DRIVEN)
            agents = [one for one in driven if one.state not in JUDGED]
            assert len(agents) <= self.home.slots + ahead(self.home.slots)
            assert len(driven) <= 2 * self.home.slots + ahead(self.home.slots)
            # One that is being cancelled holds its slot, but no longer its place in the plan.
            parallel = self.policy.parallel
            assert sum(one.interrupt != "cancel" for one in agents) <= parallel + ahead(parallel)
            assert sum(one.interrupt != "cancel" for one in driven) <= 2 * parallel + ahead(parallel)
            under_way = (TaskState.RUNNING, TaskState.AWAITING_RESPONSE)
            held = [task for task in self._tasks() if task.scope and not task.manual]
            assert sum(task.status in under_way for task in held) <= 1

    @invariant()
    def every_run_belongs_and_ends_with_its_attempt(self) -> None:
        if not hasattr(self, "home"):
            return
        for run in self.home.all(Run):
            assert run.plan_id == self.plan_id
            if run.role is not Role.VERIFY:
                attempt = self.home.get(Attempt, run.attempt_id)
                assert run.task_id == attempt.task_id
                assert run.state in ENDED_RUN or attempt.state in LIVE_ATTEMPT
        open_runs = [run for run in self.home.all(Run, state=RunState.RUNNING) if run.role is not Role.VERIFY]
        assert len({run.attempt_id for run in open_runs}) == len(open_runs)

    @invariant()
    def fences_only_rise(self) -> None:
        if hasattr(self, "home"):
            for attempt in self.home.all(Attempt):
                assert attempt.fence >= self.highest.get(attempt.id, 0)
                self.highest[attempt.id] = attempt.fence

    @invariant()
    def a_plan_is_only_verified_when_everything_landed(self) -> None:
        if hasattr(self, "home"):
            plan = self.home.plan()
            if plan.status in (PlanState.VERIFYING, PlanState.VERIFIED):
                assert all(map(is_met, self._tasks()))
                assert plan.completed_at is not None

    # --- the end ---

    def play_to_the_end(self) -> None:
        """From now on all goes well and a person resumes what waits for one: then nothing may be stuck."""
        home = self.home
        self.fuse.left = None
        for _ in range(200):
            home.clock.advance(LONGEST_WAIT_MINUTES * 60)
            moved = self._everything_that_can_move()
            plan, loop = home.plan(), home.loop()
            if (
                not moved
                and loop.state in (LoopState.PAUSED, LoopState.STOPPED)
                and plan.status not in ENDED_PLAN
            ):
                answer = self.do(home.command("resume", plan.id))
                if answer.state is CommandState.REFUSED:
                    # Only a person who names another limit gets it further.
                    assert plan.policy.max_cost is not None
                    assert "--max-cost" in answer.result
                    return
                moved = True
            if not moved and self._by_hand() and plan.status not in ENDED_PLAN:
                assert loop.state is LoopState.FAILED
                self._answers("done")
                moved = True
            if not moved:
                break
        else:
            raise AssertionError("it goes round and round")
        self._is_over(plan)

    def _is_over(self, plan: Plan) -> None:
        loop = self.home.loop()
        if plan.status in ENDED_PLAN:
            assert plan.outcome is not None
            assert loop.state is not LoopState.RUNNING
        else:
            assert plan.status is PlanState.RUNNING
            assert loop.state is LoopState.FAILED, "it waits for nobody and does not move"
            assert plan.reason
            assert plan.outcome is Outcome.NEEDS_HUMAN
            assert plan.failed_tasks > 0
        assert self.home.all(Attempt, state=DRIVEN) == []

    def _everything_that_can_move(self) -> bool:
        self._survive(self.home.reconcile(), None)
        self._survive(self.home.turn(), None)
        if not self.legs:
            return False
        for leg in list(self.legs):
            if leg.subject == self.plan_id:
                self.do(self.home.verify(leg))
            else:
                while self.home.hand.go_on(leg):
                    pass
            self._end(leg)
            self.look_at_everything()
        return True

    def look_at_everything(self) -> None:
        """Look at everything that always holds; at the end no rule does it any more."""
        self.the_counts_are_what_a_scan_says()
        self.no_task_has_two_lives()
        self.limits_hold_on_every_level()
        self.no_task_starts_before_what_it_waits_for_has_landed()
        self.there_is_room_for_everything_that_runs()
        self.every_run_belongs_and_ends_with_its_attempt()
        self.fences_only_rise()
        self.a_plan_is_only_verified_when_everything_landed()

    # --- small things ---

    def _survive(self, work: Any, kill: int | None) -> None:
        self.fuse.left = kill
        try:
            legs = self.do(work)
        except Killed:
            self._die()
            return
        finally:
            self.fuse.left = None
        for leg in legs:
            taken_over = [old for old in self.legs if old.subject == leg.subject]
            self.stale += taken_over
            self.legs = [old for old in self.legs if old not in taken_over] + [leg]

    def _die(self) -> None:
        """All legs are dropped in the middle; the engine of the next process knows nothing of them."""
        self.stale += self.legs
        self.legs = []
        for subject in self.do(self.home.engine.in_flight()):
            name, _, number = subject.rpartition("/")
            self.do(self.home.ended(Leg(subject=name, n=int(number), fence=0)))

    def _end(self, leg: Leg) -> None:
        self.legs = [one for one in self.legs if one != leg]
        self.stale.append(leg)
        self.do(self.home.ended(leg))

    def _attempt_legs(self, *states: AttemptState) -> list[Leg]:
        legs = [leg for leg in self.legs if leg.subject != self.plan_id]
        return [leg for leg in legs if not states or self.home.get(Attempt, leg.subject).state in states]

    def _verify_legs(self) -> list[Leg]:
        return [leg for leg in self.legs if leg.subject == self.plan_id]

    def _by_hand(self) -> list[Question]:
        return [one for one in self.home.all(Question, state=QuestionState.OPEN) if one.kind == KIND]

    def _answers(self, answer: str) -> None:
        done = self.do(self.home.command("answer", self._by_hand()[0].id, answer=answer))
        assert done.state is CommandState.APPLIED, done.result

    def _fence_of(self, subject: str) -> int:
        if subject == self.plan_id:
            return self.home.plan().verify_fence
        return self.home.get(Attempt, subject).fence

    def _fails(self, leg: Leg) -> None:
        self.home.hand.fail(leg, Failure.GATE)

    def _judges(self, leg: Leg) -> None:
        self.home.hand.judge(leg, FAILED)

    def _tasks(self) -> list[Task]:
        return self.home.all(Task) if hasattr(self, "home") else []


def walk(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        PlanMachine, settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    )


@pytest.mark.timeout(600)  # only a failure takes long: it is made as small as possible
@pytest.mark.capability("C045", "C071", "C083", "C114")
def test_any_plan_survives_agents_workers_and_people() -> None:
    walk(25, 30)


@pytest.mark.long
def test_any_plan_survives_agents_workers_and_people_for_long() -> None:
    walk(3000, 80)
