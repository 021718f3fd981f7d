"""Settings that belong together under one name, such as `sandbox.level`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from loopwright.config.kinds import (
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


def setting(kind: Kind, default: Any, description: str, *, machine: bool = False) -> Any:
    """Declare a setting; one of a machine belongs to it and its user: no project or plan may decide it."""
    return field(default=default, metadata={"kind": kind, "description": description, "machine": machine})


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitValues:
    """When a run is ended even if nobody watches."""

    hard: float | None = setting(
        duration(off=True), 3600.0, "Ends a run after this time, whatever it is doing."
    )
    idle: float | None = setting(
        duration(off=True),
        1800.0,
        "Ends a run that shows no output, no processor time and no file change for so long.",
    )
    term_grace: float = setting(
        duration(zero=True), 5.0, "How long a process may take to end when asked, before it is killed."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingValues:
    """How finished work comes onto the plan branch."""

    parallel_gates: int = setting(
        count(1, 64),
        2,
        "How many finished tasks of a plan are checked at the same time, each on top of those before it.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundValues:
    """When a loop over a PROMPT.md goes on, and what stops it."""

    max: int = setting(count(1, 10_000), 10, "How many rounds there may be.")
    sleep: float = setting(duration(zero=True), 10.0, "How long it sleeps after a round.")
    until: Literal["auto", "green", "quiet"] = setting(
        choice("auto", "green", "quiet"),
        "auto",
        "Stops when the gate is green, or not before nothing more changes; auto: green if the prompt has acceptance.",
    )
    unchanged: int = setting(count(1, 1000), 2, "Stops after so many rounds in a row that changed nothing.")
    stop_after: float | None = setting(
        duration(off=True), None, "No round begins later than this after the first one."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskValues:
    """How much room on the disk has to stay, and how much one attempt may take."""

    min_free: int | None = setting(
        SIZE_OR_OFF,
        1024**3,
        "Starts no agent while less than this is free on the disk of the home; goes on by itself.",
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
        "Removes what agents of ended plans said, the oldest first, while all recordings take more than this.",
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
        description="Gives each run a HOME of its own that shows yours without its secrets; false: with them.",
        machine=True,
    )
    show: tuple[str, ...] = setting(
        _HOME_PATHS, (), "Secrets in your HOME that runs may see nevertheless, such as .netrc.", machine=True
    )
    hide: tuple[str, ...] = setting(
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

    level: Literal["auto", "none", "bubblewrap", "container"] = setting(
        choice("auto", "none", "bubblewrap", "container"),
        "auto",
        "What contains agents and gates; auto is the strongest that was proven to hold: a container if sandbox.image "
        "names an image, else bubblewrap, else none.",
        machine=True,
    )
    program: str = setting(
        text(what="the name or path of a bwrap program"),
        "bwrap",
        "The bubblewrap program; a path where it is not on PATH.",
        machine=True,
    )
    image: str | None = setting(
        text(what="the name of an image", optional=True),
        None,
        "The image that containers are made of, with the project's tools in it; it is never fetched by itself.",
        machine=True,
    )
    engine: str = setting(
        text(what="the name or path of a podman or docker program, or auto"),
        "auto",
        "The program that makes containers: its name or path. auto is podman if it works, else docker.",
        machine=True,
    )
    write: tuple[str, ...] = setting(
        _PLACES, (), "Places that every run may write besides its workspace, such as ~/.m2.", machine=True
    )
    read: tuple[str, ...] = setting(
        _PLACES, (), "Hidden places that every run may read, such as ~/data.", machine=True
    )
    network: Literal["on", "agents", "off"] = setting(
        choice("on", "agents", "off"),
        "on",
        "Who may use the network: everyone, agents but no gate and no setup command, or nobody. "
        "Without a sandbox that takes it away, nothing runs unless it is `on`.",
        machine=True,
    )


_HOST: Final = r"^[A-Za-z0-9.:-]+ (github|gitlab)( https?://\S+)?$"


def _is_host(entry: str) -> bool:
    return len(entry) <= 1000 and re.fullmatch(_HOST, entry) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeValues:
    """Where pull requests are opened."""

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
        "Hosts besides github.com and gitlab.com that are a GitHub or a GitLab and get a token of yours.",
        machine=True,
    )
    token_file: str | None = setting(
        text(what="the path of a file", optional=True, limit=1000),
        None,
        "A file that only you can read with the token in it; when empty, GITHUB_TOKEN, GH_TOKEN or GITLAB_TOKEN.",
        machine=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewValues:
    """Which changes an independent reviewer looks at before they land."""

    mode: Literal["off", "complex", "risky", "always"] = setting(
        choice("off", "complex", "risky", "always"),
        "off",
        "Which changes an agent that did not make them looks at before they land: none, as the complexity of "
        "their task asks for, risky ones, or all.",
    )
    agent: str | None = setting(
        text(what="the name of an agent, such as codex", pattern=AGENT_NAME, optional=True),
        None,
        "The agent that reviews; the one that did the work, in a conversation of its own, when empty.",
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
        "The most that the reviews of a task may cost, in percent of what its work has cost; 0 sets no limit.",
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
    """Who makes a plan of a goal."""

    agent: str | None = setting(
        text(what="the name of an agent, such as claude", pattern=AGENT_NAME, optional=True),
        None,
        "The agent that makes a plan of a goal; the one that works when empty.",
    )
    model: str | None = setting(
        text(what="the name of a model", optional=True), None, "The model that the planner uses."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorValues:
    """Which plans an agent looks at before anything of them runs."""

    mode: Literal["off", "complex", "always"] = setting(
        choice("off", "complex", "always"),
        "off",
        "Which plans an agent that did not make them looks at before they run: none, complex ones, or all.",
    )
    agent: str | None = setting(
        text(what="the name of an agent, such as codex", pattern=AGENT_NAME, optional=True),
        None,
        "The agent that judges plans; the one that works, in a conversation of its own, when empty.",
    )
    model: str | None = setting(
        text(what="the name of a model", optional=True), None, "The model that it uses."
    )


ROUND_FLAGS: Final[Mapping[str, str]] = {
    "rounds.max": "--max-rounds",
    "rounds.sleep": "--sleep",
    "rounds.until": "--until",
    "rounds.unchanged": "--max-unchanged",
    "rounds.stop_after": "--stop-after",
}
"""Flags that people look for under another name than the setting's."""
