"""What the controller does next, how it recovers, and when it may end."""

from dataclasses import replace
from typing import Any

import pytest
from tests.cases import each_case
from tests.unit.core.orchestrator.samples import LIVE, REJECTED, UPDATE, review, state, view

from loopwright.core.orchestrator.decide import EXITS, Action, Do, RoundSeen, after, next_actions
from loopwright.core.orchestrator.ladder import (
    SAME_MECHANISM,
    Rung,
    Trouble,
    next_rung,
    tried_again,
    watched,
    with_retry,
    without_retry,
)
from loopwright.core.orchestrator.manifest import foreign_files
from loopwright.core.orchestrator.records import LiveRound, Retry
from loopwright.core.orchestrator.self_check import CLAUSES, Ending, Facts, failed_clauses
from loopwright.core.values.round_states import RoundStage

_R = RoundStage


def live(stage: str = "plan", **more: Any) -> dict[str, Any]:
    return {**LIVE, "stage": stage, **more}


def decided(stage: str, seen: RoundSeen, **more: Any) -> Action:
    (action,) = next_actions(state(active_rounds=[live(stage, **more)]), view(), {"round-001": seen})
    return action


@each_case(
    ("stage", "seen", "wanted"),
    [
        ("plan", RoundSeen(), Action(do=Do.DELEGATE, round_id="round-001")),
        ("plan", RoundSeen(requests_update=True), Action(do=Do.REQUEST, round_id="round-001")),
        (
            "plan",
            RoundSeen(is_proven=True),
            Action(do=Do.ADVANCE, round_id="round-001", to=_R.IMPLEMENT),
        ),
        ("implement", RoundSeen(), Action(do=Do.DELEGATE, round_id="round-001")),
        ("implement", RoundSeen(is_fan_out=True), Action(do=Do.FAN_OUT, round_id="round-001")),
        (
            "implement",
            RoundSeen(is_proven=True, is_fan_out=True),
            Action(do=Do.ADVANCE, round_id="round-001", to=_R.REVIEW),
        ),
        (
            "review",
            RoundSeen(has_bad_review=True),
            Action(do=Do.ADVANCE, round_id="round-001", to=_R.BLOCKED),
        ),
        (
            "review",
            RoundSeen(is_proven=True, review=review()),
            Action(do=Do.ADVANCE, round_id="round-001", to=_R.FINALIZE),
        ),
        (
            "review",
            RoundSeen(is_proven=True, review=review(REJECTED)),
            Action(do=Do.ADVANCE, round_id="round-001", to=_R.IMPLEMENT),
        ),
        (
            "review",
            RoundSeen(is_proven=True, review=review(REJECTED, retry_target="plan")),
            Action(do=Do.ADVANCE, round_id="round-001", to=_R.PLAN),
        ),
        (
            "review",
            RoundSeen(is_proven=True, review=review(REJECTED, retry_target="blocked")),
            Action(do=Do.ADVANCE, round_id="round-001", to=_R.BLOCKED),
        ),
        ("finalize-round", RoundSeen(), Action(do=Do.FINALIZE, round_id="round-001")),
        ("blocked", RoundSeen(is_proven=True), Action(do=Do.RECOVER, round_id="round-001")),
        ("plan", RoundSeen(has_worktree=False), Action(do=Do.RECOVER, round_id="round-001")),
    ],
)
def test_each_stage_leads_to_one_action(stage: str, seen: RoundSeen, wanted: Action) -> None:
    assert decided(stage, seen) == wanted


def test_an_error_of_a_round_leads_to_its_recovery() -> None:
    assert decided("plan", RoundSeen(), resume_error="lost").do is Do.RECOVER


def test_a_review_that_decides_nothing_blocks_its_round() -> None:
    stands = LiveRound(round_id="round-001", stage=_R.REVIEW, branch="b", worktree_path="w")
    assert after(stands, None) is _R.BLOCKED
    assert after(stands, replace(review(REJECTED), retry_target=None)) is _R.BLOCKED


@pytest.mark.clause("X31")
@each_case(
    ("more", "statuses", "wanted"),
    [
        ({}, ("pending",), Do.BEGIN),
        ({}, ("done",), Do.FINISH),
        ({"controller_stage": "done"}, ("done",), Do.FINISH),
        ({"controller_stage": "done"}, ("done", "pending"), Do.REOPEN),
        ({"controller_stage": "blocked"}, ("pending",), Do.RECOVER),
        ({"controller_stage": "update-roadmap"}, ("pending",), Do.RECOVER),
        ({"resume_errors": {"controller": "lost"}}, ("done",), Do.RECOVER),
        ({"roadmap_update": UPDATE, "controller_stage": "update-roadmap"}, ("pending",), Do.UPDATE),
        ({"roadmap_update": UPDATE, "active_rounds": [LIVE]}, ("pending",), Do.UPDATE),
    ],
)
def test_the_controller_ends_only_when_nothing_is_left(
    more: dict[str, Any], statuses: tuple[str, ...], wanted: Do
) -> None:
    assert [one.do for one in next_actions(state(**more), view(*statuses), {"round-001": RoundSeen()})] == [
        wanted
    ]


@pytest.mark.capability("C073")
def test_rounds_run_side_by_side_only_up_to_the_limit_and_never_more_than_milestones_are_ready() -> None:
    seen = {"round-001": RoundSeen()}
    busy = [live("implement")]
    wide = replace(view("pending", "pending"), milestones=view().milestones[:1] + view("done").milestones)
    both = tuple(replace(one, depends_on=(), status="pending") for one in view().milestones)
    apart = replace(wide, milestones=both)

    def actions(many: int, roadmap: Any, rounds: Any) -> list[Do]:
        return [
            one.do
            for one in next_actions(state(max_parallel_rounds=many, active_rounds=rounds), roadmap, seen)
        ]

    assert actions(2, apart, busy) == [Do.DELEGATE, Do.BEGIN]
    assert actions(1, apart, busy) == [Do.DELEGATE]
    assert actions(2, view(), busy) == [Do.DELEGATE], "the second milestone waits for the first"
    assert actions(2, apart, [LIVE]) == [Do.DELEGATE], "the planner may still choose either"


def test_the_named_exits_are_what_the_serial_path_does_not_know() -> None:
    assert {Do.UPDATE, Do.RECOVER, Do.FAN_OUT, Do.REQUEST} == EXITS


def retry(**more: Any) -> Retry:
    return Retry(
        **{
            "subject_id": "round-001",
            "stage": "implement",
            "mechanism": "same-role",
            "attempt": 2,
            "same_mechanism": 1,
            "review_cycles": 0,
            "reason": "crash",
            **more,
        }
    )


@pytest.mark.capability("C056")
@each_case(
    ("trouble", "wanted"),
    [
        (Trouble(has_worktree=False, is_proven=True), Rung.RECREATE),
        (Trouble(is_proven=True), Rung.RESUME),
        (Trouble(), Rung.INVESTIGATE),
        (Trouble(is_investigated=True), Rung.SAME_ROLE),
        (Trouble(is_undermined=True), Rung.INVESTIGATE),
        (Trouble(is_investigated=True, is_undermined=True, may_step_back=True), Rung.STEP_BACK),
        (Trouble(is_investigated=True, is_undermined=True), Rung.BLOCK),
        (Trouble(is_investigated=True, retry=retry()), Rung.SAME_ROLE),
        (Trouble(is_investigated=True, retry=retry(same_mechanism=SAME_MECHANISM)), Rung.FRESH_AGENT),
        (Trouble(is_investigated=True, retry=retry(mechanism="fresh-agent")), Rung.FRESH_AGENT),
        (
            Trouble(is_investigated=True, retry=retry(mechanism="fresh-agent", same_mechanism=3)),
            Rung.BLOCK,
        ),
    ],
)
def test_the_ladder_is_climbed_rung_by_rung(trouble: Trouble, wanted: Rung) -> None:
    assert next_rung(trouble) is wanted


@pytest.mark.capability("C056")
def test_three_tries_in_one_way_lead_to_another_way_and_only_then_to_a_blockage() -> None:
    tried: list[str] = []
    before: Retry | None = None
    while (rung := next_rung(Trouble(is_investigated=True, retry=before))) is not Rung.BLOCK:
        mechanism = "fresh-agent" if rung is Rung.FRESH_AGENT else "same-role"
        tried.append(mechanism)
        before = tried_again(
            before, subject_id="round-001", stage="implement", mechanism=mechanism, reason="no\nresult"
        )
    assert tried == ["same-role"] * 3 + ["fresh-agent"] * 3
    assert before is not None
    assert (before.attempt, before.reason, before.review_cycles) == (7, "no result", 0)


def test_three_observations_that_show_the_same_make_a_live_stage_non_observable() -> None:
    seen = watched(None, "a")
    lost = []
    for sign in ("a", "a", "b", "b", "b", "b", "b"):
        assert seen is not None
        seen = watched(seen, sign)
        assert seen is not None
        lost.append(seen.is_lost)
    assert lost == [False, False, False, False, False, True, True]
    assert watched(seen, "") is None, "no agent works, so nothing can change"


@each_case(
    ("stage", "problems", "wanted"),
    [
        (_R.REVIEW, ("implementation-notes.md: missing", "review.md: missing"), {"implementation-notes.md"}),
        (_R.REVIEW, ("review-record.json: missing",), set()),
        (_R.IMPLEMENT, ("round-plan-record.json.workers: missing",), {"round-plan-record.json"}),
        (_R.IMPLEMENT, ("implementation-notes.md: missing",), set()),
        (_R.PLAN, ("plan.md: missing",), set()),
    ],
)
def test_a_stage_cannot_make_again_what_an_earlier_one_wrote(
    stage: RoundStage, problems: tuple[str, ...], wanted: set[str]
) -> None:
    assert foreign_files(stage, problems) == wanted


def test_another_stage_begins_its_own_count_and_reviews_are_counted_apart() -> None:
    first = retry(same_mechanism=3)
    then = tried_again(
        first, subject_id="round-001", stage="plan", mechanism="same-role", reason="x", is_review=True
    )
    assert (then.attempt, then.same_mechanism, then.review_cycles) == (3, 1, 1)


def test_retries_are_kept_by_subject() -> None:
    one, other = retry(), retry(subject_id="round-002")
    both = with_retry(with_retry(None, one), other)
    assert both.entries == (one, other)
    assert with_retry(both, retry(attempt=5)).entries == (other, retry(attempt=5))
    left = without_retry(both, "round-001")
    assert left is not None
    assert left.entries == (other,)
    assert without_retry(left, "round-002") is None
    assert without_retry(None, "round-001") is None


_DONE = Facts(state=state(controller_stage="done"), view=view("done"))


def _is_only_missing(clause: str, *facts: Facts) -> None:
    assert failed_clauses(Ending.TERMINAL, _DONE) == ()
    assert [failed_clauses(Ending.TERMINAL, one) for one in facts] == [(clause,)] * len(facts)


@pytest.mark.clause("X32")
@pytest.mark.capability("C061")
def test_terminal_success_needs_that_no_round_is_live() -> None:
    live_round = replace(_DONE, state=state(active_rounds=[LIVE]))
    _is_only_missing("state.json active_rounds is empty", live_round)


@pytest.mark.clause("X33")
@pytest.mark.capability("C061")
def test_terminal_success_needs_a_roadmap_that_can_be_read_and_has_no_unfinished_milestone() -> None:
    unfinished, unreadable = replace(_DONE, view=view("done", "pending")), replace(_DONE, view=None)
    _is_only_missing("the active roadmap has no unfinished milestones", unfinished, unreadable)


@pytest.mark.clause("X34")
@pytest.mark.capability("C061")
def test_terminal_success_needs_that_no_roadmap_update_is_active() -> None:
    _is_only_missing("no roadmap update is active", replace(_DONE, state=state(roadmap_update=UPDATE)))


@pytest.mark.clause("X35")
@pytest.mark.capability("C061")
def test_terminal_success_needs_that_no_resume_error_is_left() -> None:
    lost = replace(_DONE, state=state(resume_errors={"x": "lost"}))
    _is_only_missing("no resume error is unresolved", lost)


@pytest.mark.clause("X36")
@pytest.mark.capability("C061")
def test_terminal_success_needs_that_the_checks_passed() -> None:
    _is_only_missing("the checks of the whole passed on the base branch", replace(_DONE, is_gated=False))


@pytest.mark.clause("X35")
@pytest.mark.capability("C061")
def test_an_error_that_a_round_or_an_update_has_is_unresolved_too() -> None:
    owned = state(active_rounds=[{**LIVE, "resume_error": "lost"}])
    assert "no resume error is unresolved" in failed_clauses(Ending.TERMINAL, replace(_DONE, state=owned))


@pytest.mark.clause("X37")
@pytest.mark.capability("C059")
def test_a_blockage_is_recorded_precisely_before_the_controller_stops() -> None:
    clause = "a precise error is in state.json resume_errors.controller"
    for errors in ({}, {"controller": ""}, {"other": "x"}):
        assert failed_clauses(Ending.BLOCKED, replace(_DONE, state=state(resume_errors=errors))) == (clause,)
    recorded = state(resume_errors={"controller": "round-001 has no reviewer"})
    assert failed_clauses(Ending.BLOCKED, replace(_DONE, state=recorded)) == ()


@pytest.mark.clause("X38")
@pytest.mark.capability("C060")
def test_an_interruption_leaves_a_state_that_is_consistent() -> None:
    assert failed_clauses(Ending.INTERRUPTED, replace(_DONE, state=state(active_rounds=[LIVE]))) == ()
    torn = state(controller_stage="done", active_rounds=[LIVE])
    assert failed_clauses(Ending.INTERRUPTED, replace(_DONE, state=torn)) == (
        "the state is consistent and saved",
    )


def test_every_clause_belongs_to_an_ending() -> None:
    assert set(CLAUSES.values()) == set(Ending)
