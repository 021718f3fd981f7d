"""Decide whether a candidate, the commit that would land, lands.

The engine fills a `Found` step by step. `judge_candidate` returns a decision, or the `Want` that names the
next missing fact: expensive facts, such as a gate run, are only collected if a decision needs them.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from loopwright.core.gates.contradictions import (
    ACCEPT,
    KIND,
    MOST,
    OPTIONS,
    REJECT,
    allowed_by,
    collapsed,
    contradicted,
    diff_of,
    file_of,
    has_had_its_turn,
    is_tampered,
    listed,
    missing_too_many,
    question,
)
from loopwright.core.gates.held_out import not_passed
from loopwright.core.gates.verdicts import evidence, first_line, of_installed
from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.policy.red_first import RedFound
from loopwright.core.policy.rounds import loops
from loopwright.core.replies.questions import Asking
from loopwright.core.replies.reviews import reasons
from loopwright.core.rows.model import Attempt, Plan, Review, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.patches import Patch
from loopwright.core.values.states import ReviewState

# --- what is known ---------------------------------------------------------------------------------------


class Want(StrEnum):
    """The next fact that a decision needs."""

    VERDICT = "verdict"
    """The verdict on the candidate as it is."""
    HELD_OUT = "held_out"
    """The verdict of the task's held-out checks."""
    ALONE = "alone"
    """Whether the attempt passes without what landed since it began."""
    ROUNDS = "rounds"
    """Whether enough rounds of a loop found nothing to change."""
    OLD_CHECKS = "old_checks"
    """The verdict on the candidate with its old judging files."""
    RED_PROOF = "red_proof"
    """Proof that the task's checks fail without its work."""
    DECISIONS = "decisions"
    """The change itself, and what users and reviewers decided about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """A reason why work does not land."""

    failure: Failure
    detail: str
    """The reason for people, in one line."""
    evidence: str = ""
    """The reason for the next attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """The result of an attempt on the commit that it began with."""

    passes: bool
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A change, and earlier decisions about it."""

    patch: Patch
    answers: tuple[Question, ...] = ()
    """Answered questions about contradicted checks of the task, the newest first."""
    reviews: tuple[Review, ...] = ()
    """Finished reviews of exactly this change, the newest first."""
    reason: str = ""
    """What the agent said about the contradicted checks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What is known about a candidate so far."""

    plan: Plan
    task: Task
    attempt: Attempt
    subfolder: str = ""
    """The project's folder in its repository."""
    by_hand: bool = False
    """Whether the user did the work."""
    objections: tuple[Objection, ...] = ()
    """Objections from before any check runs."""
    is_empty: bool = False
    """Whether the candidate changes nothing."""
    files: GateFiles = field(default_factory=GateFiles)
    """What the work did to judging files."""
    is_restored: bool = False
    """Whether the work changed judging files, so that it also ran with the old ones."""
    only_judging_files: bool = False
    """Whether the work changed nothing else."""
    verdict: Verdict | None = None
    verdict_id: str | None = None
    """The row of that verdict."""
    held_out: Verdict | None = None
    alone: Alone | None = None
    rounds_settled: bool | None = None
    old_checks: Verdict | None = None
    red: RedFound | None = None
    decided: Decided | None = None


# --- what can follow -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Land:
    """Put the candidate on the plan branch."""

    files: GateFiles
    review_id: str | None = None
    """The review of exactly this change; None if none was needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete:
    """Complete the task without a commit: no change was needed."""

    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """End the attempt because of its work."""

    objections: tuple[Objection, ...]
    files: GateFiles | None = None

    @property
    def failure(self) -> Failure:
        """The failure class, from the first objection."""
        return self.objections[0].failure

    @property
    def detail(self) -> str:
        """Everything for people."""
        return "; ".join(one.detail for one in self.objections)

    @property
    def evidence(self) -> str:
        """Everything for the next attempt."""
        return "\n\n".join(one.evidence for one in self.objections if one.evidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class CannotTell:
    """Do not blame the work: the checks could not run."""

    verdict: Verdict
    files: GateFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveTurn:
    """Show the agent, once, which existing checks its work contradicts."""

    files: GateFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class AskReviewer:
    """Have a reviewer read the change before it lands."""

    patch: Patch
    reasons: tuple[str, ...] = ()
    contradicted: tuple[str, ...] = ()
    """The checks that the review decides about."""
    files: GateFiles | None = None
    """The facts to record until then; None for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendBack:
    """Let the agent fix what a reviewer found."""

    review: Review
    files: GateFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPerson:
    """Let the user decide about contradicted checks."""

    asking: Asking
    files: GateFiles


Decision = Land | Complete | Reject | CannotTell | GiveTurn | AskReviewer | SendBack | AskPerson


# --- objections before any check runs --------------------------------------------------------------------


def base_taken_back() -> Objection:
    """Object to work that builds on commits that Loopwright removed from the plan branch."""
    detail = (
        "It builds on commits that an agent had put on the plan's branch, and they were taken off it again."
    )
    redo = f"{detail} Your workspace is without them: do it again."
    return Objection(failure=Failure.CONFLICT, detail=detail, evidence=redo)


def conflict_at(paths: Sequence[str], evidence: str) -> Objection:
    """Object to work that git cannot merge with what landed since it began."""
    detail = f"It changes the same places as work that landed since it began: {', '.join(paths)}"
    return Objection(failure=Failure.CONFLICT, detail=detail, evidence=evidence)


def early_objections(
    *, links: Sequence[str], documents: Sequence[str], rejected: tuple[int, str] | None
) -> tuple[Objection, ...]:
    """Object without running a check.

    `links` lead out of the project. `documents` of the task are unchanged. `rejected` is the number of an
    attempt with exactly this change that the user rejected, and the reason.
    """
    found = []
    if links:
        detail = f"It adds a link that leads out of the project: {'; '.join(links[:5])}"
        way = (
            "The target is not in the repository, so it is missing elsewhere: add the file itself. If the link is "
            "intended, name it in the task's scope."
        )
        found.append(Objection(failure=Failure.GATE, detail=detail, evidence=f"{detail}\n{way}"))
    if documents:
        detail = f"These documents are as they were when the plan began: {', '.join(documents)}"
        found.append(Objection(failure=Failure.GATE, detail=detail, evidence=detail))
    if rejected is not None:
        n, said = rejected
        detail = (
            f"It is exactly the change that a person rejected as attempt {n}, so it cannot land.\n\n{said}"
        )
        found.append(Objection(failure=Failure.NO_CHANGE, detail=detail, evidence=detail))
    return tuple(found)


# --- the decision ----------------------------------------------------------------------------------------


def judge_candidate(found: Found) -> Decision | Want:
    """Decide about a candidate, or name the next fact that the decision needs."""
    if found.objections:
        return Reject(objections=found.objections)
    if found.verdict is None:
        return Want.VERDICT
    verdict = found.verdict
    if found.task.held_out and verdict.status is VerdictStatus.PASSED:
        if found.held_out is None:
            return Want.HELD_OUT
        verdict = found.held_out
        if verdict.status is VerdictStatus.FAILED:
            detail, hints = not_passed(found.task.held_out, verdict)
            return _rejected(found, Failure.GATE, detail, hints)
    match verdict.status:
        case VerdictStatus.INCONCLUSIVE:
            return CannotTell(verdict=verdict, files=found.files)
        case VerdictStatus.FAILED:
            return _failed(found, verdict)
        case VerdictStatus.UNVERIFIED if not found.plan.policy.allow_unverified:
            detail = "nothing is configured to check it; its work is kept but does not land"
            return _rejected(found, Failure.UNVERIFIED, detail)
    return _without_change(found, verdict) if found.is_empty else _passed(found, found.verdict)


def _rejected(
    found: Found, failure: Failure, detail: str, evidence: str = "", files: GateFiles | None = None
) -> Reject:
    objection = Objection(failure=failure, detail=detail, evidence=evidence)
    return Reject(objections=(objection,), files=files or found.files)


def _failed(found: Found, verdict: Verdict) -> Decision | Want:
    """Reject work that fails its checks, and find out whether other landed work is the cause."""
    if found.is_empty:
        detail = "The agent said that it was done, but it changed nothing, and the checks do not pass."
        return _rejected(found, Failure.NO_CHANGE, detail, f"{detail}\n{evidence(verdict)}")
    why = of_installed(found.plan.policy, verdict)
    detail = first_line(verdict) + why
    # Nothing else lands beside the rounds of a loop, and each round begins with the result of the one before.
    if found.is_restored or loops(found.plan, found.task):
        return _rejected(found, Failure.GATE, detail, evidence(verdict) + why)
    if found.alone is None:
        return Want.ALONE
    failure = Failure.TOGETHER if found.alone.passes else Failure.GATE
    return _rejected(found, failure, detail, found.alone.evidence + why)


def _without_change(found: Found, verdict: Verdict) -> Decision | Want:
    """Complete a task without a change only if its own acceptance, or enough rounds of a loop, prove it."""
    if not (found.task.acceptance and verdict.status is VerdictStatus.PASSED):
        if found.rounds_settled is None:
            return Want.ROUNDS
        if not found.rounds_settled:
            detail = "The agent said that it was done, but it changed nothing."
            return _rejected(found, Failure.NO_CHANGE, detail, detail)
    return Complete(verdict=verdict)


def _passed(found: Found, verdict: Verdict) -> Decision | Want:
    """Decide about work that passes its own checks: old checks, red proof and review, in this order."""
    old = _old_checks(found, verdict)
    if not isinstance(old, _Contradicted):
        return old
    settled = _settled(found, old) if old.checks else old.files
    if not isinstance(settled, GateFiles):
        return settled
    if found.red is None:
        return Want.RED_PROOF
    files = found.red.noted_in(settled)
    if found.red.not_run:
        detail = "; ".join(found.red.not_run)
        why = (
            "These run without the work, so they have to run with it: a test that does not run shows nothing."
        )
        return _rejected(found, Failure.GATE, detail, f"{detail}\n{why}", files)
    return _reviewed(found, files)


# --- old checks ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contradicted:
    """The existing checks that the work contradicts."""

    files: GateFiles
    checks: tuple[str, ...]
    removed: tuple[str, ...]
    """Checks that no longer run."""


def _old_checks(found: Found, verdict: Verdict) -> _Contradicted | Decision | Want:
    """Find the existing checks that the work contradicts.

    If no judging file changed, its own verdict names them.
    """
    files = replace(found.files, missing=verdict.lost[:MOST])
    gone = verdict.lost if missing_too_many(verdict) else ()
    if not found.is_restored:
        return _Contradicted(files=files, checks=contradicted(verdict), removed=verdict.lost)
    if found.only_judging_files:
        # Without its changes to judging files, the candidate is the commit before it.
        return _Contradicted(files=replace(files, pinned_tree=None), checks=gone, removed=verdict.lost)
    old = found.old_checks
    if old is None:
        return Want.OLD_CHECKS
    if old.status is VerdictStatus.INCONCLUSIVE:
        if not old.as_before:
            return CannotTell(verdict=old, files=found.files)
        files = replace(files, pinned_tree=None)  # that run says nothing about the work
    if is_tampered(old):
        detail = f"With the tests and their configuration as before: {first_line(old)}"
        return _rejected(found, Failure.GATE, detail, f"{detail}\n\n{evidence(old)}")
    if checks := contradicted(old):
        return _Contradicted(files=files, checks=checks, removed=old.lost)
    return _Contradicted(files=files, checks=gone, removed=verdict.lost)


def _settled(found: Found, old: _Contradicted) -> GateFiles | Decision | Want:
    """Return the facts with who allowed each contradicted check, or who has to decide about them."""
    decided, policy = found.decided, found.plan.policy
    if decided is None:
        return Want.DECISIONS
    permissions = {one: allowed_by(one, policy, found.task.approved, old.files.pinned) for one in old.checks}
    left = tuple(one for one, by in permissions.items() if not by)

    def allowed(by: str = "") -> GateFiles:
        return replace(
            old.files,
            contradicted=old.checks,
            allowed_by=tuple(permissions[one] or by for one in old.checks),
            removed=tuple(one for one in old.checks if one in old.removed),
            reason=decided.reason,
        )

    if not left:
        return allowed()
    files = replace(old.files, contradicted=left)
    key = decision_key(decided.patch, left)
    answer = next((one for one in decided.answers if one.key == key), None)
    if answer is not None:
        if answer.answer == ACCEPT:
            return allowed(f"{answer.answered_by} (question {answer.id})")
        return _refused(found, answer, left, files)
    if not found.by_hand and not has_had_its_turn(found.attempt):
        return GiveTurn(files=files)
    if policy.review.mode != "off" or policy.review.agent:
        review = next((one for one in decided.reviews if set(left) <= set(one.contradicted)), None)
        if review is None:
            return AskReviewer(patch=decided.patch, contradicted=left, files=files)
        if review.state is ReviewState.BLOCKING:
            return SendBack(review=review, files=found.files)
        if review.state is ReviewState.CLEAR and review.shown_whole:
            return allowed(f"reviewer {review.agent} (review {review.id})")
    return AskPerson(asking=_asking(found, decided, files, old.removed, key), files=files)


def decision_key(patch: Patch, checks: Sequence[str]) -> str:
    """Return the key of the user's decision: exactly this change and these checks."""
    return hashlib.sha256("\n".join((patch.sha256, *checks)).encode()).hexdigest()


def _refused(found: Found, answer: Question, checks: Sequence[str], files: GateFiles) -> Reject:
    names = collapsed(checks)
    words = (answer.answer or "").removeprefix(REJECT).lstrip(": ")
    said = f"\nThey said: {words}" if words else ""
    detail = f"a person wants these checks kept: {', '.join(names[:5])}"
    kept = f"A person wants these checks kept as they are:\n{listed(names)}{said}"
    return _rejected(found, Failure.CONTRADICTION, detail, kept, files)


def _asking(found: Found, decided: Decided, files: GateFiles, removed: Collection[str], key: str) -> Asking:
    top = f"{found.subfolder}/" if found.subfolder else ""
    shown = {f"{top}{path}" for path in (*map(file_of, files.contradicted), *files.pinned)}
    diff = diff_of(decided.patch, shown)
    text = question(found.task.key, files.contradicted, removed, reason=decided.reason, diff=diff)
    return Asking(kind=KIND, text=text, options=OPTIONS, key=key)


# --- review ----------------------------------------------------------------------------------------------


def _reviewed(found: Found, files: GateFiles) -> Decision | Want:
    """Land the work if no review is needed or the review of exactly this change does not block it."""
    policy, decided = found.plan.policy.review, found.decided
    if policy.mode == "off":
        return Land(files=files)
    if decided is None:
        return Want.DECISIONS
    why = reasons(policy, decided.patch, files, subfolder=found.subfolder, complexity=found.task.complexity)
    if not why:
        return Land(files=files)
    # A review of contradicted checks reads the whole change too. An inconclusive review had a single call, and
    # the user decided about the checks alone, so the change still needs a review.
    known = [one for one in decided.reviews if not (one.contradicted and one.state is ReviewState.UNCLEAR)]
    if not known:
        return AskReviewer(patch=decided.patch, reasons=why)
    if known[0].state is ReviewState.BLOCKING:
        return SendBack(review=known[0], files=files)
    return Land(files=files, review_id=known[0].id)
