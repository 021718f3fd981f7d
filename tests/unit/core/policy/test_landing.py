"""What becomes of a candidate: each decision, and the facts that it asks for on the way."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tests.cases import each_case
from tests.contracts.store import rows as made

from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.policy.landing import (
    Alone,
    AskPerson,
    AskReviewer,
    CannotTell,
    Complete,
    Decided,
    Decision,
    Found,
    GiveTurn,
    Land,
    Objection,
    Reject,
    SendBack,
    Want,
    base_taken_back,
    conflict_at,
    decision_key,
    early_objections,
    judge_candidate,
)
from loopwright.core.policy.red_first import RedFound
from loopwright.core.rows.model import Review
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Check, CheckStatus, Verdict, VerdictStatus
from loopwright.core.values.patches import ChangedFile, Patch
from loopwright.core.values.policy import GateCommand, HeldOut, Policy, ReviewPolicy, RoundsPolicy
from loopwright.core.values.states import QuestionState, ReviewState

AT = datetime(2026, 1, 1, tzinfo=UTC)
PASSED = Verdict(status=VerdictStatus.PASSED)
FAILED = Verdict(
    status=VerdictStatus.FAILED, checks=(Check(id="1", name="tests", status=CheckStatus.FAILED),)
)
UNCLEAR = Verdict(status=VerdictStatus.INCONCLUSIVE, reason="no space left")
UNVERIFIED = Verdict(status=VerdictStatus.UNVERIFIED)
TESTS = GateCommand(name="tests", command="pytest")
A, B = "tests/test_a.py::test_a", "tests/test_b.py::test_b"
PATCH = Patch(sha256="a" * 64, files=(ChangedFile(path="a.py", added=1),), text="", is_whole=True)
FILES = GateFiles(pinned=("tests/test_a.py",), pinned_tree="4" * 40)
TURNED = {"gate_files": GateFiles(contradicted=(A,))}


def known(
    *, policy: dict[str, Any] | None = None, task: Any = None, attempt: Any = None, **more: Any
) -> Found:
    """Return a candidate of which nothing is known but these facts."""
    plan = made.plan(made.loop(made.project()), policy=Policy(**(policy or {})), gates=(TESTS,))
    owner = made.task(plan, **(task or {}))
    return Found(plan=plan, task=owner, attempt=made.attempt(owner, **(attempt or {})), **more)


def rejected(decision: Decision | Want) -> Reject:
    assert isinstance(decision, Reject)
    return decision


def a_review(state: ReviewState, *contradicted: str, **more: Any) -> Review:
    return Review(
        id="rev_1",
        plan_id="p",
        task_id="t",
        attempt_id="a",
        n=1,
        run_id="r",
        agent="other",
        parent_sha="1",
        candidate_sha="2",
        patch_sha256=PATCH.sha256,
        state=state,
        contradicted=contradicted,
        created_at=AT,
        **more,
    )


def an_answer(words: str, *checks: str, patch: Patch = PATCH) -> Question:
    return Question(
        id="q_1",
        project_id="p",
        loop_id="l",
        plan_id="p",
        task_id="t",
        run_id="r",
        kind="contradiction",
        key=decision_key(patch, checks),
        text="",
        state=QuestionState.ANSWERED,
        answer=words,
        answered_by="me",
        created_at=AT,
    )


# --- before any check runs -------------------------------------------------------------------------------


def test_objections_before_any_check_are_told_together() -> None:
    assert early_objections(links=(), documents=(), rejected=None) == ()
    found = early_objections(links=("a -> /etc",), documents=("README.md",), rejected=(2, "Too long."))
    decision = rejected(judge_candidate(known(objections=found)))
    assert decision.failure is Failure.GATE
    for part in ("a -> /etc", "README.md", "attempt 2", "Too long."):
        assert part in decision.detail
        assert part in decision.evidence
    last = early_objections(links=(), documents=(), rejected=(2, "Too long."))
    assert rejected(judge_candidate(known(objections=last))).failure is Failure.NO_CHANGE


def test_a_base_that_was_taken_back_and_a_conflict_are_no_fault_of_the_checks() -> None:
    assert base_taken_back().failure is Failure.CONFLICT
    conflict = conflict_at(("a.py", "b.py"), "both changed it")
    assert (conflict.failure, conflict.evidence) == (Failure.CONFLICT, "both changed it")
    assert "a.py, b.py" in conflict.detail
    silent = Objection(failure=Failure.GATE, detail="no")
    assert Reject(objections=(silent, conflict)).evidence == "both changed it"


# --- its own checks --------------------------------------------------------------------------------------


def test_the_first_thing_to_know_is_the_verdict() -> None:
    assert judge_candidate(known()) is Want.VERDICT


def test_checks_that_could_not_run_are_not_held_against_the_work() -> None:
    assert judge_candidate(known(verdict=UNCLEAR)) == CannotTell(verdict=UNCLEAR, files=GateFiles())


@each_case(
    ("facts", "failure"),
    [
        ({"is_empty": True}, Failure.NO_CHANGE),
        ({"is_restored": True}, Failure.GATE),
        ({"policy": {"rounds": RoundsPolicy(on=True)}}, Failure.GATE),
        ({"alone": Alone(passes=False, evidence="red")}, Failure.GATE),
        ({"alone": Alone(passes=True, evidence="red together")}, Failure.TOGETHER),
    ],
)
def test_work_that_fails_its_checks_is_rejected(facts: dict[str, Any], failure: Failure) -> None:
    decision = rejected(judge_candidate(known(verdict=FAILED, **facts)))
    assert decision.failure is failure
    assert decision.evidence


def test_whether_it_fails_alone_is_found_out_only_if_others_may_have_landed() -> None:
    assert judge_candidate(known(verdict=FAILED)) is Want.ALONE


def test_unchecked_work_lands_only_if_that_is_allowed() -> None:
    assert rejected(judge_candidate(known(verdict=UNVERIFIED))).failure is Failure.UNVERIFIED
    assert judge_candidate(known(verdict=UNVERIFIED, policy={"allow_unverified": True})) is Want.RED_PROOF


def test_held_out_checks_run_after_the_others_and_decide_too() -> None:
    held = {"held_out": (HeldOut(check=GateCommand(name="secret", command="x")),)}
    found = known(task=held, verdict=PASSED)
    assert judge_candidate(found) is Want.HELD_OUT
    assert judge_candidate(replace(found, verdict=FAILED)) is Want.ALONE, "it fails anyway"
    assert rejected(judge_candidate(replace(found, held_out=FAILED))).failure is Failure.GATE
    assert isinstance(judge_candidate(replace(found, held_out=UNCLEAR)), CannotTell)
    assert judge_candidate(replace(found, held_out=PASSED)) is Want.RED_PROOF


def test_an_empty_change_completes_a_task_only_with_proof() -> None:
    proven = known(is_empty=True, verdict=PASSED, task={"acceptance": (TESTS,)})
    assert judge_candidate(proven) == Complete(verdict=PASSED)
    found = known(is_empty=True, verdict=PASSED)
    assert judge_candidate(found) is Want.ROUNDS
    assert judge_candidate(replace(found, rounds_settled=True)) == Complete(verdict=PASSED)
    assert rejected(judge_candidate(replace(found, rounds_settled=False))).failure is Failure.NO_CHANGE


# --- old checks ------------------------------------------------------------------------------------------

LOST = replace(PASSED, lost=(A,), passed_before=10, passed_now=1)
FEW_LOST = replace(LOST, passed_now=9)
CONTRADICTS = replace(FAILED, broken=(A,))


def test_without_changed_judging_files_its_own_verdict_names_what_it_contradicts() -> None:
    assert judge_candidate(known(verdict=PASSED)) is Want.RED_PROOF
    assert judge_candidate(known(verdict=FEW_LOST)) is Want.DECISIONS


def test_old_checks_run_if_judging_files_changed_beside_other_files() -> None:
    found = known(verdict=PASSED, files=FILES, is_restored=True)
    assert judge_candidate(found) is Want.OLD_CHECKS
    assert judge_candidate(replace(found, only_judging_files=True)) is Want.RED_PROOF
    assert judge_candidate(replace(found, only_judging_files=True, verdict=FEW_LOST)) is Want.RED_PROOF
    assert judge_candidate(replace(found, only_judging_files=True, verdict=LOST)) is Want.DECISIONS
    assert judge_candidate(replace(found, old_checks=PASSED)) is Want.RED_PROOF
    assert judge_candidate(replace(found, old_checks=PASSED, verdict=LOST)) is Want.DECISIONS
    assert judge_candidate(replace(found, old_checks=CONTRADICTS)) is Want.DECISIONS
    tampered = rejected(judge_candidate(replace(found, old_checks=replace(FAILED, tampered=True))))
    assert (tampered.failure, tampered.files) == (Failure.GATE, FILES)


def test_old_checks_that_could_not_run_say_nothing_or_stop_it() -> None:
    found = known(verdict=PASSED, files=FILES, is_restored=True, red=RedFound())
    assert isinstance(judge_candidate(replace(found, old_checks=UNCLEAR)), CannotTell)
    landed = judge_candidate(replace(found, old_checks=replace(UNCLEAR, as_before=True)))
    assert landed == Land(files=replace(FILES, pinned_tree=None)), "that run is not on the record"


# --- who decides about contradicted checks ---------------------------------------------------------------


def contradicting(decided: Decided | None = None, **more: Any) -> Found:
    return known(
        verdict=PASSED,
        files=FILES,
        is_restored=True,
        old_checks=replace(CONTRADICTS, lost=(B,)),
        decided=decided or Decided(patch=PATCH, reason="The task wants it."),
        red=RedFound(),
        **more,
    )


def test_a_permission_allows_contradicted_checks() -> None:
    decision = judge_candidate(contradicting(policy={"may_change": ("tests/",)}))
    assert isinstance(decision, Land)
    files = decision.files
    assert (files.contradicted, files.removed, files.reason) == ((A, B), (B,), "The task wants it.")
    assert len(files.allowed_by) == 2


def test_the_agent_has_its_turn_first_and_then_a_person_is_asked() -> None:
    turn = judge_candidate(contradicting(policy={"may_change": ("tests/test_b.py",)}))
    assert turn == GiveTurn(files=replace(FILES, contradicted=(A,)))
    for later in (contradicting(attempt=TURNED), contradicting(by_hand=True, subfolder="shop")):
        asked = judge_candidate(later)
        assert isinstance(asked, AskPerson)
        assert (asked.asking.key, asked.files.contradicted) == (decision_key(PATCH, (A, B)), (A, B))
        assert "The task wants it." in asked.asking.text


@each_case("words", ["reject", "reject: clients use it"])
def test_an_answer_decides_about_exactly_this_change_and_these_checks(words: str) -> None:
    accepted = judge_candidate(contradicting(Decided(patch=PATCH, answers=(an_answer("accept", A, B),))))
    assert isinstance(accepted, Land)
    assert accepted.files.allowed_by == ("me (question q_1)",) * 2
    other = Decided(patch=PATCH, answers=(an_answer("accept", A), an_answer("accept", B)))
    assert isinstance(judge_candidate(contradicting(other)), GiveTurn)
    refused = rejected(
        judge_candidate(contradicting(Decided(patch=PATCH, answers=(an_answer(words, A, B),))))
    )
    assert (refused.failure, refused.files) == (
        Failure.CONTRADICTION,
        replace(FILES, contradicted=(A, B)),
    )
    assert ("clients use it" in refused.evidence) == ("clients" in words)


def test_a_reviewer_decides_if_one_is_named() -> None:
    policy = {"review": ReviewPolicy(mode="off", agent="other")}

    def decided(*reviews: Review) -> Decision | Want:
        return judge_candidate(
            contradicting(Decided(patch=PATCH, reviews=reviews), policy=policy, attempt=TURNED)
        )

    files = replace(FILES, contradicted=(A, B))
    wanted = AskReviewer(patch=PATCH, contradicted=(A, B), files=files)
    assert decided() == decided(a_review(ReviewState.CLEAR, A)) == wanted, "it judged another check only"
    allowed = decided(a_review(ReviewState.CLEAR, A, B))
    assert isinstance(allowed, Land)
    assert allowed.files.allowed_by == ("reviewer other (review rev_1)",) * 2
    blocking = a_review(ReviewState.BLOCKING, A, B)
    assert decided(blocking) == SendBack(review=blocking, files=FILES)
    for unsure in (
        a_review(ReviewState.UNCLEAR, A, B),
        a_review(ReviewState.CLEAR, A, B, shown_whole=False),
    ):
        assert isinstance(decided(unsure), AskPerson)


# --- red proof and review --------------------------------------------------------------------------------


def test_a_test_that_runs_without_the_work_has_to_run_with_it() -> None:
    red = RedFound(proof=True, tree="5" * 40, not_run=("tests: 1 test is skipped",))
    decision = rejected(judge_candidate(known(verdict=PASSED, red=red)))
    assert decision.files is not None
    assert (decision.failure, decision.files.red_tree) == (Failure.GATE, "5" * 40)


def test_what_shows_the_work_is_on_the_record() -> None:
    red = RedFound(seen=(A,), proof=True, tree="5" * 40, tests=("t.py",), skipped="s", missing="m")
    landed = judge_candidate(known(verdict=PASSED, red=red))
    files = GateFiles(
        red_seen=(A,),
        red_proof=True,
        red_tree="5" * 40,
        red_tests=("t.py",),
        red_skipped="s",
        red_missing="m",
    )
    assert landed == Land(files=files)


def test_a_review_lets_exactly_this_change_land() -> None:
    found = known(verdict=PASSED, red=RedFound(), policy={"review": ReviewPolicy(mode="always")})
    assert judge_candidate(found) is Want.DECISIONS
    asked = judge_candidate(replace(found, decided=Decided(patch=PATCH)))
    assert isinstance(asked, AskReviewer)
    assert (bool(asked.reasons), asked.contradicted, asked.files) == (True, (), None)
    blocking, clear = a_review(ReviewState.BLOCKING), a_review(ReviewState.UNCLEAR)
    sent = judge_candidate(replace(found, decided=Decided(patch=PATCH, reviews=(blocking, clear))))
    assert sent == SendBack(review=blocking, files=GateFiles())
    landed = judge_candidate(replace(found, decided=Decided(patch=PATCH, reviews=(clear, blocking))))
    assert landed == Land(files=GateFiles(), review_id="rev_1")
    about_checks = (a_review(ReviewState.UNCLEAR, A), a_review(ReviewState.CLEAR, A))
    asked, read = (
        judge_candidate(replace(found, decided=Decided(patch=PATCH, reviews=(one,)))) for one in about_checks
    )
    assert isinstance(asked, AskReviewer), "a person decided about the checks alone"
    assert isinstance(read, Land), "it has read the whole change"


def test_a_change_without_a_reason_for_a_review_lands() -> None:
    policy = {"review": ReviewPolicy(mode="risky")}
    found = known(verdict=PASSED, red=RedFound(), policy=policy, decided=Decided(patch=PATCH))
    assert judge_candidate(found) == Land(files=GateFiles())
