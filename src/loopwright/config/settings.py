"""Every setting, once: its name, type, default and description.

The documentation's tables, `config show`, the commented loopwright.toml and the JSON Schemas are all made
from the fields below, and the values are read by their kinds. Settings with a prefix, such as `sandbox.level`, are in
`config.groups`. A setting that a plan keeps while it runs also needs a field of the same name in
`core.values.policy.Policy`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from loopwright.config.accounts import ACCOUNT_NAME, ACCOUNT_SETTINGS
from loopwright.config.gates import GATES, TEST_RUNNERS
from loopwright.config.groups import (
    AGENT_NAME,
    ROUND_FLAGS,
    DiskValues,
    EvaluatorValues,
    ForgeValues,
    HealValues,
    LandingValues,
    LimitValues,
    ManagerValues,
    MonitorValues,
    OrchestratorValues,
    PlannerValues,
    ReviewValues,
    RoundValues,
    SandboxValues,
    UserFolderValues,
    setting,
)
from loopwright.config.kinds import (
    DOLLARS,
    MAX_TEXT,
    OPTION,
    SWITCH,
    Kind,
    choice,
    count,
    duration,
    is_inside,
    items,
    read_home,
    text,
)
from loopwright.config.lists import (
    COMMANDS,
    DOCUMENTS,
    FALLBACKS,
    NETWORKS,
    PRICES,
    SLOTS,
    TARGETS,
    VARIABLES,
    paths,
)
from loopwright.core.values.policy import (
    ConfiguredRunner,
    GateCommand,
    HealPolicy,
    Limits,
    Policy,
    ReviewPolicy,
    RoundsPolicy,
    done_grace,
)
from loopwright.core.values.state_folders import DEFAULT_FOLDER, STATE_FOLDERS

MOST_FIX_CYCLES: Final = 20
_OPTION_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """All settings, each with its default."""

    agent: str = setting(
        text(what="the name of an agent, such as claude", pattern=AGENT_NAME),
        "claude",
        "The agent that works on tasks.",
    )
    model: str | None = setting(
        text(what="the name of a model", optional=True),
        None,
        "The model that the agent uses; the agent's own default when empty.",
    )
    permission_mode: Literal["auto", "read-only", "edit", "sandboxed-all"] = setting(
        choice("auto", "read-only", "edit", "sandboxed-all"),
        "auto",
        "What an agent may do without asking; auto is sandboxed-all inside a sandbox, else edit.",
    )
    allowed_commands: tuple[str, ...] = setting(
        COMMANDS,
        (),
        "Commands that agents may run without asking; * as the last word allows any further arguments.",
    )
    answer_within: float | None = setting(
        duration(off=True),
        86400.0,
        "How long a question waits for your answer. After that its default counts, or its task is blocked.",
    )
    parallel: int = setting(count(1, 256), 2, "How many tasks run at the same time.")
    agent_slots: tuple[str, ...] = setting(
        SLOTS,
        (),
        "How many runs of an agent, or of one of its accounts, may be active at once, for all projects together.",
        machine=True,
    )
    project_slots: int = setting(
        count(0, 256), 0, "How many agents may work for one project at once; 0: any number.", machine=True
    )
    max_attempts: int = setting(count(1, 100), 3, "How many judged attempts a task may have before it fails.")
    max_call_retries: int = setting(
        count(0, 1000),
        5,
        "How often failures of a service or a machine are retried; they do not use up attempts.",
    )
    fix_cycles: int = setting(
        count(0, MOST_FIX_CYCLES),
        3,
        "How often findings of the complete gate or of a QA review become tasks that fix them.",
    )
    allow_unverified: bool = setting(
        SWITCH, default=False, description="Lets work land that no gate checks. The exit code says so."
    )
    auto_heal: bool = setting(
        SWITCH,
        default=False,
        description="Tries more for a task that failed for good, chosen by its likely cause, before it asks you.",
    )
    auto_refine: bool = setting(
        SWITCH,
        default=False,
        description="Proposes a lesson as soon as two tasks fail in the same way. Agents get it once you approve it.",
    )
    autonomy: Literal["manual", "supervised", "auto"] = setting(
        choice("manual", "supervised", "auto"),
        "auto",
        "What a plan waits for: manual, your dispatch and your verify; supervised, your dispatch; auto, nothing.",
    )
    on_task_error: Literal["hold", "fail"] = setting(
        choice("hold", "fail"),
        "hold",
        "Whether a failed task holds the plan for you, or fails the plan at once.",
    )
    finish: Literal["leave", "fast-forward", "squash", "pull-request"] = setting(
        choice("leave", "fast-forward", "squash", "pull-request"),
        "leave",
        "What happens to the branch of a verified plan: it stays, goes into the base, or becomes a pull request.",
    )
    finish_sign: bool = setting(
        SWITCH,
        default=False,
        description="Signs the commits that finish a plan with your git signing key.",
        machine=True,
    )
    state_folder: Literal[".loopwright", ".claude/state"] = setting(
        choice(*STATE_FOLDERS),
        DEFAULT_FOLDER,
        "Where state files are written in your checkout.",
    )
    max_unreviewed: int = setting(
        count(0, 10_000),
        0,
        "How many results may wait for your review (`loopwright reviewed PLAN`) before new work waits; 0: any number.",
    )
    dependencies: str | None = setting(
        text(what="a shell command", optional=True, limit=MAX_TEXT),
        None,
        "The shell command that installs dependencies. It runs once per lock file; other workspaces get a copy.",
    )
    dependency_files: tuple[str, ...] = setting(
        paths("a list of patterns relative to the project, without .."),
        (),
        "More files that decide what `dependencies` installs, beside the usual manifests and lock files.",
    )
    setup: str | None = setting(
        text(what="a shell command", optional=True, limit=MAX_TEXT),
        None,
        "The shell command that prepares each fresh workspace, such as installing or building the project itself.",
    )
    setup_timeout: float = setting(
        duration(), 900.0, "How long `dependencies` and `setup` may take, each time they run."
    )
    copy_files: tuple[str, ...] = setting(
        paths("a list of paths relative to the project, without .."),
        (),
        "Untracked files of your checkout that each workspace needs, such as .env.",
    )
    gate_files: tuple[str, ...] = setting(
        items(
            what="a list of patterns relative to the project, without ..; ! in front takes files out",
            each=lambda pattern: is_inside(pattern.removeprefix("!")),
            schema={"maxLength": 1000},
        ),
        (),
        "More files that decide what the gates say. Work is judged with their old versions. ! in front excludes files.",
    )
    may_change: tuple[str, ...] = setting(
        paths("a list of patterns relative to the project, without ..; FILE::TEST names one test"),
        (),
        "Tests and other judging files that work may change even if it breaks their old versions.",
    )
    test_changes: Literal["ask", "allow"] = setting(
        choice("ask", "allow"),
        "ask",
        "Whether work that contradicts an existing check waits for a reviewer or you, or is allowed.",
    )
    installed_gates: tuple[str, ...] = setting(
        items(what="a list of names of gates", each=bool, schema={"maxLength": 200}),
        (),
        "Gates that test an installed build on purpose and so cannot detect a broken tree: a gap in every result.",
    )
    test_runners: tuple[ConfiguredRunner, ...] = setting(
        TEST_RUNNERS,
        (),
        "Test runners that Loopwright does not know: how they name tests, and how to try them.",
    )
    check_base: bool = setting(
        SWITCH,
        default=True,
        description="Runs the gates on the base commit before a plan spends anything.",
    )
    red_proof: Literal["fixes", "off"] = setting(
        choice("fixes", "off", switch=("fixes", "off")),
        "fixes",
        "Whose checks must fail without the work: those of fixes and tasks with `prove`, or only the latter.",
    )
    qa_mode: Literal["full", "lite"] = setting(
        choice("full", "lite"),
        "full",
        "What a QA review covers: everything, or only whether the main path works.",
    )
    business_docs: bool = setting(
        SWITCH,
        default=False,
        description="Asks agents to name documents about prices, tiers or personas that their change makes wrong.",
    )
    business_documents: tuple[str, ...] = setting(
        DOCUMENTS,
        (),
        "These documents, the most general one first. Agents read and update them in this order.",
    )
    unseen_proof: bool = setting(
        SWITCH,
        default=False,
        description="Counts work as verified with gaps if no reviewer and no held-out check judged it.",
    )
    environment: tuple[str, ...] = setting(
        VARIABLES,
        (),
        "Names of environment variables that agents and gates may see; their values count as secrets.",
    )
    environment_plain: tuple[str, ...] = setting(
        VARIABLES,
        (),
        "The same for variables that are not secret: their values are stored with the plan.",
    )
    env_file: str | None = setting(
        text(what="the path of a file", optional=True, limit=1000),
        None,
        "A file with lines NAME=value that only you can read: secret variables that the worker's environment lacks.",
        machine=True,
    )
    secrets_from: str | None = setting(
        text(what="`keyring`, or a command", optional=True, limit=1000),
        None,
        "Where secret variables come from that neither the worker's environment nor env_file has: `keyring`, or a "
        "command that prints the value of `{name}`.",
        machine=True,
    )
    webhook_networks: tuple[str, ...] = setting(
        NETWORKS,
        (),
        "Networks to which webhooks may be sent besides public addresses; over plain http too.",
        machine=True,
    )
    notify: tuple[str, ...] = setting(
        TARGETS,
        (),
        "URLs of Apprise that get a notice when a plan is done, failed, needs you or nears its budget, and of alerts. "
        "`${NAME}` is replaced by the secret variable NAME.",
        machine=True,
    )
    otlp_endpoint: str | None = setting(
        text(
            what="an address such as http://localhost:4318, without a login",
            pattern=r"https?://[^\s@?#]+",
            optional=True,
            limit=1000,
        ),
        None,
        "Where traces of plans go: an OpenTelemetry collector that takes OTLP over HTTP. None are made when empty.",
        machine=True,
    )
    max_cost: int | None = setting(
        DOLLARS,
        None,
        "What the plan may cost, in dollars. At the limit, agents stop, their work is kept, and the plan pauses.",
    )
    max_cost_per_run: int | None = setting(
        DOLLARS, None, "The same for one run of an agent; this much stays reserved for each run."
    )
    max_cost_per_task: int | None = setting(DOLLARS, None, "The same for all runs of a task together.")
    max_cost_per_loop: int | None = setting(
        DOLLARS, None, "The same for all plans of a loop together: all that came from one plan file."
    )
    max_cost_per_project: int | None = setting(
        DOLLARS, None, "The same for all plans of the project together."
    )
    max_cost_per_day: int | None = setting(
        DOLLARS,
        None,
        "The same for all plans of the project on one day (UTC); the next day work resumes by itself.",
    )
    prices: tuple[str, ...] = setting(
        PRICES,
        (),
        "More prices of models, or other ones: model, then dollars for a million tokens of input, output, cache read, "
        "cache write.",
    )
    wait_for_limits: bool = setting(
        SWITCH,
        default=True,
        description="Waits when an account is used up or locked; false: the plan pauses and says why.",
    )
    longest_wait: float | None = setting(
        duration(off=True),
        604800.0,
        "Pauses the plan if it would wait longer than this for an account.",
    )
    fallback: tuple[str, ...] = setting(
        FALLBACKS,
        (),
        "Agents, each with an optional model, that take over while an account is closed, or if a model fails.",
    )
    host_lost_after: float = setting(
        duration(), 120.0, "How long a machine may be silent before others take over its work."
    )
    lease: float = setting(
        duration(),
        15.0,
        "How long a worker counts as alive after its last heartbeat, on a shared database.",
        machine=True,
    )
    home: Path | None = setting(  # noqa: RUF009 - it declares the field
        Kind(
            name="path",
            expected="an absolute path, or one that starts with ~/",
            read=read_home,
            show=lambda path: str(path) if path is not None else "",
            schema={"type": "string", "pattern": "^$|^(/|~/)"},
        ),
        None,
        "Where the database, workspaces and run files are; your data folder when empty.",
        machine=True,
    )
    database: str | None = setting(
        text(
            what="a URL that starts with postgresql://",
            pattern=r"(postgresql|postgres)(\+[a-z0-9]+)?://.*",
            optional=True,
            limit=2000,
        ),
        None,
        "The URL of a PostgreSQL database; SQLite in the home when empty.",
        machine=True,
    )
    limits: LimitValues = field(default_factory=LimitValues, metadata={"description": "When a run is ended."})
    landing: LandingValues = field(
        default_factory=LandingValues,
        metadata={"description": "How finished work lands on the plan branch."},
    )
    disk: DiskValues = field(
        default_factory=DiskValues,
        metadata={"description": "How much disk agents may use, and must leave free."},
    )
    user_folder: UserFolderValues = field(
        default_factory=UserFolderValues, metadata={"description": "What runs see of your HOME."}
    )
    sandbox: SandboxValues = field(
        default_factory=SandboxValues,
        metadata={"description": "What contains agents and gates."},
    )
    heal: HealValues = field(
        default_factory=HealValues, metadata={"description": "What `auto_heal` may try."}
    )
    manager: ManagerValues = field(
        default_factory=ManagerValues,
        metadata={"description": "The agent that looks after loops in the daemon."},
    )
    orchestrator: OrchestratorValues = field(
        default_factory=OrchestratorValues,
        metadata={"description": "The agent that turns goals into loops in the daemon."},
    )
    monitor: MonitorValues = field(
        default_factory=MonitorValues, metadata={"description": "How closely agents are watched."}
    )
    review: ReviewValues = field(
        default_factory=ReviewValues,
        metadata={"description": "Which changes an independent reviewer checks before they land."},
    )
    rounds: RoundValues = field(
        default_factory=RoundValues,
        metadata={"description": "When a loop over a PROMPT.md continues, and what stops it."},
    )
    planner: PlannerValues = field(
        default_factory=PlannerValues, metadata={"description": "Which agent turns a goal into a plan."}
    )
    evaluator: EvaluatorValues = field(
        default_factory=EvaluatorValues,
        metadata={"description": "Which plans an agent evaluates before they run."},
    )
    forge: ForgeValues = field(
        default_factory=ForgeValues,
        metadata={"description": "Where pull requests are opened, and which issues become work."},
    )
    agents: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict,
        metadata={"description": "Options of single agents, such as binary or max_turns."},
    )
    accounts: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    """The accounts of agents, by agent and name; see `config.accounts`."""
    gates: tuple[GateCommand, ...] = setting(
        GATES, (), "The project's own checks, run in order; all of them decide."
    )

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> "Values":
        """Return the settings from checked values by dotted key."""
        tree: dict[str, dict[str, Any]] = {"": {}, "agents": {}, **{name: {} for name in GROUPS}}
        accounts: dict[str, dict[str, dict[str, Any]]] = {}
        for key, value in written.items():
            setting = setting_of(key)
            assert setting is not None, key
            group, _, name = key.rpartition(".")
            if account := _account(key):
                agent, account_name, _ = account
                accounts.setdefault(agent, {}).setdefault(account_name, {})[name] = setting.kind.read(value)
                continue
            branch = tree[group] if group in tree else tree["agents"].setdefault(group.partition(".")[2], {})
            branch[name] = setting.kind.read(value)
        groups: dict[str, Any] = {name: made(**tree[name]) for name, made in GROUPS.items()}
        return cls(**tree[""], **groups, agents=tree["agents"], accounts=accounts)

    def policy(self) -> Policy:
        """Return the policy of a plan: each field has the name of its setting."""
        return _same(
            Policy,
            self,
            limits=_same(Limits, self.limits, done_grace=done_grace(self.limits.idle)),
            heal=_same(HealPolicy, self.heal),
            review=_same(ReviewPolicy, self.review),
            rounds=_same(RoundsPolicy, self.rounds),
            remote=self.forge.remote,
            sandbox_required=self.sandbox.required,
            parallel_gates=self.landing.parallel_gates,
            agents={name: dict(options) for name, options in self.agents.items()},
        )


P = TypeVar("P", Policy, Limits, HealPolicy, ReviewPolicy, RoundsPolicy)


def _same(kind: type[P], values: "Values | _Group", **others: Any) -> P:
    """Return a value of this kind from the settings of the same names."""
    known = {each.name for each in fields(values)} & {each.name for each in fields(kind)}
    return kind(**{name: getattr(values, name) for name in known - others.keys()}, **others)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting as the documentation, the files and the messages see it."""

    key: str
    """Dotted: `limits.hard`."""
    kind: Kind
    default: Any
    description: str
    machine: bool
    """Only a flag, the environment or the user's own file may set it."""

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "LOOPWRIGHT_" + self.key.replace(".", "__").upper()

    @property
    def flag(self) -> str:
        """The command-line flag that sets it."""
        return ROUND_FLAGS.get(self.key) or "--" + self.key.replace(".", "-").replace("_", "-")


_Group = (
    LimitValues
    | LandingValues
    | DiskValues
    | UserFolderValues
    | SandboxValues
    | HealValues
    | MonitorValues
    | ReviewValues
    | RoundValues
    | PlannerValues
    | EvaluatorValues
    | ForgeValues
    | ManagerValues
    | OrchestratorValues
)

GROUPS: Final[Mapping[str, type[_Group]]] = {
    "limits": LimitValues,
    "landing": LandingValues,
    "disk": DiskValues,
    "user_folder": UserFolderValues,
    "sandbox": SandboxValues,
    "heal": HealValues,
    "manager": ManagerValues,
    "orchestrator": OrchestratorValues,
    "monitor": MonitorValues,
    "review": ReviewValues,
    "rounds": RoundValues,
    "planner": PlannerValues,
    "evaluator": EvaluatorValues,
    "forge": ForgeValues,
}


CONSTANTS: Final[Mapping[str, str]] = {
    "caches": "workspaces share download caches of package managers",
    "latest_resume": "a plan resumes at any hour",
    "limits.done_grace": "1m, or half of limits.idle if that is shorter",
    "limits.output": "64MB",
    "limits.term_grace": "5s",
    "ports": "each attempt has 10 ports, from 20000 on",
    "reserve_per_run": "$0.50, or what similar runs cost on average",
}
"""Settings of earlier versions that are constants now, each with what holds instead."""


@cache
def settings() -> Mapping[str, Setting]:
    """Return every setting by its dotted key, in the order of the documentation."""
    return {setting.key: setting for setting in _walk(Values, "")}


def _walk(group: type[Any], prefix: str) -> Iterator[Setting]:
    for each in fields(group):
        if each.name in GROUPS and not prefix:
            yield from _walk(GROUPS[each.name], f"{each.name}.")
        elif "kind" in each.metadata:
            yield Setting(key=prefix + each.name, default=each.default, **each.metadata)


def description_of(name: str) -> str:
    """Return what is said about a group of settings."""
    return str(next(each.metadata["description"] for each in fields(Values) if each.name == name))


def setting_of(key: str) -> Setting | None:
    """Return the setting with this dotted key; options of agents are found by their shape."""
    known = settings().get(key)
    if known is not None:
        return known
    if account := _account(key):
        agent, name, option = account
        made = ACCOUNT_SETTINGS[option]
        description = f"{made.description} (Account {name} of {agent}.)"
        return Setting(key=key, kind=made.kind, default=None, description=description, machine=True)
    parts = key.split(".")
    if (
        len(parts) == 3
        and parts[2] != "accounts"
        and parts[0] == "agents"
        and re.fullmatch(AGENT_NAME, parts[1])
        and _OPTION_NAME.fullmatch(parts[2])
    ):
        description = f"Option {parts[2]} of the agent {parts[1]}."
        return Setting(key=key, kind=OPTION, default=None, description=description, machine=False)
    return None


def _account(key: str) -> tuple[str, str, str] | None:
    """Return agent, account and option of the key of an account's setting; None for any other."""
    match key.split("."):
        case ["agents", agent, "accounts", name, option] if (
            option in ACCOUNT_SETTINGS
            and re.fullmatch(AGENT_NAME, agent)
            and re.fullmatch(ACCOUNT_NAME, name)
        ):
            return agent, name, option
    return None
