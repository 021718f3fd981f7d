"""The loop of a conductor track: its table of steps, and who evaluates what."""

import pytest
from tests.cases import each_case

from loopwright.core.plans.tracks import (
    ROLES,
    TRACK_TABLE,
    StepStatus,
    TrackAction,
    TrackStep,
    enter,
    evaluators,
    rule_of,
)
from loopwright.core.values.errors import IllegalTransition


def test_every_step_has_rows_and_every_next_step_is_one_of_the_table() -> None:
    assert list(TRACK_TABLE) == list(TrackStep)
    assert set(ROLES) == set(TrackStep) - {TrackStep.COMPLETE}
    for rows in TRACK_TABLE.values():
        for rule in rows.values():
            assert (rule.action in (TrackAction.ADVANCE, TrackAction.FIX)) == bool(rule.to)


@each_case(
    ("step", "status", "action", "to"),
    [
        ("PLAN", "NOT_STARTED", "START", ()),
        ("PLAN", "PASSED", "ADVANCE", ("EVALUATE_PLAN",)),
        ("EVALUATE_PLAN", "NOT_STARTED", "START", ()),
        ("EVALUATE_PLAN", "PASSED", "ADVANCE", ("EXECUTE", "PARALLEL_EXECUTE")),
        ("EVALUATE_PLAN", "BOARD_REVIEW", "ASK", ()),
        ("EXECUTE", "IN_PROGRESS", "RESUME", ()),
        ("EXECUTE", "PASSED", "ADVANCE", ("EVALUATE_EXECUTION",)),
        ("EXECUTE", "PARTIAL_FAIL", "ISOLATE", ()),
        ("EVALUATE_EXECUTION", "PASSED", "ADVANCE", ("BUSINESS_SYNC", "COMPLETE")),
        ("EVALUATE_EXECUTION", "FAILED", "FIX", ("FIX",)),
        ("FIX", "PASSED", "ADVANCE", ("EVALUATE_EXECUTION",)),
        ("FIX", "BLOCKED", "ASK", ()),
        ("BUSINESS_SYNC", "PASSED", "ADVANCE", ("COMPLETE",)),
        ("COMPLETE", "PASSED", "FINISH", ()),
    ],
)
def test_what_follows_from_a_step_is_as_in_the_contract(
    step: str, status: str, action: str, to: tuple[str, ...]
) -> None:
    rule = rule_of(step, status)
    assert rule is not None
    assert (rule.action.name, rule.to) == (action, to)


def test_every_step_but_the_last_may_be_blocked_and_then_asks_a_person() -> None:
    for step in TrackStep:
        rule = rule_of(step, StepStatus.BLOCKED)
        assert (rule is None) == (step is TrackStep.COMPLETE)
        assert rule is None or rule.action is TrackAction.ASK


@each_case(
    ("step", "status", "known"),
    [
        ("COMPLETE", "FAILED", {}),
        ("BRAINSTORM", "PASSED", {}),
        ("COMPLETE", "PASSED", {"EVALUATE_EXECUTION": "FAILED"}),
        ("COMPLETE", "PASSED", {"EVALUATE_EXECUTION": "PASSED", "BUSINESS_SYNC": "IN_PROGRESS"}),
        ("FIX", "IN_PROGRESS", {"EVALUATE_EXECUTION": "PASSED"}),
        ("BUSINESS_SYNC", "NOT_STARTED", {"EVALUATE_EXECUTION": "odd"}),
    ],
)
def test_a_step_that_the_table_does_not_lead_to_is_refused(
    step: str, status: str, known: dict[str, str]
) -> None:
    with pytest.raises(IllegalTransition):
        enter(step, status, known, "t")


def test_a_step_that_the_table_leads_to_is_entered() -> None:
    known = {"EVALUATE_EXECUTION": "PASSED", "BUSINESS_SYNC": "SKIPPED"}
    assert enter("COMPLETE", "PASSED", known, "t") == {"current_step": "COMPLETE", "step_status": "PASSED"}
    assert enter("EXECUTE", "IN_PROGRESS", {}, "t")["current_step"] == "EXECUTE"


@each_case(
    ("type", "words", "found"),
    [
        ("feature", "Greet people", ("code_quality",)),
        ("ui", "Make the login screen", ("ui_ux",)),
        ("ui", "Make the screen, with the API", ("code_quality", "ui_ux", "integration")),
        ("feature", "A new pricing tier", ("code_quality", "business_logic")),
        ("integration", "Talk to the bank", ("code_quality", "integration")),
        ("bugfix", "The captions are wrong", ("code_quality",)),
    ],
)
def test_the_evaluators_follow_from_the_type_and_the_words_of_a_track(
    type: str, words: str, found: tuple[str, ...]
) -> None:
    assert evaluators(type, words) == found
