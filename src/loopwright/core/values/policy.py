"""The settings of a plan that are fixed when it is dispatched, as values."""

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
    """A file that is in the tree only for a held-out check."""

    path: RelativePath
    """Relative to the project."""
    sha256: Sha


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """One held-out check."""

    check: GateCommand
    files: tuple[HeldFile, ...] = ()
    hint: str = ""
    """The text for the agent if it failed, written by the plan's author."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredRunner:
    """How to watch an otherwise unknown test runner: the tests that it names, and how to try it with canaries."""

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
    """Which changes an independent reviewer reads before they land, and which agent that is."""

    mode: str = "off"
    """`off`, `complex`, `risky` or `always`."""
    agent: str | None = None
    """None for the agent that did the work, in a new conversation."""
    model: str | None = None
    max_turns: int = 2
    """How often the agent of an attempt may fix a reviewer's findings."""
    max_share: int = 15
    """The most that a task's reviews may cost, in percent of its spend; 0 sets no limit."""
    lines: int = 300
    """A change of more lines is risky."""
    paths: tuple[str, ...] = ()
    """More places in which a change is risky; a pattern that begins with `!` excludes files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealPolicy:
    """What `auto_heal` may try."""

    max_steps: int = 4
    """How many steps a task may have."""
    investigator: str | None = None
    """The agent, optionally with a model after a colon, that finds out why a task failed, and splits it."""
    stronger: str | None = None
    """The agent, optionally with a model after a colon, that gets a task before the user does."""


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
    """After this many rounds in a row without a change it stops."""
    stop_after: float | None = None
    """No round begins later than this many seconds after the first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """The job of agents that change no file: they answer, and Loopwright writes the answer down."""

    role: str
    """`planner`, `plan-evaluator`, `manager` or `orchestrator`."""
    file: str
    """The file for the answer, relative to the project: it is checked and lands."""
    fence: str
    """The language of the fenced block with the answer of an agent that does not accept a schema."""
    schema: Mapping[str, Any] = field(default_factory=dict)
    asks: bool = True
    """Whether it may ask the user what only the user can decide."""
    acts: str = ""
    """The file in the home with the token of its tools for loops; empty if it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionEvaluation:
    """Who evaluates a track's result before it is verified; all evaluators have to pass."""

    evaluators: tuple[str, ...]
    """Areas of `core.replies.qa.AREAS`, by the subject of the track."""
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
    """How many candidates are checked at once, each on top of those before it."""
    fix_cycles: int = 3
    """How often a finding of the complete gate, or of a QA review, becomes a fix task."""
    allow_unverified: bool = False
    auto_heal: bool = False
    """Whether Loopwright tries more for a task that failed for good (`core.healing.steps`)."""
    heal: HealPolicy = field(default_factory=HealPolicy)
    auto_refine: bool = False
    """Whether a lesson is proposed as soon as several tasks fail in the same way."""
    autonomy: str = "auto"
    """What waits for the user: `manual` dispatch and verification, `supervised` dispatch, `auto` nothing."""
    on_task_error: str = "hold"
    finish: str = "leave"
    """What happens to the plan's branch after verification: one of `core.policy.finishing.WAYS`."""
    finish_sign: bool = False
    """Whether finish commits are signed with the user's own git signing key."""
    remote: str = "origin"
    """The git remote that a pull request goes to."""
    max_unreviewed: int = 0
    """How many landed results, including current work, may wait for the user's review; 0 for any number."""
    dependencies: str | None = None
    """The command that installs dependencies; workspaces with the same lock files share the result."""
    dependency_files: tuple[str, ...] = ()
    """More files that decide what it installs."""
    setup: str | None = None
    setup_timeout: float = 900.0
    copy_files: tuple[str, ...] = ()
    gate_files: tuple[str, ...] = ()
    """More judging files; a pattern that begins with `!` excludes files."""
    may_change: tuple[str, ...] = ()
    """Tests and judging files that the work may change although existing checks contradict it."""
    test_changes: str = "ask"
    """What happens to work that contradicts existing checks: `ask` a reviewer or the user, or `allow` it."""
    installed_gates: tuple[str, ...] = ()
    """Gates that test an installed build, not the tree; the user accepted that."""
    test_runners: tuple[ConfiguredRunner, ...] = ()
    red_proof: str = "fixes"
    """The tasks whose checks must fail without the work: one of `core.policy.red_first.RedProof`."""
    qa_mode: str = "full"
    """The areas of a QA review: one of `core.replies.qa.AREAS`."""
    business_docs: bool = False
    """Whether agents name documents about prices, tiers and the like that their change makes wrong."""
    business_documents: tuple[str, ...] = ()
    """The registry of these documents, the most general one first: each a path, optionally with `: remark`."""
    unseen_proof: bool = False
    """Whether work that was judged only by checks visible to its author counts as verified with gaps."""
    review: ReviewPolicy = field(default_factory=ReviewPolicy)
    rounds: RoundsPolicy = field(default_factory=RoundsPolicy)
    answer: Answering | None = None
    """The job of its agents if they only answer."""
    evaluation: ExecutionEvaluation | None = None
    """The agent that evaluates the execution of a track; None if only the complete gate does."""
    sandbox_required: bool = False
    """Whether every agent and command of the plan needs a sandbox, without the token of a forge."""
    environment: tuple[str, ...] = ()
    """Names of variables that agents and gates inherit beyond the allow-list."""
    environment_plain: tuple[str, ...] = ()
    """The variables without secret values: they are stored with the plan."""
    limits: Limits = field(default_factory=Limits)
    max_cost: int | None = None
    """The most that the plan may cost."""
    max_cost_per_run: int | None = None
    max_cost_per_task: int | None = None
    max_cost_per_loop: int | None = None
    """The most that all plans of the loop may cost together."""
    max_cost_per_project: int | None = None
    """The most that all plans of the project may cost together."""
    max_cost_per_day: int | None = None
    """The most that all plans of the project may cost on one day, in UTC."""
    reserve_per_run: int | None = 500_000
    """The least that is reserved of these limits for an agent that runs without its own limit."""
    prices: tuple[str, ...] = ()
    """More prices of models, as `core.policy.prices.read_price` takes them."""
    host_lost_after: float = 120.0
    agents: Mapping[str, Any] = field(default_factory=dict)
    wait_for_limits: bool = True
    """Whether the plan waits for an account; if not, the loop pauses."""
    longest_wait: float | None = 604800.0
    fallback: tuple[str, ...] = ()
    """Agents, each optionally with a model after a colon, that take over if an account is closed."""


# How long a plan waits for a limit that ends by itself: a used-up account, or the budget of a day.


def too_long(policy: Policy, *, since: datetime, until: datetime | None, now: datetime) -> str:
    """Return the setting by which a wait since `since` is too long; empty if it is not."""
    last = max(until or now, now)
    if policy.longest_wait is not None:
        longest = timedelta(seconds=policy.longest_wait)
        if max(last - now, now - since) > longest:
            return "longer than `longest_wait`"
    return ""
