"""The state machines as tables, and the one function that moves along them."""

from enum import StrEnum

import pytest
from tests.cases import each_case

from loopwright.core.values.errors import IllegalTransition
from loopwright.core.values.states import (
    ATTEMPT,
    ENDED_PLAN,
    ENDED_RUN,
    LIVE_ATTEMPT,
    LOOP,
    MACHINES,
    PLAN,
    RUN,
    SETTLED_TASK,
    TASK,
    AttemptState,
    LoopState,
    PlanState,
    RunState,
    TaskState,
    step,
)

PAIRS = [(name, source, target) for name, table in MACHINES.items() for source in table for target in table]


@pytest.mark.capability("C045")
@each_case(("machine", "source", "target"), PAIRS, ids=str)
def test_a_step_is_taken_exactly_when_the_table_has_it(
    machine: str, source: StrEnum, target: StrEnum
) -> None:
    table = MACHINES[machine]
    if target in table[source]:
        assert step(machine, table, "x_1", source, target) is target
    else:
        with pytest.raises(IllegalTransition) as caught:
            step(machine, table, "x_1", source, target)
        assert (caught.value.machine, caught.value.subject) == (machine, "x_1")
        assert (caught.value.source, caught.value.target) == (source.value, target.value)
        assert str(caught.value) == f"{machine} x_1: {source} -> {target} is not allowed"


def test_a_table_cannot_be_changed_by_accident() -> None:
    with pytest.raises(TypeError):
        LOOP[LoopState.IDLE] = frozenset()  # type: ignore[index]
    with pytest.raises(TypeError):
        MACHINES["loop"] = LOOP  # type: ignore[index]


@each_case("machine", sorted(MACHINES.keys() - {"controller"}))
def test_no_state_leads_to_itself(machine: str) -> None:
    assert [state for state, targets in MACHINES[machine].items() if state in targets] == []


@each_case("machine", MACHINES)
def test_every_state_can_be_reached_from_the_first(machine: str) -> None:
    table = MACHINES[machine]
    seen, todo = set(), [next(iter(table))]
    while todo:
        state = todo.pop()
        if state not in seen:
            seen.add(state)
            todo += table[state]
    assert seen == set(table)


def test_the_ends_of_an_attempt_are_final() -> None:
    ends = {AttemptState.LANDED, AttemptState.REJECTED, AttemptState.BROKEN, AttemptState.CANCELLED}
    assert set(AttemptState) - LIVE_ATTEMPT == ends


def test_an_attempt_lands_only_from_landing_and_gets_there_only_by_being_checked() -> None:
    assert [s for s, targets in ATTEMPT.items() if AttemptState.LANDED in targets] == [AttemptState.LANDING]
    assert [s for s, targets in ATTEMPT.items() if AttemptState.LANDING in targets] == [AttemptState.CHECKING]


@each_case("state", sorted(LIVE_ATTEMPT))
def test_every_live_attempt_can_be_rejected_broken_or_cancelled(state: AttemptState) -> None:
    assert {AttemptState.REJECTED, AttemptState.BROKEN, AttemptState.CANCELLED} <= ATTEMPT[state]


def test_the_ends_of_a_run_are_final() -> None:
    assert {RunState.COMPLETE, RunState.ERROR, RunState.CANCELLED} == ENDED_RUN
    assert all(not RUN[state] for state in ENDED_RUN)


def test_a_plan_is_verified_only_by_verifying() -> None:
    assert [s for s, targets in PLAN.items() if PlanState.VERIFIED in targets] == [PlanState.VERIFYING]
    assert {PlanState.VERIFIED, PlanState.FAILED, PlanState.CANCELLED} == ENDED_PLAN


@each_case("state", sorted(set(PlanState) - {PlanState.VERIFIED, PlanState.CANCELLED}))
def test_a_plan_can_be_cancelled_until_it_is_verified(state: PlanState) -> None:
    assert PlanState.CANCELLED in PLAN[state]


def test_a_settled_task_needs_a_person_to_move_again() -> None:
    """A settled task never goes straight back to running: it is queued first."""
    assert {TaskState.COMPLETE, TaskState.ERROR, TaskState.CANCELLED} == SETTLED_TASK
    assert all(TaskState.RUNNING not in TASK[state] for state in SETTLED_TASK)


@each_case("state", [LoopState.STOPPED, LoopState.COMPLETED, LoopState.FAILED, LoopState.PAUSED])
def test_a_loop_that_rests_can_be_run_again(state: LoopState) -> None:
    assert LoopState.RUNNING in LOOP[state]
