"""A receipt as values: every name here is a key of its JSON, and its JSON Schema follows from the types.

An unknown, missing or misshapen field is refused, so nothing in a receipt escapes verification. A change to these
types is a new version of the format.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from loopwright.core.gates.flakes import FOLDERS
from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.policy.finishing import WAYS
from loopwright.core.policy.graph import strayed
from loopwright.core.policy.red_first import RedProof
from loopwright.core.receipts.events import CheckoutChange, Override
from loopwright.core.receipts.gaps import Gap, Note
from loopwright.core.replies.doc_sync import DocSync
from loopwright.core.replies.qa import AREAS, Checked, ReportedIssue
from loopwright.core.replies.reviews import Finding, Severity
from loopwright.core.rows.model import Outcome, Role, Usage
from loopwright.core.values.containment import MadeWith
from loopwright.core.values.documents import document, readable
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import CheckStatus, CommandFacts, VerdictStatus
from loopwright.core.values.policy import GateCommand, HeldOut
from loopwright.core.values.shapes import (
    AttemptId,
    Count,
    FinishId,
    Misshapen,
    PlanId,
    ReviewId,
    RunId,
    Sha,
    TaskId,
    VerdictId,
    decode,
    one_of,
)
from loopwright.core.values.states import (
    AttemptState,
    FinishState,
    PlanState,
    ReviewState,
    RunState,
    TaskState,
)
from loopwright.core.values.templates import UsedTemplate

SCHEMA: Final = "loopwright.receipt/2"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectEntry:
    """The project of the plan."""

    id: str
    name: str
    subfolder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEntry:
    """The settings of a plan that affect the meaning of its outcome."""

    agent: str
    model: str | None
    permission_mode: str
    max_attempts: Count
    allow_unverified: bool
    unseen_proof: bool
    red_proof: RedProof
    gate_files: tuple[str, ...]
    may_change: tuple[str, ...]
    test_changes: Annotated[str, one_of(("ask", "allow"))]
    installed_gates: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignCommit:
    """A commit on the plan branch that neither landed a task nor removed one."""

    sha: Sha
    subject: str
    gate_files: tuple[str, ...]
    """The judging files that it changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEntry:
    """The plan: its base, its result, and what every tree had to pass."""

    id: PlanId
    title: str
    status: PlanState
    reason: str
    source_sha256: str
    branch: str
    base_ref: str
    base_sha: Sha
    result_sha: Sha | None
    result_tree: Sha | None
    diff_sha256: str | None
    not_ours: tuple[ForeignCommit, ...]
    fix_cycles: Count
    doc_sync: tuple[DocSync, ...]
    red_on_base: tuple[str, ...]
    """Acceptance commands that failed on the base commit."""
    contradicted: tuple[str, ...]
    """Checks of the base commit that the result contradicts."""
    allowed_by: tuple[str, ...]
    """Who allowed each of them."""
    setup: GateCommand | None
    gates: tuple[GateCommand, ...]
    policy_sha256: str
    policy: PolicyEntry
    created_at: str | None
    executed_at: str | None
    completed_at: str | None
    verified_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEntry:
    """One attempt at a task."""

    id: AttemptId
    n: Count
    state: AttemptState
    failure: Failure | None
    detail: str
    wait_reason: str
    agent: str | None
    model: str | None
    base_sha: Sha | None
    tip_sha: Sha | None
    touched: tuple[str, ...]
    candidate_sha: Sha | None
    candidate_tree: Sha | None
    verdict_id: VerdictId | None
    gate_files: GateFiles | None
    review_id: ReviewId | None
    fix_turns: Count
    created_at: str | None
    ended_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """A task: its description, and the results of its attempts."""

    id: TaskId
    key: str
    title: str
    origin: str
    type: str
    prove: bool
    manual: bool
    status: TaskState
    failure: Failure | None
    reason: str
    depends_on: tuple[str, ...]
    described_sha256: str
    criteria: Count
    scope: tuple[str, ...]
    approved: tuple[str, ...]
    acceptance: tuple[GateCommand, ...]
    held_out: tuple[HeldOut, ...]
    landed_sha: Sha | None
    tree: Sha | None
    parent_sha: Sha | None
    diff_sha256: str | None
    attempts: tuple[AttemptEntry, ...]

    @property
    def landed(self) -> AttemptEntry | None:
        """The attempt that landed."""
        if self.landed_sha is None:
            return None
        return next((one for one in self.attempts if one.candidate_sha == self.landed_sha), None)

    @property
    def gate_files(self) -> GateFiles:
        """The changes of the landed attempt to judging files."""
        return (self.landed and self.landed.gate_files) or GateFiles()

    @property
    def strayed(self) -> tuple[str, ...]:
        """The files outside its scope that the landed attempt changed."""
        return strayed(self.landed.touched, self.scope) if self.landed else ()

    @property
    def is_passed_by_word(self) -> bool:
        """Whether the user marked it complete: nothing landed, and no attempt finished."""
        ended = any(one.state is AttemptState.LANDED for one in self.attempts)
        return self.status is TaskState.COMPLETE and self.landed_sha is None and not ended

    @property
    def is_settled_by_hand(self) -> bool:
        """Whether it is a manual step that the user did or skipped."""
        return self.manual and self.status in (TaskState.COMPLETE, TaskState.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEntry(TaskFacts):
    """A task with the outcome that follows from the facts."""

    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCounts:
    """How many checks of a verdict had each status."""

    passed: Count
    failed: Count
    skipped: Count
    error: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class BadCheck:
    """A check that did not pass."""

    name: str
    status: CheckStatus
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunEntry:
    """Commands that ran again, because they may have failed by chance."""

    folder: Annotated[str, one_of(FOLDERS)]
    alone: bool
    commands: tuple[CommandFacts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictEntry:
    """The verdict of one list of commands on one tree."""

    id: VerdictId
    tree: Sha
    gate_key: str
    run_id: RunId
    status: VerdictStatus
    reason: str
    unknown_before: str
    left_open: tuple[str, ...]
    notes: tuple[str, ...]
    sha256: str
    checks: CheckCounts
    bad: tuple[BadCheck, ...]
    commands: tuple[CommandFacts, ...]
    reruns: tuple[RerunEntry, ...]
    created_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewEntry:
    """The facts of a review: which change it saw, and how many findings it has."""

    id: ReviewId
    task_id: TaskId
    attempt_id: str
    n: Count
    run_id: RunId
    agent: str
    model: str | None
    parent_sha: str
    candidate_sha: str
    patch_sha256: str
    shown_whole: bool
    tries: Count
    problem: str
    state: ReviewState
    reasons: tuple[str, ...]
    contradicted: tuple[str, ...]
    blocking: Count
    opinions: Count
    said_sha256: str
    created_at: str | None
    ended_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewClaim:
    """A reviewer's statement. Nothing checks whether it is true."""

    id: ReviewId
    summary: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpinionRemark:
    """One remark of a plan evaluator."""

    task: str
    severity: Severity
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """An evaluator's statement about the plan before it ran. Nothing checks whether it is true."""

    id: PlanId
    agent: str
    model: str | None
    summary: str
    findings: tuple[OpinionRemark, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QaReviewEntry:
    """The facts of a QA review: which commit it saw, and how many issues it reports."""

    id: AttemptId
    task_id: TaskId
    run_id: RunId | None
    commit: Sha | None
    state: AttemptState
    mode: Annotated[str, one_of(AREAS)]
    areas: tuple[str, ...]
    issues: Count
    by_gate: Count
    fixes: tuple[TaskId, ...]
    report_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QaReportEntry:
    """A QA agent's report. Nothing checks whether it is true."""

    id: AttemptId
    summary: str
    checked: tuple[Checked, ...]
    issues: tuple[ReportedIssue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """One agent process, or one gate execution."""

    id: RunId
    task_id: str | None
    attempt_id: str | None
    label: str
    agent: str | None
    account: str | None
    agent_version: str | None
    model: str | None
    permission_mode: str | None
    sandbox: str | None
    prompt_sha256: str | None
    exit_code: int | None
    ended_by: str
    cost_micros: Count | None
    cost_estimated: bool
    output_sha256: str | None
    output_bytes: Count | None
    files_sha256: str
    reused_run_id: str | None
    sandbox_made_with: MadeWith | None
    template: UsedTemplate | None
    ended_event: Sha | None
    """The hash of the event that ended it."""
    role: Role
    state: RunState
    failure: Failure | None
    usage: Usage
    created_at: str | None
    started_at: str | None
    ended_at: str | None

    @property
    def sandbox_words(self) -> str:
        """Its sandbox with the program and the image that created it."""
        level = self.sandbox or "not known"
        made = str(self.sandbox_made_with or level)
        return made if made.startswith(level) else f"{level}: {made}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishEntry:
    """One finish: merging the plan's work, or some of its tasks, into the user's branch."""

    id: FinishId
    how: Annotated[str, one_of(WAYS)]
    actor: str
    source_sha: Sha | None
    target_sha: Sha | None
    commit_sha: Sha | None
    tree: Sha | None
    verdict_id: VerdictId | None
    receipt_sha256: Sha | None
    signed: bool
    request_url: str | None
    request_n: int | None
    detail: str
    state: FinishState
    tasks: tuple[TaskId, ...]
    """The tasks that the user chose; empty for the whole plan."""
    created_at: str
    finished_at: str | None

    @property
    def is_made(self) -> bool:
        """Whether a commit was made for it: a fast-forward, or work that was already there, needs none."""
        return self.commit_sha not in (None, self.source_sha, self.target_sha)

    @property
    def carries_hash(self) -> bool:
        """Whether the commit's trailer has the hash of the receipt, as that of chosen tasks also does."""
        picked = bool(self.tasks) and self.commit_sha not in (None, self.target_sha)
        return self.is_made or picked


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsEntry:
    """The end of the plan's chain of events."""

    head: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """A sum over the runs, and how many of them are unknown."""

    total: Count | None
    complete: bool
    unknown_runs: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSum(Sum):
    """A sum of costs in millionths of a dollar."""

    estimated_runs: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSums:
    """The tokens of all runs."""

    input_tokens: Sum
    output_tokens: Sum
    cache_read_tokens: Sum
    cache_write_tokens: Sum


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptFacts:
    """What was recorded while a plan ran."""

    schema: Literal["loopwright.receipt/2"] = SCHEMA
    made_by: str
    project: ProjectEntry
    plan: PlanEntry
    tasks: tuple[TaskFacts, ...]
    verdicts: tuple[VerdictEntry, ...]
    reviews: tuple[ReviewEntry, ...]
    claims: tuple[ReviewClaim, ...]
    opinions: tuple[Opinion, ...]
    looks: tuple[QaReviewEntry, ...]
    reports: tuple[QaReportEntry, ...]
    overrides: tuple[Override, ...]
    checkout_changes: tuple[CheckoutChange, ...]
    runs: tuple[RunEntry, ...]
    finishes: tuple[FinishEntry, ...]
    events: EventsEntry

    def review_of(self, task: TaskFacts) -> ReviewEntry | None:
        """Return the review of exactly the change that a task landed."""
        named = task.landed.review_id if task.landed else None
        return next((one for one in self.reviews if one.id == named), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt(ReceiptFacts):
    """The facts, and what follows from them alone."""

    tasks: tuple[TaskEntry, ...]
    outcome: Outcome
    cost: CostSum
    usage: UsageSums
    gaps: tuple[Gap, ...]
    """What lowers the outcome."""
    notes: tuple[Note, ...]
    """What else a reader should know."""
    not_checked: tuple[str, ...]
    """Gaps and notes as sentences."""
    sha256: str
    """The hash of everything else."""


def read_receipt(value: Any) -> Receipt:
    """Return an external JSON value as a receipt; raise `Misshapen` if it is not one."""
    found = value.get("schema") if isinstance(value, dict) else None
    if isinstance(found, str) and found != SCHEMA:
        raise Misshapen([f"receipt.schema: {found!r:.80} is another version; this program reads {SCHEMA!r}"])
    receipt = decode(Receipt, value, "receipt")
    if len({task.id for task in receipt.tasks}) != len(receipt.tasks):
        raise Misshapen(["receipt.tasks: two tasks have the same id"])
    return receipt


def render(receipt: Receipt) -> str:
    """Return the text of a receipt's file."""
    return readable(document(receipt))


def fingerprint(receipt: Receipt) -> str:
    """Return the hash of everything in a receipt except its own hash."""
    return hash_of({key: value for key, value in document(receipt).items() if key != "sha256"})


def hash_of(value: Any) -> str:
    """Return the hash of a JSON value, whatever its formatting."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
