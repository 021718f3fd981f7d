"""The state tables of an orchestrator folder: what they allow, and who owns each state."""

import pytest
from tests.cases import each_case

from loopwright.core.values.errors import IllegalTransition
from loopwright.core.values.round_states import (
    CONTROLLER,
    ROUND,
    ROUND_OWNERS,
    UPDATE,
    UPDATE_OWNERS,
    ControllerStage,
    RoundRole,
    RoundStage,
    UpdateStatus,
)
from loopwright.core.values.states import drawn, step

_R, _C = RoundStage, ControllerStage


@pytest.mark.clause("X30")
@pytest.mark.capability("C046")
def test_every_stage_has_an_owner_and_no_role_reviews_what_it_made() -> None:
    assert set(ROUND_OWNERS) == set(ROUND)
    assert set(UPDATE_OWNERS) == set(UPDATE)
    assert ROUND_OWNERS[_R.REVIEW] not in {ROUND_OWNERS[_R.PLAN], ROUND_OWNERS[_R.IMPLEMENT]}
    assert UPDATE_OWNERS[UpdateStatus.REVIEW] is not UPDATE_OWNERS[UpdateStatus.AUTHORING]
    assert ROUND_OWNERS[_R.PLAN] is UPDATE_OWNERS[UpdateStatus.AUTHORING] is RoundRole.PLANNER


@pytest.mark.capability("C046")
@each_case(
    ("source", "target"),
    [
        (_R.PLAN, _R.REVIEW),
        (_R.PLAN, _R.FINALIZE),
        (_R.IMPLEMENT, _R.FINALIZE),
        (_R.REVIEW, _R.DONE),
        (_R.BLOCKED, _R.DONE),
        (_R.DONE, _R.PLAN),
    ],
)
def test_a_round_skips_no_stage(source: RoundStage, target: RoundStage) -> None:
    with pytest.raises(IllegalTransition):
        step("round", ROUND, "round-001", source, target)


@pytest.mark.capability("C046")
def test_a_round_is_never_done_without_its_finalisation_and_blocked_is_never_an_end() -> None:
    assert [stage for stage, targets in ROUND.items() if _R.DONE in targets] == [_R.FINALIZE]
    assert [stage for stage, targets in ROUND.items() if not targets] == [_R.DONE]
    assert all(CONTROLLER.values())
    assert [stage for stage, targets in CONTROLLER.items() if _C.BLOCKED in targets] == [_C.UPDATE]


def test_a_hyphen_would_end_the_name_of_a_state_in_a_diagram() -> None:
    assert drawn(_R.FINALIZE) == "finalize_round"
