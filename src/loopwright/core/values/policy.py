"""What a plan is run with: the settings that are fixed when it is dispatched, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from loopwright.core.values.shapes import RelativePath, Sha


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCommand:
    """One command that a gate runs, in order."""

    name: str
    command: str
    timeout_s: float = 600.0
    junit: str | None = None
    """Path of a JUnit XML report that the command writes, relative to the tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldFile:
    """A file that lies in the tree for a held-out check alone."""

    path: RelativePath
    """Relative to the project."""
    sha256: Sha


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """One held-out check."""

    check: GateCommand
    files: tuple[HeldFile, ...] = ()
    hint: str = ""
    """What the agent is told when it did not pass, in the words of the plan's author."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredRunner:
    """How a test runner that is not known is watched: which tests it names, and how it is tried with canaries."""

    command: str
    """A part of the commands that start it."""
    file: str
    passes: str
    fails: str
    run: str
    tests: str | None = None
    """A regular expression for a line of its output, with the groups id, passed, failed and perhaps skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When the keeper ends a run, in seconds and bytes. None switches a limit off."""

    hard: float | None = 3600.0
    idle: float | None = 1800.0
    done_grace: float | None = 60.0
    output: int = 64 * 1024 * 1024
    term_grace: float = 5.0


def done_grace(idle: float | None) -> float:
    """Return how long an agent that said it is done may take to exit: always less than it may be idle."""
    return 60.0 if idle is None else min(60.0, idle / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewPolicy:
    """Which changes an independent reviewer looks at before they land, and who that is."""

    mode: str = "off"
    """`off`, `complex`, `risky` or `always`."""
    agent: str | None = None
    """None: the agent that did the work, in a new conversation."""
    model: str | None = None
    max_turns: int = 2
    """How often the agent of an attempt may fix what a reviewer found."""
    max_share: int = 15
    """Percent of a task's spend that its reviews may cost at most; 0 sets no limit."""
    lines: int = 300
    """A change of more lines is risky."""
    paths: tuple[str, ...] = ()
    """More places where a change is risky; a pattern that begins with `!` takes files out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealPolicy:
    """What `auto_heal` may try."""

    max_steps: int = 4
    """How many steps a task may have."""
    investigator: str | None = None
    """The agent, perhaps with a model behind a colon, that reads why a task failed, and splits it."""
    stronger: str | None = None
    """The agent, perhaps with a model behind a colon, that gets a task before a person does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsPolicy:
    """When a loop over one prompt continues, and what stops it."""

    on: bool = False
    """Whether the plan is such a loop."""
    max: int = 10
    sleep: float = 10.0
    """How many seconds it sleeps after a round."""
    until: str = "auto"
    """`green`, `quiet` (green, and nothing more to change), or `auto`: green where the prompt names acceptance."""
    unchanged: int = 2
    """After so many rounds in a row that changed nothing it stops."""
    stop_after: float | None = None
    """No round begins more seconds than this after the first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """What the agents of a plan are for that change no file: they answer, and Loopwright writes the answer down."""

    role: str
    """`planner` or `plan-evaluator`."""
    file: str
    """Where the answer is put, relative to the project: what it is judged by and lands as."""
    fence: str
    """The language of the fenced block that has the answer of an agent that cannot be given a schema."""
    schema: Mapping[str, Any] = field(default_factory=dict)
    asks: bool = True
    """Whether it may ask a person what only a person can decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionEvaluation:
    """Who evaluates what a track made before it is verified; all evaluators have to pass."""

    evaluators: tuple[str, ...]
    """Areas of `core.replies.qa.AREAS`, by what the track is about."""
    agent: str
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The settings that a plan was dispatched with. Fixed then, so a later edit changes nothing.

    Each field has the name of its setting: durations are in seconds, money in millionths of a dollar.
    """

    agent: str = "claude"
    model: str | None = None
    permission_mode: str = "auto"
    allowed_commands: tuple[str, ...] = ()
    """Commands that agents may run without asking."""
    answer_within: float | None = 86400.0
    """How many seconds a question waits for its answer."""
    parallel: int = 2
    max_attempts: int = 3
    max_call_retries: int = 5
    parallel_gates: int = 2
    """How many candidates are judged at once, each on top of those before it."""
    fix_cycles: int = 3
    """How often what the complete gate, or a QA review, finds becomes a task that fixes it."""
    allow_unverified: bool = False
    auto_heal: bool = False
    """Whether more is tried for a task that failed for good (`core.policy.healing`)."""
    heal: HealPolicy = field(default_factory=HealPolicy)
    auto_refine: bool = False
    """Whether a lesson is proposed as soon as several tasks fail in the same way."""
    autonomy: str = "auto"
    """What waits for a person: `manual` dispatch and verification, `supervised` dispatch, `auto` nothing."""
    on_task_error: str = "hold"
    finish: str = "leave"
    """What becomes of the plan's branch once it is verified: one of `core.policy.finishing.WAYS`."""
    finish_sign: bool = False
    """The commits that its end makes are signed with the user's own git signing key."""
    remote: str = "origin"
    """The git remote that a pull request goes to."""
    max_unreviewed: int = 0
    """How many landed results, with what is being worked on, may wait for a person's look; 0 for any number."""
    dependencies: str | None = None
    """Installs what the project needs; what it makes is shared by the workspaces with the same lock files."""
    dependency_files: tuple[str, ...] = ()
    """More files that decide what it installs."""
    setup: str | None = None
    setup_timeout: float = 900.0
    copy_files: tuple[str, ...] = ()
    gate_files: tuple[str, ...] = ()
    """More files that steer the gate; a pattern that begins with `!` takes files out."""
    may_change: tuple[str, ...] = ()
    """Tests and judging files that the work may change although existing checks contradict it."""
    test_changes: str = "ask"
    """What happens to work that contradicts existing checks: `ask` a reviewer or a person, or `allow` it."""
    installed_gates: tuple[str, ...] = ()
    """Gates that test an installed build, not the tree; a person accepted that."""
    test_runners: tuple[ConfiguredRunner, ...] = ()
    red_proof: str = "fixes"
    """Of which tasks the checks also run without the work and have to fail: one of `core.policy.red_first.RedProof`."""
    qa_mode: str = "full"
    """What a QA review goes through: one of `core.replies.qa.AREAS`."""
    business_docs: bool = False
    """Agents are asked to name documents about prices, tiers and the like that their change makes wrong."""
    business_documents: tuple[str, ...] = ()
    """The registry of these documents, the most general one first: each a path, perhaps with a colon and a remark."""
    unseen_proof: bool = False
    """Work that only checks have judged which its author could see counts as verified with gaps."""
    review: ReviewPolicy = field(default_factory=ReviewPolicy)
    rounds: RoundsPolicy = field(default_factory=RoundsPolicy)
    answer: Answering | None = None
    """What its agents answer, where they are there to answer and not to work."""
    evaluation: ExecutionEvaluation | None = None
    """Which agent evaluates the execution of a track; None where only the complete gate does."""
    sandbox_required: bool = False
    """No agent and no command of the plan runs without a sandbox, or gets the token of a forge."""
    environment: tuple[str, ...] = ()
    """Names of variables that agents and gates inherit beyond the allow-list."""
    environment_plain: tuple[str, ...] = ()
    """Those whose values are no secrets: they are stored with the plan."""
    limits: Limits = field(default_factory=Limits)
    max_cost: int | None = None
    """What the plan may cost."""
    max_cost_per_run: int | None = None
    max_cost_per_task: int | None = None
    max_cost_per_loop: int | None = None
    """What all plans of the loop may cost together."""
    max_cost_per_project: int | None = None
    """What all plans of the project may cost together."""
    max_cost_per_day: int | None = None
    """What all plans of the project may cost on one day, by UTC."""
    reserve_per_run: int | None = 500_000
    """What is kept free of these at least for an agent that runs without its own limit."""
    prices: tuple[str, ...] = ()
    """More prices of models, as `core.policy.prices.read_price` takes them."""
    host_lost_after: float = 120.0
    agents: Mapping[str, Any] = field(default_factory=dict)
    wait_for_limits: bool = True
    """Off: the loop pauses where it would have to wait for an account."""
    longest_wait: float | None = 604800.0
    fallback: tuple[str, ...] = ()
    """Agents, each perhaps with a model behind a colon, that take over from one whose account is closed."""


# How long a plan waits for what ends by itself: an account that is used up, or the budget of a day.


def too_long(policy: Policy, *, since: datetime, until: datetime | None, now: datetime) -> str:
    """Say by which setting a wait that began at `since` takes too long; empty when it does not."""
    last = max(until or now, now)
    if policy.longest_wait is not None:
        longest = timedelta(seconds=policy.longest_wait)
        if max(last - now, now - since) > longest:
            return "longer than `longest_wait`"
    return ""
