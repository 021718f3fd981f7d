"""The rows of a home as frozen values. Every name here is a column, a JSON key and a word in the docs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.replies.doc_sync import DocSync
from loopwright.core.replies.qa import QaReport
from loopwright.core.replies.reviews import Finding
from loopwright.core.rows.turns import Turn
from loopwright.core.values.containment import MadeWith
from loopwright.core.values.environments import PlanEnvironment
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Verdict
from loopwright.core.values.healing import HealStep
from loopwright.core.values.permissions import Permissions
from loopwright.core.values.policy import GateCommand, HeldOut, Policy
from loopwright.core.values.shapes import Count
from loopwright.core.values.state_folders import DEFAULT_FOLDER
from loopwright.core.values.states import (
    AttemptState,
    FinishState,
    LoopState,
    PlanState,
    ReviewState,
    RunState,
    TaskState,
)
from loopwright.core.values.templates import UsedTemplate


class Role(StrEnum):
    """What a run is for."""

    IMPLEMENTER = "implementer"
    REVIEWER = "reviewer"
    """An agent that looks at the work of another before it lands."""
    PLANNER = "planner"
    """An agent that answers with a plan, and changes nothing."""
    PLAN_EVALUATOR = "plan-evaluator"
    """An agent that answers with what is wrong with a plan, before anything of it runs."""
    INVESTIGATOR = "investigator"
    """An agent that answers why a task failed, or with smaller tasks, and changes nothing."""
    SETUP = "setup"
    GATE = "gate"
    VERIFY = "verify"
    EVALUATION = "evaluation"
    """The complete gate before the verification, while a task may still fix what it finds."""
    BASELINE = "baseline"
    """The gate on the tree that work starts from, so that what failed before is not held against it."""
    FINISH = "finish"
    """The complete gate on what is about to go into the user's branch, where that is another tree than the result."""


AUTHORS: Final = frozenset({Role.IMPLEMENTER, Role.PLANNER, Role.PLAN_EVALUATOR, Role.INVESTIGATOR})
"""The roles in which what comes of a run is the work of its attempt."""
AGENT_ROLES: Final = AUTHORS | {Role.REVIEWER}
"""The roles in which a run is an agent: it takes a slot, draws from an account and costs something."""


class Outcome(StrEnum):
    """What the facts say about a task or a plan."""

    VERIFIED = "verified"
    VERIFIED_WITH_GAPS = "verified_with_gaps"
    NO_CHANGE_PROVEN = "no_change_proven"
    NOT_VERIFIED = "not_verified"
    UNVERIFIED = "unverified"
    NEEDS_HUMAN = "needs_human"
    WAITING_QUOTA = "waiting_quota"
    CANCELLED = "cancelled"


class CommandState(StrEnum):
    """Where a user's command stands."""

    PENDING = "PENDING"
    APPLIED = "APPLIED"
    REFUSED = "REFUSED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens that a run used; None is unknown, never zero."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_tokens: Count | None = None
    cache_write_tokens: Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A git repository registered in a home. The path is an attribute, not the identity."""

    id: str
    name: str
    path: str
    subfolder: str = ""
    spent_on: str = ""
    """The day, by UTC, that the next two are about."""
    spent_micros: int = 0
    unknown_costs: int = 0
    created_at: datetime
    environment: PlanEnvironment | None = None
    """What plans take that are made without a terminal: over HTTP, by a tool or on a page."""
    state_folder: str = DEFAULT_FOLDER
    """Where its state files are written, relative to the repository (`core.values.state_folders`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """One work source of one project, driven."""

    id: str
    project_id: str
    name: str
    source_kind: str
    source_path: str
    state: LoopState
    plan_id: str | None = None
    priority: int = 5
    reason: str = ""
    resume_at: datetime | None = None
    """When it continues by itself, while it is paused; None: when a person says so."""
    created_at: datetime
    updated_at: datetime
    start: Mapping[str, Any] | None = None
    """A start that was asked for without a terminal, until a plan is made of the source: `actor` and `flags`."""
    settings: Mapping[str, Any] | None = None
    """Settings that its plans start with besides those of the project, such as `agent` or `model`."""
    deleted_at: datetime | None = None
    """When it was deleted: its plans are kept, and a new plan of its source brings it back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A DAG of tasks with a status machine."""

    id: str
    project_id: str
    loop_id: str
    title: str
    status: PlanState
    source_sha256: str
    base_ref: str
    base_sha: str
    branch: str
    policy: Policy
    gates: tuple[GateCommand, ...] = ()
    books: tuple[str, ...] = ()
    """Files of the source, relative to the repository, with status on the plan's branch; empty if there are none."""
    context: str = ""
    """What every agent of the plan is told besides its task."""
    doc_sync: tuple[DocSync, ...] = ()
    """Business documents that have to follow its work (see `engine.intake.doc_sync`)."""
    evaluation: Mapping[str, Any] = field(default_factory=dict)
    environment: PlanEnvironment | None = None
    """What it takes from the terminal that it was submitted from."""
    open_tasks: int = 0
    """Tasks that are not settled: kept as a count so that no pass has to look at all of them."""
    failed_tasks: int = 0
    fix_cycles: int = 0
    """How often the complete gate failed before the verification and a task was added to fix it."""
    verify_n: int = 0
    """Which verification this is; a person's `reverify` starts the next."""
    verify_leg: int = 0
    verify_fence: int = 0
    verify_run_id: str | None = None
    call_failures: int = 0
    not_before: datetime | None = None
    branch_moved_at: datetime | None = None
    """When commits that no task made were last found on its branch."""
    spent_micros: int = 0
    unknown_costs: int = 0
    """Runs of unknown cost: they make a cost limit unenforceable. A new limit starts the count again."""
    verdict: Verdict | None = None
    result_sha: str | None = None
    outcome: Outcome | None = None
    reason: str = ""
    created_at: datetime
    updated_at: datetime
    executed_at: datetime | None = None
    completed_at: datetime | None = None
    verified_at: datetime | None = None
    documents: tuple[str, ...] = ()
    """Documents that agents should read, relative to the repository."""
    verify_asked_at: datetime | None = None
    """When a person asked for the verification, where the plan waits for that; None before."""
    evaluating: bool = False
    """Whether the complete gate runs before the verification, while a task may still fix what it finds."""
    wish: Mapping[str, Any] | None = None
    """What an agent is to write the plan for, until it has: `actor`, `goal`, `model`, `autonomy` and `file`."""
    made_for: str | None = None
    """Of a plan that only asks an agent something: the plan that the answer is for, or empty; None for work."""
    packet_id: str | None = None
    """The inspection packet that it was made of."""
    source_run_id: str | None = None
    """The run that the packet is about."""
    replaces: str | None = None
    """The plan that a person had planned again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One unit of work."""

    id: str
    plan_id: str
    key: str
    """The user's own name for it: data, never a path or a ref."""
    title: str
    description: str = ""
    criteria: tuple[str, ...] = ()
    acceptance: tuple[GateCommand, ...] = ()
    held_out: tuple[HeldOut, ...] = ()
    """Checks that its agent never sees."""
    depends_on: tuple[str, ...] = ()
    dependents: tuple[str, ...] = ()
    """Who waits for this one: kept so that its landing touches only them."""
    scope: tuple[str, ...] = ()
    approved: tuple[str, ...] = ()
    """Files of the gate that a person allowed it to change, besides those that its scope names."""
    touched: tuple[str, ...] = ()
    """What its attempts changed, in its scope or not: no other task starts there while it runs."""
    priority: int = 50
    position: int = 0
    phase: str = ""
    """The group that its source puts it in."""
    type: str = ""
    """What kind of work it is, in its source's own word."""
    complexity: str = "medium"
    """high, medium or low (`core.policy.complexity`)."""
    prove: bool = False
    """Whether its checks have to be seen to fail without its work (`core.policy.red_first`)."""
    status: TaskState
    origin: str = ""
    """Where it comes from: empty for the source; `fix`, `qa`, `docs`, `evaluation` (added by the machine),
    `discovered`."""
    unmet: int = 0
    """How many dependencies are not COMPLETE yet: kept as a count (see `decide`)."""
    attempts: int = 0
    """Attempts that count against the limit."""
    call_failures: int = 0
    """Failures of transport or machine since the last judged attempt."""
    races: int = 0
    """How often its work lost to what others landed in the meantime: no attempt is used up by that."""
    passed_over: int = 0
    """How many agents of its chain have handed it on for good (see `core.policy.fallback`)."""
    max_attempts: int = 3
    agent: str | None = None
    model: str | None = None
    note: str = ""
    not_before: datetime | None = None
    attempt_id: str | None = None
    first_base_sha: str | None = None
    failure: Failure | None = None
    failure_mark: str = ""
    """Identifies the last failure exactly, so that an instant identical one is seen as hopeless."""
    reason: str = ""
    outcome: Outcome | None = None
    landed_sha: str | None = None
    taken_by: str = ""
    """The person who works on it instead of an agent; empty otherwise."""
    taken_dir: str = ""
    """Where that person works."""
    reviewed_by: str = ""
    """The person who reviewed what it landed; empty otherwise."""
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None = None
    after: tuple[str, ...] = ()
    """Tasks that come first in the order of the source. It does not need them (see `core.policy.order`)."""
    followers: tuple[str, ...] = ()
    """Tasks that name this one in `after`."""
    early: bool = False
    """Whether a task that comes first can still continue without you: kept so that no pass looks at all tasks."""
    manual: bool = False
    """A step for a person: Loopwright asks you to do it, and no agent gets it."""
    section: str = ""
    """The text of the section of the source that it is in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try at a task in its own workspace, fenced."""

    id: str
    plan_id: str
    task_id: str
    n: int
    state: AttemptState
    fence: int = 0
    """Raised each time a worker commits to a leg; a writer with an older one changes nothing."""
    leg: int = 0
    worker_id: str | None = None
    host_id: str | None = None
    agent: str
    model: str | None = None
    note: str = ""
    evidence: str = ""
    """What the previous attempt failed on: part of this attempt's prompt."""
    base_sha: str | None = None
    workspace: str | None = None
    port_base: int | None = None
    """First of the ports that this attempt has to itself on its host."""
    run_id: str | None = None
    tip_sha: str | None = None
    touched: tuple[str, ...] = ()
    """What it was seen to change, relative to the project's folder; folders where that is very much."""
    agent_sha: str | None = None
    candidate_parent: str | None = None
    candidate_sha: str | None = None
    candidate_tree: str | None = None
    books_sha: str | None = None
    """The commit on top of the candidate that tells the source of it; None when there is none."""
    verdict_id: str | None = None
    gate_files: GateFiles | None = None
    """What it did to the files that steer the gate; None when it was not judged."""
    review_id: str | None = None
    """The review of exactly the change that it lands; None when none was needed."""
    fix_turns: int = 0
    """How often its agent was sent back to fix what a reviewer found."""
    qa: QaReport | None = None
    """What it came to as a QA review; None for any other attempt."""
    failure: Failure | None = None
    detail: str = ""
    wake_at: datetime | None = None
    wait_reason: str = ""
    questions: tuple[str, ...] = ()
    """What it waits for a person to answer."""
    account: str | None = None
    """The account that its last run drew from: its conversation lives there."""
    envelope_id: str | None = None
    """The envelope that is closed and that it waits for; it continues when that opens, whatever `wake_at` says."""
    stands_in: str = ""
    """Why its agent works instead of the one that was meant to; empty when it is that one."""
    interrupt: str = ""
    """Set by pause, stop or cancel while a leg runs: what the leg should do about its agent."""
    cleaned_at: datetime | None = None
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None = None
    healing: HealStep | None = None
    """The healing step that it belongs to; None for any other attempt."""
    advice: str = ""
    """What healing tells its agent about why the attempts before failed."""
    quarantined: str | None = None
    """Why its workspace could not be saved and was left in place; None for any other attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One agent process, or one gate execution."""

    id: str
    plan_id: str
    task_id: str | None = None
    attempt_id: str | None = None
    role: Role
    state: RunState
    label: str = ""
    """`verify_<plan id>` for the plan's own gate, `setup_<commit>` for setting up a workspace, the review's id for a
    reviewer, else empty."""
    agent: str | None = None
    account: str | None = None
    """Which of the agent's accounts it draws from; None before it starts."""
    model: str | None = None
    agent_version: str | None = None
    permission_mode: str | None = None
    permissions: Permissions | None = None
    """What it could do without asking, as it was when it began."""
    sandbox: str | None = None
    """What contained it (`core.values.containment`); None before it began."""
    sandbox_made_with: MadeWith | None = None
    """With which program and of which image, as it was when it began; None where nothing contained it."""
    argv: tuple[str, ...] = ()
    prompt_sha256: str | None = None
    template: UsedTemplate | None = None
    """What its prompt was made from; None before it began, and for a run that is not an agent's."""
    host_id: str | None = None
    boot_id: str | None = None
    session_ref: str | None = None
    exit_code: int | None = None
    ended_by: str = ""
    summary: str = ""
    failure: Failure | None = None
    retry_at: datetime | None = None
    usage: Usage | None = None
    cost_micros: int | None = None
    """Cost of this run alone, in millionths of a dollar; None is unknown, never zero."""
    cost_estimated: bool = False
    """The agent told only its tokens: the cost is what they cost by the table of prices."""
    max_cost_micros: int | None = None
    """What it could cost at most, as it was when it began."""
    output_sha256: str | None = None
    output_bytes: int | None = None
    files_sha256: str = ""
    """Of all else that was written down of it when it ended; empty for one that was broken off."""
    reused_run_id: str | None = None
    """The gate run on the same tree whose results it has; None when its commands ran."""
    verdict: Verdict | None = None
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRecord:
    """A verdict on exactly one tree by exactly one list of commands: never asked for twice."""

    id: str
    plan_id: str
    tree: str
    gate_key: str
    run_id: str
    verdict: Verdict
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What an independent reviewer was asked about exactly one change, and what came of it."""

    id: str
    plan_id: str
    task_id: str
    attempt_id: str
    n: int
    """Which round of the attempt this is."""
    state: ReviewState = ReviewState.ASKED
    run_id: str
    """The newest of its runs: one whose answer could not be read is followed by another."""
    agent: str
    model: str | None = None
    parent_sha: str
    candidate_sha: str
    patch_sha256: str
    """Of the change from one to the other, wherever in the files it stands (`core.values.patches`)."""
    shown_whole: bool = True
    """Whether all of the change was shown to the reviewer, or only its beginning and the files."""
    reasons: tuple[str, ...] = ()
    """Why it was needed."""
    contradicted: tuple[str, ...] = ()
    """The existing checks that the change contradicts: the review decides about exactly these."""
    tries: int = 0
    """How many of its runs gave no answer that could be read."""
    problem: str = ""
    """What was wrong with the last of those."""
    summary: str = ""
    findings: tuple[Finding, ...] = ()
    created_at: datetime
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """One end of a plan: its work, or some tasks of it, on the way into the user's branch or into a pull request."""

    id: str
    plan_id: str
    how: str
    """One of `core.policy.finishing.WAYS`."""
    state: FinishState
    actor: str
    tasks: tuple[str, ...] = ()
    """The tasks that a person chose; empty for the whole plan."""
    leg: int = 0
    fence: int = 0
    """Raised each time a worker commits to a leg; a writer with an older one changes nothing."""
    source_sha: str | None = None
    """What goes in: the verified result, or the chosen tasks built on the base."""
    target_sha: str | None = None
    """Where the base branch stood when that was built and gated."""
    commit_sha: str | None = None
    """What the base branch is moved to, or what is pushed; written down before it is done."""
    tree: str | None = None
    """The tree of that commit."""
    verdict_id: str | None = None
    """The verdict on that tree; None when nothing checks it, and a person accepted that."""
    receipt: str = ""
    """The receipt as it stood when the end began: the commit's trailer has the hash of this exact text."""
    receipt_sha256: str | None = None
    signed: bool = False
    request_url: str | None = None
    request_n: int | None = None
    detail: str = ""
    """What was done, or why it was refused and what to do."""
    call_failures: int = 0
    not_before: datetime | None = None
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Something a user asked for; applied by the controller, acknowledged by an event."""

    id: str
    actor: str
    verb: str
    target: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    state: CommandState = CommandState.PENDING
    result: str = ""
    """What it came to; of a refused one the message, the hint and the code, each on its own line."""
    commit_sha: str | None = None
    """The commit with which it takes landed work out, written down before the branch has it."""
    created_at: datetime
    applied_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A process that executes legs, and its lease."""

    id: str
    """New for each incarnation."""
    host_id: str
    boot_id: str
    pid: int
    hostname: str
    slots: int
    version: str
    started_at: datetime
    lease_until: datetime
    controls: bool = False
    project_id: str | None = None
    """The one project that it starts work for; None for all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How far a reader that must not lose its place has come (for example the file export)."""

    id: str
    n: int


RESTORED: Final = "restored"
"""The cursor that every backup has, and no other database: it was not yet compared with what happened since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """One uninterrupted piece of an attempt, of a plan's verification, or of its end."""

    subject: str
    """An attempt id, a plan id for its verification, or the id of a finish."""
    n: int
    fence: int
    host_id: str | None = None
    """Only this host can carry it on, because the workspace is there; None for any."""
    turn: Turn | None = field(default=None, compare=False)
    """Its place in the line for an agent, from its first moment on; None where it needs none, or no line is kept."""

    @property
    def id(self) -> str:
        """The id under which an engine starts this leg at most once."""
        return f"{self.subject}/{self.n}"
