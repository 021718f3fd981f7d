"""Settings that belong together under one name, such as `sandbox.level`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from loopwright.config.kinds import (
    DOLLARS,
    SIZE_OR_OFF,
    SWITCH,
    Kind,
    choice,
    count,
    duration,
    is_inside,
    items,
    text,
)

AGENT_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
WITH_MODEL: Final = rf"{AGENT_NAME}(:\S+)?"
"""An agent, perhaps with a model."""


def setting(kind: Kind, default: Any, description: str, *, machine: bool = False) -> Any:
    """Declare a setting; one of a machine belongs to it and its user: no project or plan may decide it."""
    return field(default=default, metadata={"kind": kind, "description": description, "machine": machine})


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitValues:
    """When a run is ended."""

    hard: float | None = setting(
        duration(off=True), 3600.0, "Ends a run after this time, whatever it is doing."
    )
    idle: float | None = setting(
        duration(off=True),
        1800.0,
        "Ends a run that shows no output, no processor time and no file change for this long.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingValues:
    """How finished work lands on the plan branch."""

    parallel_gates: int = setting(
        count(1, 64),
        2,
        "How many finished tasks of a plan are checked at the same time, each on top of those before it.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HealValues:
    """What `auto_heal` may try."""

    max_steps: int = setting(
        count(0, 20), 4, "How many different steps a failed task gets before Loopwright asks you."
    )
    investigator: str | None = setting(
        text(what="an agent, such as codex or claude:some-model", pattern=WITH_MODEL, optional=True),
        None,
        "The agent, with an optional model, that reads why a task failed before a step is chosen. It changes nothing.",
    )
    stronger: str | None = setting(
        text(what="an agent, such as codex or claude:some-model", pattern=WITH_MODEL, optional=True),
        None,
        "The agent, with an optional model, that gets a failed task last.",
    )


_AGENT: Final = "an agent, such as codex or claude:some-model"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerValues:
    """The agent that looks after the loops of a project in the daemon."""

    agent: str | None = setting(
        text(what=_AGENT, pattern=WITH_MODEL, optional=True),
        None,
        "The agent, with an optional model, that prioritises, pauses and splits work and answers questions. Its tools "
        "need MCP. Without one there is no manager.",
    )
    every: float | None = setting(
        duration(off=True), None, "How often it looks even if nothing happened.", machine=False
    )
    on_events: bool = setting(
        SWITCH,
        True,
        "Whether it looks when a task fails, an agent asks, a plan is held or the monitor reports.",
    )
    per_day: int = setting(count(1, 1_000), 24, "How often it looks in 24 hours at most.")
    max_cost: int | None = setting(DOLLARS, 1_000_000, "What one look may cost, or off.")
    spending: int | None = setting(
        DOLLARS, 20_000_000, "What all its looks, and everything that it creates, may cost together, or off."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OrchestratorValues:
    """The agent that turns a goal into loops in the daemon."""

    agent: str | None = setting(
        text(what=_AGENT, pattern=WITH_MODEL, optional=True),
        None,
        "The agent, with an optional model, that gets the goals of `delegate`. Its tools need MCP.",
    )
    max_cost: int | None = setting(DOLLARS, 2_000_000, "What its own run for one goal may cost, or off.")
    spending: int | None = setting(
        DOLLARS, 20_000_000, "What its runs, and everything that it creates, may cost together, or off."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorValues:
    """How closely agents are watched."""

    every: float = setting(duration(), 30.0, "How often the monitor looks at the agents.", machine=True)
    hung: float = setting(
        duration(),
        300.0,
        "A waiting `worker` or daemon replaces the process that holds the home after so long without progress.",
        machine=True,
    )
    stuck: int = setting(
        count(2, 10_000),
        30,
        "After so many looks without progress an agent counts as stuck; twice as many while a tool of it works.",
        machine=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundValues:
    """When a loop over a PROMPT.md continues, and what stops it."""

    max: int = setting(count(1, 10_000), 10, "The most rounds.")
    sleep: float = setting(duration(zero=True), 10.0, "How long the loop sleeps after a round.")
    until: Literal["auto", "green", "quiet"] = setting(
        choice("auto", "green", "quiet"),
        "auto",
        "Stops when the gate passes, or also when nothing changes (quiet); auto: green if the prompt has acceptance.",
    )
    unchanged: int = setting(count(1, 1000), 2, "Stops after this many rounds in a row that changed nothing.")
    stop_after: float | None = setting(
        duration(off=True), None, "No round begins later than this after the first one."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskValues:
    """How much disk must stay free, and how much one attempt may take."""

    min_free: int | None = setting(
        SIZE_OR_OFF,
        1024**3,
        "Starts no agent while less than this is free on the disk of the home; resumes by itself.",
        machine=True,
    )
    max_workspace: int | None = setting(
        SIZE_OR_OFF,
        20 * 1024**3,
        "Ends an agent whose workspace and temporary files take more than this.",
        machine=True,
    )
    keep_recordings: int | None = setting(
        SIZE_OR_OFF,
        20 * 1024**3,
        "Removes recordings of ended plans, the oldest first, while all recordings take more than this.",
        machine=True,
    )


_HOME_PATHS: Final = items(
    what="a list of paths relative to your HOME, without ..", each=is_inside, schema={"maxLength": 1000}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFolderValues:
    """What runs see of your HOME."""

    private: bool = setting(
        SWITCH,
        default=True,
        description="Gives each run its own HOME, which shows yours without its secrets; false: with them.",
        machine=True,
    )
    show: tuple[str, ...] = setting(
        _HOME_PATHS, (), "Secrets in your HOME that runs may see, such as .netrc.", machine=True
    )
    hide: tuple[str, ...] = setting(
        _HOME_PATHS, (), "More files and folders in your HOME that runs must not see.", machine=True
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
    """What contains agents and gates."""

    level: Literal["auto", "none", "bubblewrap", "container"] = setting(
        choice("auto", "none", "bubblewrap", "container"),
        "auto",
        "What contains agents and gates. auto is the strongest that passed its test: a container if sandbox.image "
        "names an image, else bubblewrap, else none.",
        machine=True,
    )
    required: bool = setting(
        SWITCH,
        default=False,
        description="Runs agents and commands of a plan only in a sandbox, and gives them no forge token.",
    )
    program: str = setting(
        text(what="the name or path of a bwrap program"),
        "bwrap",
        "The bubblewrap program; a path if it is not on PATH.",
        machine=True,
    )
    image: str | None = setting(
        text(what="the name of an image", optional=True),
        None,
        "The image for containers, with the project's tools in it. Loopwright never pulls it.",
        machine=True,
    )
    engine: str = setting(
        text(what="the name or path of a podman or docker program, or auto"),
        "auto",
        "The program that makes containers: its name or path. auto is podman if it works, else docker.",
        machine=True,
    )
    write: tuple[str, ...] = setting(
        _PLACES, (), "Places outside the workspace that every run may write, such as ~/.m2.", machine=True
    )
    read: tuple[str, ...] = setting(
        _PLACES, (), "Hidden places that every run may read, such as ~/data.", machine=True
    )
    network: Literal["on", "agents", "off"] = setting(
        choice("on", "agents", "off"),
        "on",
        "What may use the network: everything, agents but no gate and no setup command, or nothing. "
        "Without a sandbox that can block the network, nothing runs unless it is `on`.",
        machine=True,
    )


_HOST: Final = r"^[A-Za-z0-9.:-]+ (github|gitlab)( https?://\S+)?$"


def _is_host(entry: str) -> bool:
    return len(entry) <= 1000 and re.fullmatch(_HOST, entry) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeValues:
    """Where pull requests are opened, and which issues become work."""

    remote: str = setting(
        text(what="the name of a git remote", pattern=r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,99}"),
        "origin",
        "The git remote that a pull request goes to.",
    )
    hosts: tuple[str, ...] = setting(
        items(
            what='a list such as ["git.example.com gitlab"], each perhaps with the address of its interface',
            each=_is_host,
            schema={"pattern": _HOST, "maxLength": 1000},
        ),
        (),
        "More GitHub and GitLab hosts that get your token, besides github.com and gitlab.com.",
        machine=True,
    )
    token_file: str | None = setting(
        text(what="the path of a file", optional=True, limit=1000),
        None,
        "A file with the token that only you can read; when empty, GITHUB_TOKEN, GH_TOKEN or GITLAB_TOKEN.",
        machine=True,
    )
    issues: str | None = setting(
        text(what="the name of a label", optional=True, limit=100),
        None,
        "The label of issues that become work; when empty, none do.",
    )
    every: float = setting(
        duration(), 60.0, "How often the daemon looks at issues and their pull requests.", machine=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewValues:
    """Which changes an independent reviewer checks before they land."""

    mode: Literal["off", "complex", "risky", "always"] = setting(
        choice("off", "complex", "risky", "always"),
        "off",
        "Which changes another agent reviews before they land: none, by the complexity of "
        "their task, risky ones, or all.",
    )
    agent: str | None = setting(
        text(what="the name of an agent, such as codex", pattern=AGENT_NAME, optional=True),
        None,
        "The agent that reviews; when empty, the agent that did the work, in a new conversation.",
    )
    model: str | None = setting(
        text(what="the name of a model", optional=True), None, "The model that the reviewer uses."
    )
    max_turns: int = setting(
        count(0, 20),
        2,
        "How often the agent of an attempt may fix what a reviewer found, before the attempt is rejected.",
    )
    max_share: int = setting(
        count(0, 100),
        15,
        "The most that the reviews of a task may cost, in percent of the cost of its work; 0 sets no limit.",
    )
    lines: int = setting(count(0, 1_000_000), 300, "A change of more lines than this is risky.")
    paths: tuple[str, ...] = setting(
        items(
            what="a list of patterns relative to the project, without ..; ! in front takes files out",
            each=lambda pattern: is_inside(pattern.removeprefix("!")),
            schema={"maxLength": 1000},
        ),
        (),
        "More files whose changes are risky; ! in front takes files out.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerValues:
    """Which agent turns a goal into a plan."""

    agent: str | None = setting(
        text(what="the name of an agent, such as claude", pattern=AGENT_NAME, optional=True),
        None,
        "The agent that turns a goal into a plan; the one that works when empty.",
    )
    model: str | None = setting(
        text(what="the name of a model", optional=True), None, "The model that the planner uses."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorValues:
    """Which plans an agent evaluates before they run."""

    mode: Literal["off", "complex", "always"] = setting(
        choice("off", "complex", "always"),
        "off",
        "Which plans another agent evaluates before they run: none, complex ones, or all.",
    )
    agent: str | None = setting(
        text(what="the name of an agent, such as codex", pattern=AGENT_NAME, optional=True),
        None,
        "The agent that evaluates plans, and tracks even if `mode` is off; when empty, the one that works, in a "
        "new conversation.",
    )
    model: str | None = setting(
        text(what="the name of a model", optional=True), None, "The model that the evaluator uses."
    )


ROUND_FLAGS: Final[Mapping[str, str]] = {
    "rounds.max": "--max-rounds",
    "rounds.sleep": "--sleep",
    "rounds.until": "--until",
    "rounds.unchanged": "--max-unchanged",
    "rounds.stop_after": "--stop-after",
}
"""Flags that people look for under another name than the setting's."""
