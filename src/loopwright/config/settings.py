"""Every setting, once: its name, type, default and description.

The documentation's tables, `config show`, the commented loopwright.toml and the JSON Schemas are all made
from the fields below, and the values are checked by them. This module imports pydantic, which is slow to
load: whatever must start quickly imports it late.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

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
from loopwright.core.model import GateCommand, Limits, Policy

AGENT_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
_OPTION_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class _Machine:
    """Marks a setting that belongs to a machine and its user: no project or plan may decide it."""


MACHINE: Final = _Machine()


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


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LimitValues(_Frozen):
    """When a run is ended even if nobody watches."""

    hard: Annotated[float | None, duration(off=True)] = Field(
        default=3600.0, description="Ends a run after this time, whatever it is doing."
    )
    idle: Annotated[float | None, duration(off=True)] = Field(
        default=1800.0,
        description="Ends a run that shows no output, no processor time and no file change for so long.",
    )
    done_grace: Annotated[float | None, duration(off=True, zero=True)] = Field(
        default=60.0, description="Ends an agent that said it is done but does not exit within this time."
    )
    output: Annotated[int, SIZE] = Field(
        default=64 * 1024 * 1024, description="How much output of a run is kept; 1KB is 1024 bytes."
    )
    term_grace: Annotated[float, duration(zero=True)] = Field(
        default=5.0, description="How long a process may take to end when asked, before it is killed."
    )


class PortValues(_Frozen):
    """The range of network ports that each attempt has for itself."""

    size: Annotated[int, count(1, 1000), MACHINE] = Field(
        default=10,
        description="How many ports are reserved for each attempt, so that test servers do not collide.",
    )
    first: Annotated[int, count(1024, 65000), MACHINE] = Field(
        default=20000, description="The first port of the first attempt's range."
    )


class Values(_Frozen):
    """All settings, each with its default."""

    agent: Annotated[str, text(what="the name of an agent, such as claude", pattern=AGENT_NAME)] = Field(
        default="claude", description="The agent that works on tasks."
    )
    model: Annotated[str | None, text(what="the name of a model", optional=True)] = Field(
        default=None, description="The model that the agent uses; the agent's own default when empty."
    )
    permission_mode: Annotated[Literal["read-only", "edit", "full"], choice("read-only", "edit", "full")] = (
        Field(default="edit", description="What an agent may do in its workspace without asking.")
    )
    parallel: Annotated[int, count(1, 256)] = Field(
        default=2, description="How many tasks are worked on at the same time."
    )
    max_attempts: Annotated[int, count(1, 100)] = Field(
        default=3, description="How many judged attempts a task has before it fails."
    )
    max_call_retries: Annotated[int, count(0, 1000)] = Field(
        default=5,
        description="How often failures of a service or a machine are retried; they use up no attempt.",
    )
    allow_unverified: Annotated[bool, SWITCH] = Field(
        default=False, description="Lets work land that no gate checks; the exit code says so."
    )
    on_task_error: Annotated[Literal["hold", "fail"], choice("hold", "fail")] = Field(
        default="hold",
        description="Whether a failed task holds the plan for a person, or fails the plan at once.",
    )
    setup: Annotated[str | None, text(what="a shell command", optional=True, limit=MAX_TEXT)] = Field(
        default=None,
        description="The shell command that prepares a fresh workspace, such as installing dependencies.",
    )
    setup_timeout: Annotated[float, duration()] = Field(
        default=900.0, description="How long the setup command may take."
    )
    copy_files: Annotated[
        tuple[str, ...],
        items(
            what="a list of paths relative to the project, without ..",
            each=is_inside,
            schema={"maxLength": 1000},
        ),
    ] = Field(
        default=(), description="Untracked files of your checkout that each workspace needs, such as .env."
    )
    environment: Annotated[
        tuple[str, ...],
        items(
            what="a list of names of environment variables",
            each=_is_variable,
            schema={"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
        ),
    ] = Field(
        default=(), description="Names of your environment variables that agents and gates may see as well."
    )
    max_cost: Annotated[int | None, DOLLARS] = Field(
        default=None,
        description="Pauses the plan once its agents have cost this many dollars; running ones may finish.",
    )
    host_lost_after: Annotated[float, duration()] = Field(
        default=120.0, description="How long a machine may be silent before others take its work over."
    )
    lease: Annotated[float, duration(), MACHINE] = Field(
        default=15.0,
        description="How long a worker counts as alive after its last sign, on a shared database.",
    )
    home: Annotated[
        Path | None,
        Kind(
            name="path",
            expected="an absolute path, or one that starts with ~/",
            read=_read_home,
            show=lambda path: str(path) if path is not None else "",
            schema={"type": "string", "pattern": "^$|^(/|~/)"},
        ),
        MACHINE,
    ] = Field(
        default=None,
        description="Where the database, workspaces and run files are; your data folder when empty.",
    )
    database: Annotated[
        str | None,
        text(
            what="a URL that starts with postgresql://",
            pattern=r"(postgresql|postgres)(\+[a-z0-9]+)?://.*",
            optional=True,
            limit=2000,
        ),
        MACHINE,
    ] = Field(default=None, description="The URL of a PostgreSQL database; SQLite in the home when empty.")
    caches: Annotated[bool, SWITCH, MACHINE] = Field(
        default=True, description="Shares download caches of package managers between workspaces."
    )
    limits: LimitValues = Field(
        default_factory=LimitValues, description="When a run is ended even if nobody watches."
    )
    ports: PortValues = Field(
        default_factory=PortValues, description="The network ports that each attempt has for itself."
    )
    agents: dict[str, dict[str, Annotated[Any, OPTION]]] = Field(
        default_factory=dict, description="Options of single agents, such as binary or max_turns."
    )
    gates: Annotated[tuple[GateCommand, ...], GATES] = Field(
        default=(), description="The project's own checks, run in order; all of them decide."
    )

    def policy(self) -> Policy:
        """Return what a plan is dispatched with."""
        limits = self.limits
        return Policy(
            agent=self.agent,
            model=self.model,
            permission_mode=self.permission_mode,
            parallel=self.parallel,
            max_attempts=self.max_attempts,
            max_call_retries=self.max_call_retries,
            allow_unverified=self.allow_unverified,
            on_task_error=self.on_task_error,
            setup=self.setup,
            setup_timeout_s=self.setup_timeout,
            copy_files=self.copy_files,
            environment=self.environment,
            limits=Limits(
                hard_s=limits.hard,
                idle_s=limits.idle,
                done_grace_s=limits.done_grace,
                output_bytes=limits.output,
                term_grace_s=limits.term_grace,
            ),
            max_cost_micros=self.max_cost,
            host_lost_after_s=self.host_lost_after,
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


GROUPS: Final[Mapping[str, type[_Frozen]]] = {"limits": LimitValues, "ports": PortValues}


@cache
def settings() -> Mapping[str, Setting]:
    """Return every setting by its dotted key, in the order of the documentation."""
    return {setting.key: setting for setting in _walk(Values, "")}


def _walk(model: type[_Frozen], prefix: str) -> Iterator[Setting]:
    for name, field in model.model_fields.items():
        if name in GROUPS and not prefix:
            yield from _walk(GROUPS[name], f"{name}.")
            continue
        kinds = [mark for mark in field.metadata if isinstance(mark, Kind)]
        if kinds:
            yield Setting(
                key=prefix + name,
                kind=kinds[0],
                default=field.get_default(call_default_factory=True),
                description=field.description or "",
                machine=MACHINE in field.metadata,
            )


def setting_of(key: str) -> Setting | None:
    """Return the setting with this dotted key; options of agents are found by their shape."""
    known = settings().get(key)
    if known is not None:
        return known
    parts = key.split(".")
    if (
        len(parts) == 3
        and parts[0] == "agents"
        and re.fullmatch(AGENT_NAME, parts[1])
        and _OPTION_NAME.fullmatch(parts[2])
    ):
        description = f"Option {parts[2]} of the agent {parts[1]}."
        return Setting(key=key, kind=OPTION, default=None, description=description, machine=False)
    return None
