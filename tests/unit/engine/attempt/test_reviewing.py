"""When a candidate has to be reviewed, and what follows from what was found: the engine's own moves over rows."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each_case
from tests.doubles import Home, planned
from tests.wording_plugin import Wording

from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.policy.landing import AskPerson, AskReviewer, Decision, Found, Land
from loopwright.core.policy.red_first import RedFound
from loopwright.core.policy.retry import Failed
from loopwright.core.rows.model import Attempt, Leg, Plan, Review, Role, Run, Task
from loopwright.core.rows.waiting_rows import Envelope
from loopwright.core.values.accounts import Account
from loopwright.core.values.errors import FenceLost
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.patches import ChangedFile, Patch
from loopwright.core.values.permissions import Access
from loopwright.core.values.policy import Policy, ReviewPolicy
from loopwright.core.values.states import AttemptState, EnvelopeState, ReviewState, RunState, TaskState
from loopwright.engine.attempt.agent_brief import review_fixes
from loopwright.engine.attempt.candidates import Built
from loopwright.engine.attempt.cleanup import tidy_attempt
from loopwright.engine.attempt.land import apply
from loopwright.engine.attempt.landing_line import Landing
from loopwright.engine.attempt.reviewing import author_of, give_up, take_in
from loopwright.engine.memory.interrupts import Interrupted
from loopwright.engine.money.quotas import account_of
from loopwright.engine.money.spending import allowance, review_cap
from loopwright.engine.people.handover import HUMAN
from loopwright.engine.processes.runs import Ended
from loopwright.engine.rows.legs import Rows
from loopwright.engine.rows.moves import cancel_attempt, need
from loopwright.ports import AgentResult, Candidate, Exit, Tx

PATCH = Patch(
    sha256="a" * 64, files=(ChangedFile(path="a.py", spans=((1, 9),), added=9),), text="", is_whole=True
)
CANDIDATE = Candidate(parent="1" * 40, sha="2" * 40, tree="3" * 40, empty=False)
BLOCKS = {"file": "a.py", "line": 3, "severity": "blocking", "text": "It breaks for 3."}


class Reviewed:
    """A home with one attempt whose gates have passed, and whose changes can be chosen."""

    def __init__(self, home: Home, leg: Leg) -> None:
        self.home = home
        self.leg = leg
        self.patch = PATCH
        self.removed: list[str] = []
        home.repository.patch = self._patch  # type: ignore[attr-defined]
        home.repository.has_workspace = lambda _path: True  # type: ignore[attr-defined]

    async def _patch(self, old: str, new: str) -> Patch:
        return self.patch

    @property
    def attempt(self) -> Attempt:
        return self.home.get(Attempt, self.leg.subject)

    @property
    def run(self) -> Run:
        return self.home.get(Run, self.attempt.run_id)

    async def judge(self, found: Found) -> Decision:
        """Decide about the candidate, and do whatever else than landing was decided."""
        found, decision = await self.built.decide(found, asyncio.Event())
        if not isinstance(decision, Land):
            await apply(self.built, found, decision)
        return decision

    @property
    def built(self) -> Built:
        home = self.home
        landing = Landing(
            world=home.world,
            repository=home.repository,  # type: ignore[arg-type]
            project=home.project(),
            plan=home.plan(),
            task=home.task("a"),
            attempt=self.attempt,
            fence=self.leg.fence,
        )
        return Built(landing=landing, tip=CANDIDATE.parent, candidate=CANDIDATE)

    async def look(self, facts: GateFiles | None = None, contradicted: tuple[str, ...] = ()) -> Decision:
        """Let the landing decide about a candidate that passes its checks, after the agent had its turn."""
        turned = GateFiles(contradicted=contradicted)
        found = replace(
            self.built.found(),
            attempt=replace(self.attempt, gate_files=turned),
            files=facts or GateFiles(),
            verdict=Verdict(status=VerdictStatus.PASSED, lost=contradicted),
            red=RedFound(),
        )
        return await self.judge(found)

    def begin(self) -> None:
        """Let the agent that is due start."""
        self.home.hand.go_on(self.leg)
        assert self.run.state is RunState.RUNNING

    async def answer(
        self,
        *findings: Any,
        words: str | None = None,
        failed: Failed | None = None,
        decision: str | None = None,
    ) -> None:
        """Let the reviewer start and come to this."""
        if self.run.state is RunState.QUEUED:
            self.begin()
        home, now = self.home, self.home.clock.now()
        end = Exit(
            code=0, ended_by="itself", started_at=now, ended_at=now, output_bytes=0, output_sha256="0" * 64
        )
        said = (
            {"decision": decision, "summary": "I looked.", "findings": list(findings)}
            if words is None
            else None
        )
        result = AgentResult(claimed=failed is None, summary=words or "", structured=said, model="told")
        rows = Rows(
            project=home.project(),
            loop=home.loop(),
            plan=home.plan(),
            task=home.task("a"),
            attempt=self.attempt,
        )
        ended = Ended(exit=end, interrupted=False, result=result)
        await take_in(home.world, rows, self.run, ended, failed, fence=self.leg.fence)


def is_landed(decision: Decision, review_id: str | None) -> bool:
    return isinstance(decision, Land) and decision.review_id == review_id


async def checked(**review: Any) -> Reviewed:
    home = await Home().launch()
    policy = Policy(review=ReviewPolicy(**{"mode": "always", "agent": "other", "model": "big"} | review))
    home.submit(planned("a"), policy=policy)
    [leg] = await home.turn()
    home.hand.until(leg, AttemptState.CHECKING)
    return Reviewed(home, leg)


async def test_nothing_is_asked_where_no_review_is_wanted() -> None:
    for policy in ({"mode": "off"}, {"mode": "risky"}):
        scene = await checked(**policy)
        assert is_landed(await scene.look(), None)
        assert scene.home.all(Review) == []
    assert isinstance(await scene.look(GateFiles(build_files=("t.py",))), AskReviewer), (
        "a risky one is looked at"
    )


async def test_a_review_is_asked_of_another_agent_that_may_only_read(wording: Wording) -> None:
    scene = await checked()
    author = scene.run
    assert not isinstance(await scene.look(), Land)
    [review] = scene.home.all(Review)
    assert (review.state, review.n, review.agent, review.model) == (ReviewState.ASKED, 1, "other", "big")
    assert (review.parent_sha, review.candidate_sha) == (CANDIDATE.parent, CANDIDATE.sha)
    assert review.patch_sha256 == PATCH.sha256
    wording(review.reasons)
    run = scene.run
    assert (run.role, run.state, run.label, run.agent) == (Role.REVIEWER, RunState.QUEUED, review.id, "other")
    assert run.permission_mode == Access.READ_ONLY
    assert scene.attempt.state is AttemptState.WORKING
    assert scene.home.store.read_sync(lambda tx: author_of(tx, scene.attempt)) == author
    assert scene.home.told("review_asked", "review_ended") == ["review_asked"]


async def test_without_an_agent_of_its_own_the_authors_looks_in_a_run_of_its_own() -> None:
    scene = await checked(agent=None, model=None)
    await scene.look()
    assert (scene.run.agent, scene.run.session_ref, scene.run.role) == ("claude", None, Role.REVIEWER)


async def test_a_second_run_of_the_same_leg_asks_nobody_again() -> None:
    scene = await checked()
    await scene.look()
    with pytest.raises(FenceLost):
        await scene.look()
    assert len(scene.home.all(Review)) == 1


async def test_a_person_who_stops_it_comes_first() -> None:
    scene = await checked()
    await scene.home.command("cancel", scene.home.task("a").id)
    with pytest.raises(Interrupted):
        await scene.look()


async def test_a_clear_review_lets_exactly_this_change_land() -> None:
    scene = await checked()
    author = scene.run.id
    await scene.look()
    await scene.answer({**BLOCKS, "severity": "opinion"})
    [review] = scene.home.all(Review)
    assert (review.state, review.model, len(review.findings)) == (ReviewState.CLEAR, "told", 1)
    assert (scene.attempt.state, scene.attempt.run_id) == (AttemptState.CHECKING, author)
    assert is_landed(await scene.look(), review.id), "also after the branch moved: the change is the same"
    scene.patch = replace(PATCH, sha256="b" * 64)
    assert not isinstance(await scene.look(), Land), "another change is looked at anew"
    assert [one.n for one in scene.home.all(Review, order_by=("created_at",))] == [1, 2]


@pytest.mark.capability("C044")
async def test_blocking_findings_go_back_to_the_author() -> None:
    scene = await checked()
    author = scene.run
    await scene.look()
    scene.home.clock.advance(1)
    await scene.answer(BLOCKS)
    scene.home.clock.advance(1)
    assert not isinstance(await scene.look(), Land)
    [review] = scene.home.all(Review)
    attempt, run = scene.attempt, scene.run
    assert (attempt.state, attempt.fix_turns, attempt.review_id) == (AttemptState.WORKING, 1, review.id)
    assert (run.role, run.state, run.agent) == (Role.IMPLEMENTER, RunState.QUEUED, author.agent)
    told = scene.home.store.read_sync(lambda tx: review_fixes(tx, attempt, author))
    assert ([one.text for one in told.findings], told.is_new) == (["It breaks for 3."], True)
    again = scene.home.store.read_sync(lambda tx: review_fixes(tx, attempt, run))
    assert (again.findings, again.is_new) == (told.findings, False), "one that was interrupted hears it again"


async def test_after_its_turns_the_attempt_is_rejected_with_the_findings_as_evidence(
    wording: Wording,
) -> None:
    scene = await checked(max_turns=1)
    await scene.look()
    await scene.answer(BLOCKS)
    await scene.look()
    scene.home.hand.until(scene.leg, AttemptState.CHECKING)
    assert not isinstance(await scene.look(), Land), "the author changed nothing, so the same review stands"
    first, second = scene.home.all(Attempt, order_by=("n",))
    assert (first.state, first.failure) == (AttemptState.REJECTED, Failure.REVIEW)
    wording(first.detail)
    assert "- a.py:3: It breaks for 3." in second.evidence
    assert scene.home.task("a").attempts == 1
    assert len(scene.home.all(Review)) == 1, "the same change was not paid for twice"


async def test_without_turns_the_attempt_is_rejected_at_once() -> None:
    scene = await checked(max_turns=0)
    await scene.look()
    await scene.answer(BLOCKS)
    await scene.look()
    assert scene.attempt.state is AttemptState.REJECTED


async def test_what_a_person_did_is_looked_at_by_the_plans_agent_and_goes_back_to_the_person(
    wording: Wording,
) -> None:
    scene = await checked(agent=None, model=None, max_turns=2)

    def by_hand(tx: Tx) -> None:
        tx.update(Attempt, scene.attempt.id, agent=HUMAN, model=None)
        tx.update(Task, scene.attempt.task_id, taken_by="person", taken_dir="/mine")

    scene.home.store.transact_sync("by hand", by_hand)
    await scene.look()
    assert (scene.run.agent, scene.run.role) == ("claude", Role.REVIEWER)
    await scene.answer(BLOCKS)
    assert not isinstance(await scene.look(), Land)
    task = scene.home.task("a")
    assert scene.attempt.state is AttemptState.REJECTED
    wording(scene.attempt.detail)
    assert (task.status, task.taken_by, task.attempts) == (TaskState.QUEUED, "person", 0)


async def test_a_new_attempt_with_the_same_change_is_held_against_the_review_there_was() -> None:
    scene = await checked(max_turns=0)
    await scene.look()
    await scene.answer(BLOCKS)
    await scene.look()
    await scene.home.ended(scene.leg)
    [scene.leg] = await scene.home.turn()
    scene.home.hand.until(scene.leg, AttemptState.CHECKING)
    await scene.look()
    assert scene.attempt.failure is Failure.REVIEW
    assert len(scene.home.all(Review)) == 1


async def test_an_answer_that_cannot_be_read_is_asked_for_once_more_and_then_is_no_result() -> None:
    scene = await checked()
    await scene.look()
    first = scene.run
    await scene.answer(words="LGTM")
    [review] = scene.home.all(Review)
    assert (review.state, review.tries) == (ReviewState.ASKED, 1)
    assert (scene.attempt.state, scene.run.state) == (AttemptState.WORKING, RunState.QUEUED)
    assert (scene.run.id != first.id, scene.run.label, review.run_id) == (True, review.id, scene.run.id)
    await scene.answer(words="LGTM!")
    [review] = scene.home.all(Review)
    assert (review.state, review.tries) == (ReviewState.UNCLEAR, 2)
    assert "no block" in review.problem
    assert is_landed(await scene.look(), review.id), "it lands, and is told and capped"
    assert len(scene.home.all(Run, role=Role.REVIEWER)) == 2


async def test_a_reviewer_that_mends_its_answer_is_heard() -> None:
    scene = await checked()
    await scene.look()
    await scene.answer(words="LGTM")
    await scene.answer(BLOCKS)
    [review] = scene.home.all(Review)
    assert (review.state, review.problem, review.tries) == (ReviewState.BLOCKING, "", 1)


async def test_a_reviewer_that_fails_is_tried_again_unless_that_is_hopeless(wording: Wording) -> None:
    scene = await checked()
    await scene.look()
    await scene.answer(failed=Failed(failure=Failure.CRASH, detail="it died"))
    assert scene.run.state is RunState.QUEUED
    scene = await checked()
    await scene.look()
    await scene.answer(failed=Failed(failure=Failure.CANNOT_START, detail="no such program"))
    [review] = scene.home.all(Review)
    assert review.state is ReviewState.UNCLEAR
    wording(review.problem)


async def test_an_attempt_that_is_cancelled_waits_for_no_reviewer() -> None:
    scene = await checked()
    await scene.look()
    scene.begin()
    await scene.home.command("cancel", scene.home.task("a").id)
    await scene.answer(BLOCKS)
    assert scene.attempt.state is AttemptState.CANCELLED
    assert [one.state for one in scene.home.all(Review)] == [ReviewState.WITHDRAWN]
    assert scene.home.task("a").status is TaskState.CANCELLED


async def test_a_reviewer_that_waits_for_its_account_goes_on_as_the_reviewer() -> None:
    scene = await checked()
    await scene.look()
    scene.home.hand.limit(
        scene.leg, Failure.USAGE_LIMIT, retry_at=scene.home.clock.now() + timedelta(hours=1)
    )
    await scene.home.ended(scene.leg)
    assert scene.home.get(Envelope, "other/default").state is EnvelopeState.CLOSED
    assert await scene.home.turn() == [], "the author's account is open, but it is the reviewer that waits"
    scene.home.clock.advance(7200)
    [scene.leg] = await scene.home.turn()
    [review] = scene.home.all(Review)
    assert (scene.run.role, scene.run.label, review.run_id) == (Role.REVIEWER, review.id, scene.run.id)
    await scene.answer()
    assert is_landed(await scene.look(), review.id)


async def test_a_reviewer_does_not_stay_with_the_account_of_the_authors_conversation() -> None:
    scene = await checked(agent="claude")
    author = scene.run
    await scene.look()
    accounts = {"claude": (Account(name="one"), Account(name="two"))}
    attempt = replace(scene.attempt, account="two")

    def drawn(run: Run) -> str | None:
        return scene.home.store.read_sync(lambda tx: account_of(tx, accounts, attempt, run))

    assert (drawn(author), drawn(scene.run)) == ("two", "one")


async def test_the_tree_in_which_work_done_by_hand_was_looked_at_is_tidied_away_with_its_attempt() -> None:
    scene = await checked()
    removed: list[str] = []

    async def remove(path: Path) -> None:
        removed.append(path.name)

    scene.home.repository.remove_workspace = remove  # type: ignore[method-assign]
    by_hand = {"agent": HUMAN, "model": None, "workspace": None}
    scene.home.store.transact_sync("by hand", lambda tx: tx.update(Attempt, scene.attempt.id, **by_hand))
    await scene.look()
    scene.begin()
    (review,) = scene.home.all(Review)
    scene.home.store.transact_sync(
        "cancelled", lambda tx: cancel_attempt(tx, scene.attempt, fence=scene.leg.fence)
    )
    home = scene.home
    await tidy_attempt(home.world, home.project(), home.plan(), scene.attempt)
    assert removed == [review.id]
    assert scene.attempt.cleaned_at is not None


CHECK = "tests/test_a.py::test_old"


async def test_contradicted_checks_are_reviewed_wherever_a_reviewer_is_named() -> None:
    scene = await checked(mode="off", agent=None)
    assert isinstance(await scene.look(contradicted=(CHECK,)), AskPerson), "no reviewer is named"
    scene = await checked(mode="off")
    assert is_landed(await scene.look(), None)
    assert isinstance(await scene.look(contradicted=(CHECK,)), AskReviewer)
    [review] = scene.home.all(Review)
    assert review.contradicted == (CHECK,)
    await scene.answer(decision="approve")
    assert isinstance(await scene.look(contradicted=(CHECK,)), Land)
    assert scene.home.get(Review, review.id).state is ReviewState.CLEAR
    decision = await scene.look(contradicted=("another",))
    assert isinstance(decision, AskReviewer), "the reviewer did not approve that one"


@each_case(
    "said",
    [
        {},
        {"decision": "unclear"},
        {"decision": "object"},
        {"words": "LGTM, approve"},
        {"failed": Failed(failure=Failure.CRASH, detail="it died")},
    ],
)
def test_a_decision_about_contradicted_checks_takes_one_call_and_is_unclear_without_an_approval(
    said: dict[str, Any],
) -> None:
    async def play() -> Reviewed:
        scene = await checked()
        await scene.look(contradicted=(CHECK,))
        await scene.answer(**said)
        return scene

    scene = asyncio.run(play())
    [review] = scene.home.all(Review)
    assert review.state is ReviewState.UNCLEAR
    assert review.problem
    assert len(scene.home.all(Run, role=Role.REVIEWER)) == 1


async def test_a_reviewer_may_cost_a_share_of_what_the_work_has_cost() -> None:
    scene = await checked()
    author = scene.run
    await scene.look()

    def allowed(worked: int | None) -> int | None:
        def look(tx: Tx) -> int | None:
            tx.update(Run, author.id, cost_micros=worked)
            return allowance(
                tx, scene.home.world, need(tx.get(Plan, scene.run.plan_id), "the plan"), scene.run
            )

        return scene.home.store.transact_sync("cost", look)

    assert allowed(1_000_000) == 150_000
    assert allowed(None) is None, "nobody knows what the work has cost"
    assert scene.home.store.read_sync(lambda tx: review_cap(tx, author)) is None


async def test_a_reviewer_that_may_not_start_leaves_an_unclear_review() -> None:
    scene = await checked()
    await scene.look(contradicted=(CHECK,))
    rows = Rows(
        project=scene.home.project(),
        loop=scene.home.loop(),
        plan=scene.home.plan(),
        task=scene.home.task("a"),
        attempt=scene.attempt,
    )
    await give_up(scene.home.world, rows, scene.run, "the account is closed", fence=scene.leg.fence)
    [review] = scene.home.all(Review)
    assert (review.state, review.problem) == (ReviewState.UNCLEAR, "the account is closed")
    assert (scene.attempt.state, scene.run.role) == (AttemptState.CHECKING, Role.IMPLEMENTER)
    assert isinstance(await scene.look(contradicted=(CHECK,)), AskPerson)
