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
    """The purpose of a run."""

    IMPLEMENTER = "implementer"
    REVIEWER = "reviewer"
    """An agent that reviews another agent's work before it lands."""
    PLANNER = "planner"
    """An agent that answers with a plan, and changes nothing."""
    PLAN_EVALUATOR = "plan-evaluator"
    """An agent that answers with objections to a plan before it runs."""
    INVESTIGATOR = "investigator"
    """An agent that answers why a task failed, or with smaller tasks, and changes nothing."""
    MANAGER = "manager"
    """An agent that looks after the loops of a project with tools."""
    ORCHESTRATOR = "orchestrator"
    """An agent that turns a goal into loops with tools."""
    SETUP = "setup"
    GATE = "gate"
    VERIFY = "verify"
    EVALUATION = "evaluation"
    """The complete gate before the verification, while a task may still fix its failures."""
    BASELINE = "baseline"
    """The gate on the tree that work starts from, so that earlier failures are not counted against it."""
    FINISH = "finish"
    """The complete gate on what will be merged into the user's branch, if that tree differs from the result."""


AUTHORS: Final = frozenset(
    {
        *(Role.IMPLEMENTER, Role.PLANNER, Role.PLAN_EVALUATOR, Role.INVESTIGATOR),
        *(Role.MANAGER, Role.ORCHESTRATOR),
    }
)
"""The roles whose output is the work of the attempt."""
AGENT_ROLES: Final = AUTHORS | {Role.REVIEWER}
"""The roles of agents: the run takes a slot, uses an account and costs something."""


class Outcome(StrEnum):
    """What the facts prove about a task or a plan."""

    VERIFIED = "verified"
    VERIFIED_WITH_GAPS = "verified_with_gaps"
    NO_CHANGE_PROVEN = "no_change_proven"
    NOT_VERIFIED = "not_verified"
    UNVERIFIED = "unverified"
    NEEDS_HUMAN = "needs_human"
    WAITING_QUOTA = "waiting_quota"
    CANCELLED = "cancelled"


class CommandState(StrEnum):
    """The state of a user's command."""

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
    """The day, in UTC, of the next two fields."""
    spent_micros: int = 0
    unknown_costs: int = 0
    created_at: datetime
    environment: PlanEnvironment | None = None
    """The environment of plans that are made without a terminal: over HTTP, by a tool or on a page."""
    state_folder: str = DEFAULT_FOLDER
    """Where its state files are written, relative to the repository (`core.values.state_folders`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """Drives one work source of one project."""

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
    """When it continues by itself while it is paused; None if the user has to resume it."""
    created_at: datetime
    updated_at: datetime
    start: Mapping[str, Any] | None = None
    """A start that was requested without a terminal, until the source has a plan: `actor` and `flags`."""
    settings: Mapping[str, Any] | None = None
    """Settings that its plans get besides those of the project, such as `agent` or `model`."""
    deleted_at: datetime | None = None
    """When it was deleted: its plans are kept, and a new plan of its source restores it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A graph of tasks with a state."""

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
    """Files of the source that get status on the plan's branch, relative to the repository; may be empty."""
    context: str = ""
    """Text for every agent of the plan besides its task."""
    doc_sync: tuple[DocSync, ...] = ()
    """Business documents that must follow its work (see `engine.intake.doc_sync`)."""
    evaluation: Mapping[str, Any] = field(default_factory=dict)
    environment: PlanEnvironment | None = None
    """What it takes from the terminal that it was submitted from."""
    open_tasks: int = 0
    """Tasks that are not settled: stored as a count so that no pass reads all of them."""
    failed_tasks: int = 0
    fix_cycles: int = 0
    """How often the complete gate failed before the verification and a task was added to fix it."""
    verify_n: int = 0
    """The number of the verification; the user's `reverify` starts the next."""
    verify_leg: int = 0
    verify_fence: int = 0
    verify_run_id: str | None = None
    call_failures: int = 0
    not_before: datetime | None = None
    branch_moved_at: datetime | None = None
    """When commits that no task made were last found on its branch."""
    spent_micros: int = 0
    unknown_costs: int = 0
    """Runs of unknown cost: they make a cost limit unenforceable. A new limit restarts the count."""
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
    """When the user requested the verification, if the plan waits for that; None before."""
    evaluating: bool = False
    """Whether the complete gate runs before the verification, while a task may still fix what it finds."""
    wish: Mapping[str, Any] | None = None
    """The request to an agent to write the plan, until it has: `actor`, `goal`, `model`, `autonomy` and `file`."""
    made_for: str | None = None
    """For a plan that only asks an agent something: the plan that the answer is for, or empty; None for work."""
    packet_id: str | None = None
    """The inspection packet that it was made from."""
    source_run_id: str | None = None
    """The run that the packet is about."""
    replaces: str | None = None
    """The plan that the user had planned again."""


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
    """The tasks that wait for this one: stored so that its landing touches only them."""
    scope: tuple[str, ...] = ()
    approved: tuple[str, ...] = ()
    """Judging files that the user allowed it to change, besides those that its scope names."""
    touched: tuple[str, ...] = ()
    """What its attempts changed, in its scope or not: no other task starts there while it runs."""
    priority: int = 50
    position: int = 0
    phase: str = ""
    """Its group in the source."""
    type: str = ""
    """The kind of work, in its source's own word."""
    complexity: str = "medium"
    """high, medium or low (`core.policy.complexity`)."""
    prove: bool = False
    """Whether its checks must fail without its work (`core.policy.red_first`)."""
    status: TaskState
    origin: str = ""
    """Where it comes from: empty for the source; `fix`, `qa`, `docs` and `evaluation` (by Loopwright); `discovered`."""
    unmet: int = 0
    """The number of dependencies that are not COMPLETE: stored as a count (see `decide`)."""
    attempts: int = 0
    """Attempts that count against the limit."""
    call_failures: int = 0
    """Failures of transport or machine since the last judged attempt."""
    races: int = 0
    """How often its work lost to other work that landed first: that does not use up an attempt."""
    passed_over: int = 0
    """How many agents of its chain have handed it on permanently (see `core.policy.fallback`)."""
    max_attempts: int = 3
    agent: str | None = None
    model: str | None = None
    note: str = ""
    not_before: datetime | None = None
    attempt_id: str | None = None
    first_base_sha: str | None = None
    failure: Failure | None = None
    failure_mark: str = ""
    """Identifies the last failure exactly, so that an instant identical failure is not retried."""
    reason: str = ""
    outcome: Outcome | None = None
    landed_sha: str | None = None
    taken_by: str = ""
    """The user who works on it instead of an agent; empty otherwise."""
    taken_dir: str = ""
    """Where that user works."""
    reviewed_by: str = ""
    """The user who reviewed what it landed; empty otherwise."""
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None = None
    after: tuple[str, ...] = ()
    """Tasks that come first in the order of the source.

    It does not need their results (see `core.policy.order`).
    """
    followers: tuple[str, ...] = ()
    """Tasks that name this one in `after`."""
    early: bool = False
    """Whether an earlier task can still continue without the user: stored so that no pass reads all tasks."""
    manual: bool = False
    """A step for the user: Loopwright asks the user to do it, and no agent gets it."""
    section: str = ""
    """The text of its section in the source."""


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
    """Why the previous attempt failed: part of this attempt's prompt."""
    base_sha: str | None = None
    workspace: str | None = None
    port_base: int | None = None
    """The first of the ports that are reserved for this attempt on its host."""
    run_id: str | None = None
    tip_sha: str | None = None
    touched: tuple[str, ...] = ()
    """What it changed, relative to the project's folder; folders if it is very much."""
    agent_sha: str | None = None
    candidate_parent: str | None = None
    candidate_sha: str | None = None
    candidate_tree: str | None = None
    books_sha: str | None = None
    """The commit on top of the candidate that writes status to the source; None if there is none."""
    verdict_id: str | None = None
    gate_files: GateFiles | None = None
    """What it did to judging files; None if it was not judged."""
    review_id: str | None = None
    """The review of exactly the change that it lands; None if none was needed."""
    fix_turns: int = 0
    """How often its agent was sent back to fix a reviewer's findings."""
    qa: QaReport | None = None
    """Its result as a QA review; None for any other attempt."""
    failure: Failure | None = None
    detail: str = ""
    wake_at: datetime | None = None
    wait_reason: str = ""
    questions: tuple[str, ...] = ()
    """The questions that it waits for the user to answer."""
    account: str | None = None
    """The account of its last run, which has its conversation."""
    envelope_id: str | None = None
    """The closed envelope that it waits for; it continues when that opens, whatever `wake_at` says."""
    stands_in: str = ""
    """Why its agent replaces the task's own agent; empty if it is that agent."""
    interrupt: str = ""
    """Set by pause, stop or cancel while a leg runs: what the leg should do about its agent."""
    cleaned_at: datetime | None = None
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None = None
    healing: HealStep | None = None
    """The healing step that it belongs to; None for any other attempt."""
    advice: str = ""
    """Advice of healing to its agent about the earlier failures."""
    quarantined: str | None = None
    """Why its workspace could not be saved and was kept in place; None for any other attempt."""


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
    """Which of the agent's accounts it uses; None before it starts."""
    model: str | None = None
    agent_version: str | None = None
    permission_mode: str | None = None
    permissions: Permissions | None = None
    """What it could do without asking when it began."""
    sandbox: str | None = None
    """What contained it (`core.values.containment`); None before it began."""
    sandbox_made_with: MadeWith | None = None
    """The program and the image of the sandbox when it began; None without a sandbox."""
    argv: tuple[str, ...] = ()
    prompt_sha256: str | None = None
    template: UsedTemplate | None = None
    """The template of its prompt; None before it began, and for a run that is not an agent's."""
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
    """The cost of this run alone, in millionths of a dollar; None is unknown, never zero."""
    cost_estimated: bool = False
    """Whether the cost is estimated: the agent reported only tokens, and the table of prices gives their cost."""
    max_cost_micros: int | None = None
    """Its cost limit when it began."""
    output_sha256: str | None = None
    output_bytes: int | None = None
    files_sha256: str = ""
    """The hash of all other records of the run; empty if it was broken off."""
    reused_run_id: str | None = None
    """The gate run on the same tree whose results it reuses; None if its commands ran."""
    verdict: Verdict | None = None
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRecord:
    """A verdict on exactly one tree by exactly one list of commands: it is never computed twice."""

    id: str
    plan_id: str
    tree: str
    gate_key: str
    run_id: str
    verdict: Verdict
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """An independent review of exactly one change, and its result."""

    id: str
    plan_id: str
    task_id: str
    attempt_id: str
    n: int
    """The number of the round in its attempt."""
    state: ReviewState = ReviewState.ASKED
    run_id: str
    """The newest of its runs: a run without a readable answer is followed by another."""
    agent: str
    model: str | None = None
    parent_sha: str
    candidate_sha: str
    patch_sha256: str
    """The hash of the change between the two, wherever in the files it is (`core.values.patches`)."""
    shown_whole: bool = True
    """Whether the reviewer saw the whole change, or only its beginning and the files."""
    reasons: tuple[str, ...] = ()
    """Why it was needed."""
    contradicted: tuple[str, ...] = ()
    """The existing checks that the change contradicts: the review decides about exactly these."""
    tries: int = 0
    """How many of its runs gave no readable answer."""
    problem: str = ""
    """What was wrong with the last of those."""
    summary: str = ""
    findings: tuple[Finding, ...] = ()
    created_at: datetime
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """One finish of a plan: merging its work, or some of its tasks, into the user's branch or a pull request."""

    id: str
    plan_id: str
    how: str
    """One of `core.policy.finishing.WAYS`."""
    state: FinishState
    actor: str
    tasks: tuple[str, ...] = ()
    """The tasks that the user chose; empty for the whole plan."""
    leg: int = 0
    fence: int = 0
    """Raised each time a worker commits to a leg; a writer with an older one changes nothing."""
    source_sha: str | None = None
    """What is merged: the verified result, or the chosen tasks built on the base branch."""
    target_sha: str | None = None
    """The tip of the base branch when that was built and checked."""
    commit_sha: str | None = None
    """The new tip of the base branch, or what is pushed; stored before it happens."""
    tree: str | None = None
    """The tree of that commit."""
    verdict_id: str | None = None
    """The verdict on that tree; None if nothing checks it, and the user accepted that."""
    receipt: str = ""
    """The receipt when the finish began: the commit's trailer has the hash of this exact text."""
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
    """A user's request; the controller applies it and an event acknowledges it."""

    id: str
    actor: str
    verb: str
    target: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    state: CommandState = CommandState.PENDING
    result: str = ""
    """Its result; for a refused command the message, the hint and the code, each on its own line."""
    commit_sha: str | None = None
    """The commit that removes landed work, stored before the branch has it."""
    created_at: datetime
    applied_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A process that executes legs, and its lease."""

    id: str
    """New for each start of the process."""
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
    """The only project that it starts work for; None for all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The position of a reader that must not lose its place (for example the file export)."""

    id: str
    n: int


RESTORED: Final = "restored"
"""The cursor that only a backup has: it was not yet compared with what happened since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """One uninterrupted piece of an attempt, of a plan's verification, or of its end."""

    subject: str
    """An attempt id, a plan id for its verification, or the id of a finish."""
    n: int
    fence: int
    host_id: str | None = None
    """Only this host can continue it, because the workspace is there; None for any."""
    turn: Turn | None = field(default=None, compare=False)
    """Its place in the line for an agent, set once; None if it needs none, or there is no line."""

    @property
    def id(self) -> str:
        """The id under which an engine starts this leg at most once."""
        return f"{self.subject}/{self.n}"
