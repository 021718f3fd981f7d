"""Work that contradicts existing checks: one turn for the agent, then a permission, a reviewer or a person decides."""

from dataclasses import replace
from typing import Any

from tests.cases import each_case
from tests.doubles import planned
from tests.unit.engine.attempt.test_reviewing import PATCH, Home, Reviewed
from tests.wording_plugin import Wording

from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.policy.landing import Land
from loopwright.core.policy.red_first import RedFound
from loopwright.core.policy.retry import Failed
from loopwright.core.prompts.prompts import implementer
from loopwright.core.rows.model import Attempt, CommandState, Leg, Outcome, Plan, Review, Role, Run, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.ids import short_id
from loopwright.core.values.policy import Policy, ReviewPolicy
from loopwright.core.values.states import (
    AttemptState,
    LoopState,
    QuestionState,
    ReviewState,
    RunState,
    TaskState,
)
from loopwright.engine.people.handover import HUMAN
from loopwright.ports import Tx
from loopwright.prompts import packaged

A, B = "tests/test_a.py::test_a", "tests/test_b.py::test_b"
FACTS = GateFiles(pinned=("tests/test_a.py",), pinned_tree="4" * 40)
CHANGED = (
    "diff --git a/tests/test_a.py b/tests/test_a.py\n--- a/tests/test_a.py\n+++ b/tests/test_a.py\n"
    "@@ -1 +1 @@\n-assert f() == 1\n+assert f() == 2\n"
)
VERDICT = "ver_1"
REVIEW = ReviewPolicy(mode="risky", agent="other", max_turns=0)


class Contradicting(Reviewed):
    """A home with one attempt whose work passes its own checks and contradicts old ones."""

    other: Leg
    """Another task of the plan, at work."""

    async def settle(self, *checks: str, removed: tuple[str, ...] = ()) -> GateFiles | None:
        verdict = Verdict(status=VerdictStatus.PASSED)
        old = Verdict(status=VerdictStatus.FAILED, broken=checks or (A,), lost=removed)
        found = replace(
            self.built.found(),
            files=FACTS,
            is_restored=True,
            verdict=verdict,
            verdict_id=VERDICT,
            old_checks=old,
            red=RedFound(),
        )
        decision = await self.judge(found)
        return decision.files if isinstance(decision, Land) else None

    async def after_turn(self, summary: str = "") -> None:
        """Let the agent have its turn and leave the work as it is."""
        self.home.clock.advance(1)
        assert await self.settle() is None
        self.home.hand.until(self.leg, AttemptState.CHECKING)
        if summary:
            run = self.run.id
            self.home.store.transact_sync("said", lambda tx: tx.update(Run, run, summary=summary))

    @property
    def question(self) -> Question:
        [question] = self.home.all(Question, state=QuestionState.OPEN)
        return question

    async def decide(self, answer: str, **more: Any) -> None:
        """Answer the question and let the attempt be judged again."""
        await self.home.ended(self.leg)
        await self.home.command("answer", self.question.id, answer=answer, **more)
        [self.leg] = await self.home.turn()


async def contradicting(**policy: Any) -> Contradicting:
    home = await Home().launch()
    may_change = policy.pop("task", ())
    home.submit(planned("a", may_change=may_change), planned("b"), policy=Policy(**policy))
    leg, other = await home.turn()
    home.hand.until(leg, AttemptState.CHECKING)
    scene = Contradicting(home, leg)
    scene.other = other
    scene.patch = replace(PATCH, text=CHANGED)
    return scene


async def test_what_a_person_allowed_beforehand_costs_nothing_and_is_on_the_record() -> None:
    for policy, by in (
        ({"task": (A,)}, f"the task's may_change: {A}"),
        ({"may_change": ("tests/",)}, "the setting may_change: tests/"),
        ({"test_changes": "allow"}, 'the setting test_changes = "allow"'),
    ):
        scene = await contradicting(**policy)
        found = await scene.settle()
        assert found == replace(FACTS, contradicted=(A,), allowed_by=(by,))
        assert scene.attempt.state is AttemptState.CHECKING
        assert scene.home.all(Question) == []


@each_case(
    ("pattern", "check"),
    [
        ("tests/test_a.py", "tests.test_a.TestA.test_it"),
        ("tests/test_a.py", "test_a.TestA.test_it"),
        ("tests/**", "tests.test_a::test_it"),
        ("tests/*.py", "tests/test_a.py"),
    ],
)
async def test_a_permission_for_a_file_covers_its_tests_however_a_runner_calls_them(
    pattern: str, check: str
) -> None:
    scene = await contradicting(may_change=(pattern,))
    found = await scene.settle(check)
    assert found is not None
    assert found.allowed_by == (f"the setting may_change: {pattern}",)


async def test_a_permitted_check_that_only_no_longer_runs_is_on_the_record_as_removed() -> None:
    scene = await contradicting(test_changes="allow")
    found = await scene.settle(A, B, removed=(B,))
    assert found is not None
    assert (found.contradicted, found.removed) == ((A, B), (B,))


async def test_a_permission_for_one_check_leaves_the_others_to_be_decided() -> None:
    scene = await contradicting(may_change=(A,))
    assert await scene.settle(A, B) is None
    assert scene.attempt.gate_files == replace(FACTS, contradicted=(B,))


async def test_the_agent_has_one_turn_with_the_contradicted_checks() -> None:
    scene = await contradicting()
    before = scene.run
    assert await scene.settle() is None
    attempt, run = scene.attempt, scene.run
    assert (attempt.state, run.role, run.state) == (
        AttemptState.WORKING,
        Role.IMPLEMENTER,
        RunState.QUEUED,
    )
    assert (run.id != before.id, scene.home.told("checks_contradicted")) == (True, ["checks_contradicted"])
    assert attempt.gate_files is not None
    prompt = implementer(
        packaged("implementer"),
        scene.home.plan(),
        scene.home.task("a"),
        attempt,
        gates=(),
        contradicted=attempt.gate_files.contradicted,
    )
    assert f"- {A}\n" in prompt
    scene.home.hand.until(scene.leg, AttemptState.CHECKING)
    assert await scene.settle() is None
    assert scene.attempt.state is AttemptState.WAITING, "it has one turn, not two"
    assert scene.home.task("a").attempts == 0, "no attempt is used up"


async def test_then_a_person_is_asked_once_with_the_check_the_change_and_the_reason() -> None:
    scene = await contradicting(answer_within=60)
    await scene.after_turn("The task wants 2.")
    assert await scene.settle() is None
    asked = scene.question
    assert (asked.kind, asked.options, asked.deadline) == ("contradiction", ("accept", "reject"), None)
    for part in (f"- {A}", "The task wants 2.", "-assert f() == 1\n+assert f() == 2"):
        assert part in asked.text
    assert scene.home.task("a").status is TaskState.AWAITING_RESPONSE
    assert scene.attempt.verdict_id == VERDICT, "people are shown how its own checks ended"
    assert scene.home.task("b").status is TaskState.RUNNING, "everything else continues"


async def test_a_change_that_a_person_accepted_is_judged_again_and_may_land() -> None:
    scene = await contradicting()
    await scene.after_turn("The task wants 2.")
    await scene.settle()
    asked = scene.question.id
    await scene.decide("accept")
    assert (scene.attempt.state, scene.home.task("a").status) == (AttemptState.CHECKING, TaskState.RUNNING)
    found = await scene.settle()
    assert found == replace(
        FACTS, contradicted=(A,), allowed_by=(f"me (question {asked})",), reason="The task wants 2."
    )
    assert scene.home.all(Question, state=QuestionState.OPEN) == []


async def test_an_answer_holds_for_exactly_this_change_and_these_checks() -> None:
    scene = await contradicting()
    await scene.after_turn()
    await scene.settle()
    await scene.decide("accept")
    assert await scene.settle(A, B) is None
    assert f"- {B}" in scene.question.text
    await scene.decide("accept")
    assert await scene.settle(A, B) is not None
    scene.patch = replace(scene.patch, sha256="b" * 64)
    assert await scene.settle() is None, "another change is another decision"
    assert scene.attempt.state is AttemptState.WAITING


async def test_work_that_a_person_refused_fails_and_the_next_attempt_hears_why(wording: Wording) -> None:
    scene = await contradicting()
    await scene.after_turn()
    await scene.settle()
    await scene.home.ended(scene.leg)
    for text in ("accept, that is fine", "accept: fine", "Keep it", "3"):
        said = await scene.home.command("answer", scene.question.id, answer=text, other=True)
        assert said.state is CommandState.REFUSED
        assert said.result.startswith(f"{text!r} is neither accept nor reject")
    assert scene.attempt.state is AttemptState.WAITING, "words that are no decision decide nothing"
    await scene.decide("Reject: Keep it, clients use 1.")
    assert await scene.settle() is None
    first, second = scene.home.all(Attempt, task_id=scene.home.task("a").id, order_by=("n",))
    assert (first.state, first.failure) == (AttemptState.REJECTED, Failure.CONTRADICTION)
    wording(first.detail)
    assert f"- {A}\nThey said: Keep it, clients use 1." in second.evidence
    assert scene.home.task("a").attempts == 1


async def test_the_same_change_in_a_new_attempt_is_refused_without_another_question() -> None:
    scene = await contradicting()
    await scene.after_turn()
    await scene.settle()
    await scene.decide("reject")
    await scene.settle()
    await scene.home.ended(scene.leg)
    [scene.leg] = await scene.home.turn()
    scene.home.hand.until(scene.leg, AttemptState.CHECKING)
    assert await scene.settle() is None
    assert scene.attempt.failure is Failure.CONTRADICTION
    assert len(scene.home.all(Question)) == 1


async def test_work_by_hand_gets_no_turn_of_an_agent() -> None:
    scene = await contradicting()

    def by_hand(tx: Tx) -> None:
        tx.update(Attempt, scene.attempt.id, agent=HUMAN, model=None)

    scene.home.store.transact_sync("by hand", by_hand)
    assert await scene.settle() is None
    assert scene.attempt.state is AttemptState.WAITING
    assert "The agent gave no reason." in scene.question.text
    task, question = scene.home.task("a").id, scene.question.id
    scene.home.store.transact_sync("taken", lambda tx: tx.update(Task, task, taken_by="me"))
    refused = await scene.home.command("hand_back", task, base_sha="2" * 40, tip_sha="5" * 40)
    assert f"a waits for your answer to {short_id(question)}" in refused.result


async def test_a_reviewer_who_finds_nothing_wrong_allows_exactly_these_checks() -> None:
    scene = await contradicting(review=REVIEW)
    await scene.after_turn()
    assert await scene.settle() is None
    [review] = scene.home.all(Review)
    assert review.contradicted == (A,)
    await scene.answer(decision="approve")
    found = await scene.settle()
    assert found is not None
    assert found.allowed_by == (f"reviewer other (review {review.id})",)
    assert scene.home.all(Question) == []
    assert await scene.settle(A, B) is None, "the reviewer has not judged the second check"
    assert len(scene.home.all(Review)) == 2


async def test_a_reviewer_who_objects_sends_the_work_back() -> None:
    scene = await contradicting(review=REVIEW)
    await scene.after_turn()
    await scene.settle()
    blocks = {"file": "a.py", "line": 3, "severity": "blocking", "text": "Nothing asks for 2."}
    await scene.answer(blocks, decision="object")
    assert await scene.settle() is None
    assert (scene.attempt.state, scene.attempt.failure) == (AttemptState.REJECTED, Failure.REVIEW)
    assert scene.home.all(Question) == []


async def test_a_reviewer_without_a_result_or_without_the_whole_change_leaves_it_to_a_person() -> None:
    scene = await contradicting(review=REVIEW)
    await scene.after_turn()
    await scene.settle()
    await scene.answer(failed=Failed(failure=Failure.CANNOT_START, detail="no such program"))
    [review] = scene.home.all(Review)
    assert review.state is ReviewState.UNCLEAR
    assert await scene.settle() is None
    assert scene.question.kind == "contradiction"
    scene = await contradicting(review=REVIEW)
    scene.patch = replace(scene.patch, is_whole=False)
    await scene.after_turn()
    await scene.settle()
    await scene.answer(decision="approve")
    assert await scene.settle() is None
    assert scene.question.kind == "contradiction"


async def test_a_plan_of_which_only_undecided_work_is_left_is_held_until_the_answer(wording: Wording) -> None:
    scene = await contradicting()
    await scene.after_turn()
    await scene.settle()
    await scene.home.ended(scene.leg)
    await scene.home.turn()
    assert scene.home.loop().state is LoopState.RUNNING, "the other task still works"
    scene.home.hand.land(scene.other)
    await scene.home.ended(scene.other)
    await scene.home.turn()
    plan = scene.home.plan()
    assert plan.outcome is Outcome.NEEDS_HUMAN
    wording(plan.reason)
    assert scene.home.loop().state is LoopState.FAILED
    await scene.home.command("answer", scene.question.id, answer="accept")
    [scene.leg] = await scene.home.turn()
    assert scene.attempt.state is AttemptState.CHECKING
    assert (scene.home.plan().outcome, scene.home.plan().reason) == (None, "")


async def test_accepted_work_is_judged_although_the_budget_is_used_up() -> None:
    scene = await contradicting(max_cost=1_000_000)
    await scene.after_turn()
    await scene.settle()
    plan = scene.home.plan().id
    scene.home.store.transact_sync("spent", lambda tx: tx.update(Plan, plan, spent_micros=1_000_000))
    await scene.decide("accept")
    assert scene.attempt.state is AttemptState.CHECKING
