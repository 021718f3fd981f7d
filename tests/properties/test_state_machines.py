"""Random walks over the state tables: whatever is tried, a thing stays inside its table and can get to an end."""

from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from loopwright.core.values.errors import IllegalTransition
from loopwright.core.values.round_states import ControllerStage, RoundStage, UpdateStatus
from loopwright.core.values.states import (
    ATTEMPT,
    ENDED_PLAN,
    ENDED_RUN,
    LIVE_ATTEMPT,
    LOOP,
    MACHINES,
    OPEN_FINISH,
    SETTLED_TASK,
    ActionState,
    AttemptState,
    DiscoveryState,
    EnvelopeState,
    FinishState,
    HealingState,
    HoldState,
    LessonState,
    LoopState,
    PlanState,
    QuestionState,
    ReviewState,
    RunState,
    TaskState,
    step,
)

ENDS: dict[str, frozenset[Any]] = {
    "loop": frozenset({LoopState.STOPPED, LoopState.COMPLETED, LoopState.FAILED}),
    "plan": ENDED_PLAN,
    "task": SETTLED_TASK,
    "attempt": frozenset(AttemptState) - LIVE_ATTEMPT,
    "run": ENDED_RUN,
    "question": frozenset(QuestionState) - {QuestionState.OPEN},
    "discovery": frozenset({DiscoveryState.ACCEPTED, DiscoveryState.DISMISSED}),
    "envelope": frozenset({EnvelopeState.OPEN}),
    "review": frozenset(ReviewState) - {ReviewState.ASKED},
    "healing": frozenset(HealingState) - {HealingState.TRYING},
    "hold": frozenset({HoldState.HELD, HoldState.REFUSED}),
    "action": frozenset({ActionState.REFUSED, ActionState.UNDONE}),
    "lesson": frozenset({LessonState.REMOVED}),
    "finish": frozenset(FinishState) - OPEN_FINISH,
    "controller": frozenset({ControllerStage.DONE}),
    "round": frozenset({RoundStage.DONE}),
    "update": frozenset({UpdateStatus.APPROVED}),
}
# Moves out of an end are a person's: without them every walk of the machine alone is over.
FINAL: dict[str, frozenset[Any]] = {
    name: frozenset(state for state, targets in table.items() if not targets)
    for name, table in MACHINES.items()
}


def reachable(machine: str, start: StrEnum) -> set[StrEnum]:
    """Return every state that can be reached from `start`, itself included."""
    seen: set[StrEnum] = set()
    todo = [start]
    while todo:
        state = todo.pop()
        if state not in seen:
            seen.add(state)
            todo += MACHINES[machine][state]
    return seen


class Walk(RuleBasedStateMachine):
    """One thing of any kind, asked for legal and illegal moves alike."""

    machine: str
    state: StrEnum
    path: list[StrEnum]

    @initialize(machine=st.sampled_from(sorted(MACHINES)))
    def begin(self, machine: str) -> None:
        self.machine = machine
        self.state = next(iter(MACHINES[machine]))
        self.path = [self.state]

    @rule(data=st.data())
    def ask_for_any_state(self, data: st.DataObject) -> None:
        """A target drawn blindly is taken exactly when it is in the row; a refusal changes nothing."""
        table = MACHINES[self.machine]
        target = data.draw(st.sampled_from(sorted(table)))
        if target not in table[self.state]:
            with pytest.raises(IllegalTransition) as refused:
                step(self.machine, table, "x", self.state, target)
            assert (refused.value.source, refused.value.target) == (self.state.value, target.value)
            return
        self.state = step(self.machine, table, "x", self.state, target)
        self.path.append(self.state)

    @precondition(lambda self: MACHINES[self.machine][self.state])
    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        """A target from the row is always taken."""
        table = MACHINES[self.machine]
        self.state = step(
            self.machine, table, "x", self.state, data.draw(st.sampled_from(sorted(table[self.state])))
        )
        self.path.append(self.state)

    @invariant()
    def the_path_lies_in_the_table(self) -> None:
        table = MACHINES[self.machine]
        assert self.state in table
        assert all(after in table[before] for before, after in zip(self.path, self.path[1:], strict=False))

    @invariant()
    def an_end_can_be_reached_from_here(self) -> None:
        assert reachable(self.machine, self.state) & ENDS[self.machine]

    @invariant()
    def a_final_state_was_the_last_move(self) -> None:
        assert not FINAL[self.machine] & set(self.path[:-1])

    @invariant()
    def nothing_lands_or_is_verified_unchecked(self) -> None:
        """Before an attempt landed it was checked; before a plan was verified it was verifying."""
        for before, after in zip(self.path, self.path[1:], strict=False):
            if after is AttemptState.LANDED:
                assert AttemptState.CHECKING in self.path[: self.path.index(AttemptState.LANDED)]
            if after is PlanState.VERIFIED:
                assert before is PlanState.VERIFYING


@pytest.mark.capability("C045")
def test_random_walks_never_leave_the_tables() -> None:
    run_state_machine_as_test(Walk, settings=settings(max_examples=60, stateful_step_count=20, deadline=None))


@pytest.mark.long
def test_long_random_walks_never_leave_the_tables() -> None:
    run_state_machine_as_test(
        Walk, settings=settings(max_examples=500, stateful_step_count=60, deadline=None)
    )


@given(state=st.sampled_from(sorted(LIVE_ATTEMPT)))
def test_every_live_attempt_can_still_land_or_be_given_up(state: AttemptState) -> None:
    assert {AttemptState.LANDED, AttemptState.REJECTED, AttemptState.CANCELLED} <= reachable("attempt", state)


@given(data=st.data())
def test_an_attempt_that_only_goes_forward_ends(data: st.DataObject) -> None:
    """Without fix turns, waits and moved branches there is no way to go round for ever."""
    back = {
        (AttemptState.WAITING, AttemptState.PREPARING),
        (AttemptState.WAITING, AttemptState.WORKING),
        (AttemptState.CHECKING, AttemptState.WORKING),
        (AttemptState.CHECKING, AttemptState.WAITING),
        (AttemptState.LANDING, AttemptState.CHECKING),
    }
    state, moves = AttemptState.QUEUED, 0
    while forward := sorted(target for target in ATTEMPT[state] if (state, target) not in back):
        state, moves = data.draw(st.sampled_from(forward)), moves + 1
    assert moves <= len(ATTEMPT)
    assert state not in LIVE_ATTEMPT


@given(state=st.sampled_from(sorted(ENDS["loop"])))
def test_every_ended_loop_can_be_run_again(state: LoopState) -> None:
    assert step("loop", LOOP, "loop_1", state, LoopState.RUNNING) is LoopState.RUNNING


@given(state=st.sampled_from(TaskState))
def test_no_task_is_ever_beyond_a_persons_reach(state: TaskState) -> None:
    assert {TaskState.QUEUED, TaskState.COMPLETE} <= reachable("task", state)


@given(state=st.sampled_from(RunState))
def test_a_run_never_starts_over(state: RunState) -> None:
    """Nothing leads back to QUEUED: a second try is another run."""
    assert state is RunState.QUEUED or RunState.QUEUED not in reachable("run", state)
