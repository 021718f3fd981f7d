"""Views of reviews, for people and programs."""

from dataclasses import dataclass

from loopwright.core.receipts.events import OVERRIDES, in_words, overrides
from loopwright.core.replies.reviews import Finding, blocking
from loopwright.core.rows.model import Attempt, Plan, Review, Role, Run, Task
from loopwright.core.values.states import ReviewState
from loopwright.engine.rows.moves import MACHINE
from loopwright.ports import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewView:
    """One review of an attempt."""

    id: str
    n: int
    state: ReviewState
    agent: str
    model: str | None
    run_id: str
    patch_sha256: str
    reasons: tuple[str, ...]
    problem: str
    summary: str
    findings: tuple[Finding, ...]

    @property
    def in_words(self) -> str:
        """The result as part of a line."""
        by = " ".join(filter(None, (self.agent, self.model)))
        opinions = sum(one not in blocking(self.findings) for one in self.findings)
        also = f", {opinions} opinions" if opinions > 1 else ", 1 opinion" if opinions else ""
        match self.state:
            case ReviewState.ASKED:
                return f"{by} looks at it"
            case ReviewState.CLEAR:
                return f"{by} found nothing that keeps it from landing{also}"
            case ReviewState.BLOCKING:
                return f"{by} objects to {len(blocking(self.findings))}{also}"
            case ReviewState.UNCLEAR:
                return f"{by} had no result: {self.problem}"
            case _:
                return f"{by} did not come to its end"


def reviews_of(tx: Tx, attempt: Attempt) -> tuple[ReviewView, ...]:
    """Return the reviews of an attempt, in order, and an earlier attempt's review that applied to it."""
    found = tx.find(Review, attempt_id=attempt.id, order_by=("created_at",))
    if attempt.review_id and attempt.review_id not in {one.id for one in found}:
        found = [*tx.find(Review, id=[attempt.review_id]), *found]
    return tuple(
        ReviewView(
            id=one.id,
            n=one.n,
            state=one.state,
            agent=one.agent,
            model=one.model,
            run_id=one.run_id,
            patch_sha256=one.patch_sha256,
            reasons=one.reasons,
            problem=one.problem,
            summary=one.summary,
            findings=one.findings,
        )
        for one in found
    )


def newest_reviews(tx: Tx, plan: Plan) -> dict[str, ReviewState]:
    """Return the state of each attempt's newest review, if it has one."""
    if plan.policy.review.mode == "off":
        return {}
    return {one.attempt_id: one.state for one in tx.find(Review, plan_id=plan.id, order_by=("created_at",))}


def reviewer_at_work(attempt: Attempt | None, runs: list[Run]) -> str:
    """Return the agent that is reviewing an attempt; empty if there is none."""
    if attempt is None:
        return ""
    return next(
        (one.agent or "" for one in runs if one.id == attempt.run_id and one.role is Role.REVIEWER), ""
    )


# The user's decisions about a task.


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionView:
    """One decision of the user."""

    at: str
    actor: str
    type: str
    words: str
    """The decision and its note, on one line."""
    note: str


def decisions_about(tx: Tx, task: Task) -> tuple[DecisionView, ...]:
    """Return the user's decisions about a task, the oldest first."""
    found = overrides(
        tx.events(plan=task.plan_id, task=task.id, types=tuple(sorted(OVERRIDES))), machine=MACHINE
    )
    return tuple(
        DecisionView(at=one.at, actor=one.actor, type=one.type, words=in_words(one), note=one.note)
        for one in found
    )
