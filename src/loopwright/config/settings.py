"""Every setting, once: its name, type, default and description.

The documentation's tables, `config show`, the commented loopwright.toml and the JSON Schemas are all made
from the fields below, and the values are read by their kinds.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from loopwright.config.accounts import ACCOUNT_NAME, ACCOUNT_SETTINGS
from loopwright.config.gates import GATES
from loopwright.config.kinds import (
    DOLLARS,
    MAX_TEXT,
    SIZE,
    SWITCH,
    Kind,
    WrongValue,
    choice,
    count,
    duration,
    is_inside,
    items,
    text,
)
from loopwright.core.policy import GateCommand, Limits, Policy
from loopwright.core.prices import read_price

AGENT_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
_OPTION_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


_FALLBACK: Final = rf"^{AGENT_NAME}(:\S+)?$"


def _is_fallback(text: str) -> bool:
    return re.fullmatch(_FALLBACK, text) is not None


def _is_command(text: str) -> bool:
    return bool(text.strip()) and len(text) <= 1000


def _is_price(text: str) -> bool:
    try:
        return len(text) <= 300 and read_price(text) is not None
    except ValueError:
        return False


def _is_variable(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", name) is not None


def _read_home(value: object) -> Path | None:
    expected = "an absolute path, or one that starts with ~/"
    if value == "":
        return None
    if isinstance(value, Path):
        value = str(value)
    if not isinstance(value, str) or not value.startswith(("/", "~/")) or "\0" in value:
        raise WrongValue(expected, value)
    return Path(value)


def _read_option(value: object) -> str | int | float | bool | list[str]:
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return list(value)
    if isinstance(value, str) and "\0" not in value:
        return value
    if isinstance(value, int | float) and math.isfinite(value):
        return value
    raise WrongValue("a text, a number, true or false, or a list of texts", value)


OPTION: Final = Kind(
    name="text, number, switch or list",
    expected="a text, a number, true or false, or a list of texts",
    read=_read_option,
    show=lambda value: value,
    schema={
        "anyOf": [
            {"type": ["string", "number", "boolean"]},
            {"type": "array", "items": {"type": "string"}},
        ]
    },
)


def _setting(kind: Kind, default: Any, description: str, *, machine: bool = False) -> Any:
    """Declare a setting; one of a machine belongs to it and its user: no project or plan may decide it."""
    return field(default=default, metadata={"kind": kind, "description": description, "machine": machine})


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitValues:
    """When a run is ended even if nobody watches."""

    hard: float | None = _setting(
        duration(off=True), 3600.0, "Ends a run after this time, whatever it is doing."
    )
    idle: float | None = _setting(
        duration(off=True),
        1800.0,
        "Ends a run that shows no output, no processor time and no file change for so long.",
    )
    done_grace: float | None = _setting(
        duration(off=True, zero=True),
        60.0,
        "Ends an agent that said it is done but does not exit within this time.",
    )
    output: int = _setting(SIZE, 64 * 1024 * 1024, "How much output of a run is kept; 1KB is 1024 bytes.")
    term_grace: float = _setting(
        duration(zero=True), 5.0, "How long a process may take to end when asked, before it is killed."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PortValues:
    """The range of network ports that each attempt has for itself."""

    size: int = _setting(
        count(1, 1000),
        10,
        "How many ports are reserved for each attempt, so that test servers do not collide.",
        machine=True,
    )
    first: int = _setting(
        count(1024, 65000), 20000, "The first port of the first attempt's range.", machine=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingValues:
    """How finished work comes onto the plan branch."""

    parallel_gates: int = _setting(
        count(1, 64),
        2,
        "How many finished tasks of a plan are checked at the same time, each on top of those before it.",
    )


_HOME_PATHS: Final = items(
    what="a list of paths relative to your HOME, without ..", each=is_inside, schema={"maxLength": 1000}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFolderValues:
    """What runs see of your HOME."""

    private: bool = _setting(
        SWITCH,
        default=True,
        description="Gives each run a HOME of its own that shows yours without its secrets; false: yours itself.",
        machine=True,
    )
    show: tuple[str, ...] = _setting(
        _HOME_PATHS, (), "Secrets in your HOME that runs may see nevertheless, such as .netrc.", machine=True
    )
    hide: tuple[str, ...] = _setting(
        _HOME_PATHS, (), "More files and folders in your HOME that no run is shown.", machine=True
    )


def _is_place(path: str) -> bool:
    return path.startswith(("/", "~/")) and "\0" not in path and ".." not in path.split("/")


_PLACES: Final = items(
    what="a list of paths that are absolute or start with ~/, without ..",
    each=_is_place,
    schema={"pattern": "^(/|~/)", "maxLength": 1000},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxValues:
    """What keeps agents and gates from the rest of the machine."""

    level: Literal["auto", "none", "bubblewrap"] = _setting(
        choice("auto", "none", "bubblewrap"),
        "auto",
        "What contains agents and gates; auto is bubblewrap where that was proven to hold, else none.",
        machine=True,
    )
    program: str = _setting(
        text(what="the name or path of a bwrap program"),
        "bwrap",
        "The bubblewrap program; a path where it is not on PATH.",
        machine=True,
    )
    write: tuple[str, ...] = _setting(
        _PLACES, (), "Places that every run may write besides its workspace, such as ~/.m2.", machine=True
    )
    read: tuple[str, ...] = _setting(
        _PLACES, (), "Hidden places that every run may read, such as ~/data.", machine=True
    )
    network: Literal["on", "agents", "off"] = _setting(
        choice("on", "agents", "off"),
        "on",
        "Who may use the network: everyone, agents but no gate and no setup command, or nobody.",
        machine=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """All settings, each with its default."""

    agent: str = _setting(
        text(what="the name of an agent, such as claude", pattern=AGENT_NAME),
        "claude",
        "The agent that works on tasks.",
    )
    model: str | None = _setting(
        text(what="the name of a model", optional=True),
        None,
        "The model that the agent uses; the agent's own default when empty.",
    )
    permission_mode: Literal["auto", "read-only", "edit", "sandboxed-all"] = _setting(
        choice("auto", "read-only", "edit", "sandboxed-all"),
        "auto",
        "What an agent may do without asking; auto is sandboxed-all where a sandbox contains it, else edit.",
    )
    allowed_commands: tuple[str, ...] = _setting(
        items(
            what='a list of commands, such as "pytest *"',
            each=_is_command,
            schema={"minLength": 1, "maxLength": 1000},
        ),
        (),
        "Commands that agents may run without asking; a last word * stands for any further ones.",
    )
    answer_within: float | None = _setting(
        duration(off=True),
        86400.0,
        "How long a question waits for your answer before its default is taken, or its task is blocked.",
    )
    parallel: int = _setting(count(1, 256), 2, "How many tasks are worked on at the same time.")
    max_attempts: int = _setting(count(1, 100), 3, "How many judged attempts a task has before it fails.")
    max_call_retries: int = _setting(
        count(0, 1000),
        5,
        "How often failures of a service or a machine are retried; they use up no attempt.",
    )
    fix_cycles: int = _setting(
        count(0, 20),
        3,
        "How often what the complete gate finds before the verification becomes a task that mends it.",
    )
    allow_unverified: bool = _setting(
        SWITCH, default=False, description="Lets work land that no gate checks; the exit code says so."
    )
    on_task_error: Literal["hold", "fail"] = _setting(
        choice("hold", "fail"),
        "hold",
        "Whether a failed task holds the plan for a person, or fails the plan at once.",
    )
    setup: str | None = _setting(
        text(what="a shell command", optional=True, limit=MAX_TEXT),
        None,
        "The shell command that prepares a fresh workspace, such as installing dependencies.",
    )
    setup_timeout: float = _setting(duration(), 900.0, "How long the setup command may take.")
    copy_files: tuple[str, ...] = _setting(
        items(
            what="a list of paths relative to the project, without ..",
            each=is_inside,
            schema={"maxLength": 1000},
        ),
        (),
        "Untracked files of your checkout that each workspace needs, such as .env.",
    )
    gate_files: tuple[str, ...] = _setting(
        items(
            what="a list of patterns relative to the project, without ..; ! in front takes files out",
            each=lambda pattern: is_inside(pattern.removeprefix("!")),
            schema={"maxLength": 1000},
        ),
        (),
        "More files that steer the gates, judged as they were before the work; ! in front takes files out.",
    )
    red_proof: bool = _setting(
        SWITCH,
        default=False,
        description="Runs a task's acceptance on the tree before its work too: what passes there proves nothing.",
    )
    environment: tuple[str, ...] = _setting(
        items(
            what="a list of names of environment variables",
            each=_is_variable,
            schema={"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
        ),
        (),
        "Names of your environment variables that agents and gates may see as well.",
    )
    max_cost: int | None = _setting(
        DOLLARS,
        None,
        "What the plan may cost, in dollars; at that its agents are stopped, their work is kept, and it pauses.",
    )
    max_cost_per_run: int | None = _setting(
        DOLLARS, None, "The same for a single run of an agent; this much is kept free for each that runs."
    )
    max_cost_per_task: int | None = _setting(DOLLARS, None, "The same for all runs of a task together.")
    max_cost_per_loop: int | None = _setting(
        DOLLARS, None, "The same for all plans of a loop together: those that one plan file ever had."
    )
    max_cost_per_project: int | None = _setting(
        DOLLARS, None, "The same for all plans of the project together."
    )
    max_cost_per_day: int | None = _setting(
        DOLLARS,
        None,
        "The same for all plans of the project together on one day by UTC; the next day it goes on by itself.",
    )
    prices: tuple[str, ...] = _setting(
        items(
            what='a list such as "gpt-5* 1.25 10 0.125": model, then dollars for a million tokens of input, output, '
            "cache read and cache write",
            each=_is_price,
            schema={"pattern": r"^\s*\S+(\s+[0-9]+(\.[0-9]{1,6})?){2,4}\s*$", "maxLength": 300},
        ),
        (),
        "More prices of models, or others: model, then dollars for a million tokens of input, output, cache read, "
        "cache write.",
    )
    wait_for_limits: bool = _setting(
        SWITCH,
        default=True,
        description="Waits when an account is used up or locked; false: the plan pauses and says why.",
    )
    longest_wait: float | None = _setting(
        duration(off=True),
        604800.0,
        "Pauses the plan where it would have to wait longer than this for an account.",
    )
    fallback: tuple[str, ...] = _setting(
        items(
            what='a list of agents, such as "codex" or "claude:some-model"',
            each=_is_fallback,
            schema={"pattern": _FALLBACK},
        ),
        (),
        "Agents, with a model if you like, that take over while an account is closed, or where a model cannot do it.",
    )
    host_lost_after: float = _setting(
        duration(), 120.0, "How long a machine may be silent before others take its work over."
    )
    lease: float = _setting(
        duration(),
        15.0,
        "How long a worker counts as alive after its last sign, on a shared database.",
        machine=True,
    )
    home: Path | None = _setting(  # noqa: RUF009 - it declares the field
        Kind(
            name="path",
            expected="an absolute path, or one that starts with ~/",
            read=_read_home,
            show=lambda path: str(path) if path is not None else "",
            schema={"type": "string", "pattern": "^$|^(/|~/)"},
        ),
        None,
        "Where the database, workspaces and run files are; your data folder when empty.",
        machine=True,
    )
    database: str | None = _setting(
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
    caches: bool = _setting(
        SWITCH,
        default=True,
        description="Shares download caches of package managers between workspaces.",
        machine=True,
    )
    limits: LimitValues = field(
        default_factory=LimitValues, metadata={"description": "When a run is ended even if nobody watches."}
    )
    landing: LandingValues = field(
        default_factory=LandingValues,
        metadata={"description": "How finished work comes onto the plan branch."},
    )
    ports: PortValues = field(
        default_factory=PortValues,
        metadata={"description": "The network ports that each attempt has for itself."},
    )
    user_folder: UserFolderValues = field(
        default_factory=UserFolderValues, metadata={"description": "What runs see of your HOME."}
    )
    sandbox: SandboxValues = field(
        default_factory=SandboxValues,
        metadata={"description": "What keeps agents and gates from the rest of the machine."},
    )
    agents: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict,
        metadata={"description": "Options of single agents, such as binary or max_turns."},
    )
    accounts: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    """What the settings name as accounts of agents, by agent and name; see `config.accounts`."""
    gates: tuple[GateCommand, ...] = _setting(
        GATES, (), "The project's own checks, run in order; all of them decide."
    )

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> "Values":
        """Return the settings for values by dotted key as they were written, which were checked before."""
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
        """Return what a plan is dispatched with."""
        limits = self.limits
        return Policy(
            agent=self.agent,
            model=self.model,
            permission_mode=self.permission_mode,
            allowed_commands=self.allowed_commands,
            answer_within_s=self.answer_within,
            parallel=self.parallel,
            max_attempts=self.max_attempts,
            max_call_retries=self.max_call_retries,
            allow_unverified=self.allow_unverified,
            on_task_error=self.on_task_error,
            setup=self.setup,
            setup_timeout_s=self.setup_timeout,
            copy_files=self.copy_files,
            gate_files=self.gate_files,
            fix_cycles=self.fix_cycles,
            parallel_gates=self.landing.parallel_gates,
            red_proof=self.red_proof,
            environment=self.environment,
            limits=Limits(
                hard_s=limits.hard,
                idle_s=limits.idle,
                done_grace_s=limits.done_grace,
                output_bytes=limits.output,
                term_grace_s=limits.term_grace,
            ),
            max_cost_micros=self.max_cost,
            max_run_cost_micros=self.max_cost_per_run,
            max_task_cost_micros=self.max_cost_per_task,
            max_loop_cost_micros=self.max_cost_per_loop,
            max_project_cost_micros=self.max_cost_per_project,
            max_day_cost_micros=self.max_cost_per_day,
            prices=self.prices,
            host_lost_after_s=self.host_lost_after,
            wait_for_limits=self.wait_for_limits,
            longest_wait_s=self.longest_wait,
            fallback=self.fallback,
            agent_options={name: dict(options) for name, options in self.agents.items()},
        )


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
        return "--" + self.key.replace(".", "-").replace("_", "-")


GROUPS: Final[
    Mapping[str, type[LimitValues | LandingValues | PortValues | UserFolderValues | SandboxValues]]
] = {
    "limits": LimitValues,
    "landing": LandingValues,
    "ports": PortValues,
    "user_folder": UserFolderValues,
    "sandbox": SandboxValues,
}


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
