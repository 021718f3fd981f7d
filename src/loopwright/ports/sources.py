"""Where work comes from, and how its status gets back there."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

from loopwright.core.replies.doc_sync import DocSync
from loopwright.core.values.policy import GateCommand, HeldOut


class Mark(StrEnum):
    """How an item is marked in its source. Each format has its own words for these."""

    OPEN = "open"
    RUNNING = "running"
    DONE = "done"
    BLOCKED = "blocked"
    """It waits for a person; the reason is beside it."""
    SKIPPED = "skipped"
    """It is not wanted any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTask:
    """A task as a source gives it."""

    key: str
    title: str
    description: str = ""
    criteria: tuple[str, ...] = ()
    acceptance: tuple[GateCommand, ...] = ()
    held_out: tuple[HeldOut, ...] = ()
    may_change: tuple[str, ...] = ()
    """Tests and judging files that it may change even if it contradicts them."""
    depends_on: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    """Tasks that come first in the order of the file. Unlike a dependency, one of them that is blocked, given up or
    waits for a person does not hold this task up."""
    manual: bool = False
    """A step for a person: it becomes a question when its predecessors are done, and no agent gets it."""
    section: str = ""
    """The text of the section around it, which its agent reads besides the description."""
    scope: tuple[str, ...] = ()
    priority: int = 50
    max_attempts: int | None = None
    agent: str | None = None
    model: str | None = None
    phase: str = ""
    """The group that the source puts it in."""
    type: str = ""
    """What kind of work the source says it is, in the source's own word (code, ui, docs, qa, ...)."""
    complexity: str | None = None
    """high, medium or low, where a person said so."""
    prove: bool = False
    """Whether its checks have to be seen to fail without its work."""
    mark: Mark = Mark.OPEN
    reason: str = ""
    """Why it is blocked."""
    commit: str | None = None
    """Where the source says that it was done."""
    attempts: int = 0
    """How many the source says were made at it before."""
    line: int | None = None
    """Where in the source it stands."""
    first: bool = False
    """Whether earlier work on this should be resumed: a plan that is made of it does so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Specs:
    """A folder with specifications that a source names."""

    folder: str
    """As it is written: relative to the folder of the file that names it, or to one above."""
    named_in: str
    """That file, relative to the folder of the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """What a source says of the track that it belongs to."""

    name: str
    type: str = ""
    stopped: str = ""
    """Why its own table of steps lets nothing run, in words; empty if it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWork:
    """A plan as a source gives it."""

    title: str
    tasks: tuple[PlannedTask, ...]
    gates: tuple[GateCommand, ...] | None = None
    baseline: tuple[GateCommand, ...] = ()
    """What must pass after every task if no gates are set."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 5
    """Of its loop among the others, lower first."""
    sha256: str
    """Of what is asked for: the bytes, or, where the source carries its own status, its meaning without that."""
    part: str = ""
    """The part of the source that was read, such as a tag; an unfinished plan never follows another part."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """Where in the source each setting is written, and who does each task (`tasks.KEY`)."""
    context: str = ""
    """What every task's agent is told besides its own text: an overview, a goal, a house style."""
    documents: tuple[str, ...] = ()
    """Documents beside the source that agents should read (spec, design, proposal), relative to its folder."""
    specs: Specs | None = None
    """Where its specifications are: agents are told the path in their workspace."""
    notes: tuple[str, ...] = ()
    """What is odd about the source but no reason to refuse it; told once, before anything runs."""
    evaluated: str = ""
    """The result of an evaluation that is in the source itself: `passed`, `failed`, or nothing."""
    track: Track | None = None
    """The track that it belongs to: its plan is evaluated before it runs, and what was made before it is complete."""
    rounds: bool = False
    """It is one prompt, done again and again until a condition stops that (`core.policy.rounds`)."""
    is_copy: bool = False
    """It is a copy of what is kept elsewhere: what is open in a newer one was perhaps only not closed there yet."""
    doc_sync: DocSync | None = None
    """Business documents that have to follow, where the source itself says so."""
    base_branch: str = ""
    """The branch that the source says its work starts from; empty where it says none."""
    held_files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """The contents of held-out files, by their hash."""
    open_ends: tuple[str, ...] = ()
    """What keeps the source itself from being finished, even when every item is done: another controller's work."""


Files = Mapping[str, bytes]
"""The files that a source is made of; names are relative to its folder, with slashes."""


class Setback(StrEnum):
    """How an attempt ended that is followed by another."""

    REJECTED = "rejected"
    """Its work was judged, and is not good enough."""
    BROKEN = "broken"
    """A machine or a service failed: its work was not judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemProgress:
    """How one task stands, for its line in the source."""

    mark: Mark
    title: str = ""
    """What its source called it; empty if Loopwright added it."""
    commit: str | None = None
    """Where it landed."""
    subject: str = ""
    """The first line of that commit."""
    summary: str = ""
    """What was done, on one line: in the words of its author, marked as such, else its title."""
    changed: tuple[str, ...] = ()
    """What the work changed: files, or folders where that is very much."""
    checks: tuple[str, ...] = ()
    """What proves it: `name: passed`, one for each check."""
    tdd: str = ""
    """What running its acceptance without its work showed, or why that was not asked for."""
    reason: str = ""
    attempts: int = 0
    """How many were made at it, those of its source counted in."""
    setback: Setback | None = None
    """How the last attempt ended, of one that is tried again."""
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """Work that an agent found and did not do."""

    title: str
    reason: str = ""
    recommendation: str = ""
    """`current` to do it in this plan, `new` for a new plan."""
    by: str = ""
    """Key of the task in which it was found."""
    task: str = ""
    """Key of the task that a person made of it in this plan."""
    mark: Mark = Mark.OPEN
    """The status of that task; `SKIPPED` if it is not wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixTask:
    """A task that was added to fix what the complete gate or a QA review found."""

    key: str
    title: str
    issue: str = ""
    added_at: datetime | None = None
    found_by: str = ""
    """Key of the QA review that found it; empty if the complete gate did."""
    severity: str = ""
    """Its severity, as the agent of the QA review says."""
    priority: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncProgress:
    """How the business documents stand that have to follow the plan's work."""

    documents: tuple[str, ...]
    reason: str
    mark: Mark
    """How the step stands that brings them up to date; `SKIPPED` when a person said that they need not be."""
    commit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedPlan:
    """What the evaluation of a plan said before it ran."""

    passed: bool
    at: datetime
    found: frozenset[str] = frozenset()
    """The checks that found something (`core.plans.evaluating`), were it only worth telling."""
    against: tuple[str, ...] = ()
    """What speaks against running it."""
    despite: str = ""
    """Why a person had it run all the same."""
    by: str = ""
    """The agent that was asked for its judgement; nothing when only programs looked at the plan."""
    source_sha256: str = ""
    """The hash of what it judged (`PlannedWork.sha256`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorResult:
    """What one evaluator said of the execution."""

    evaluator: str
    passed: bool
    issues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionProgress:
    """The state of the step in which an agent evaluates what the tasks made."""

    key: str
    """Of the task that does it."""
    mark: Mark
    agent: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    """When it last came to a result."""
    results: tuple[EvaluatorResult, ...] = ()
    found: tuple[str, ...] = ()
    """What is to be fixed, in words."""
    reason: str = ""
    """Why it waits for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the complete gate said of the final tree."""

    passed: bool
    at: datetime
    failed: tuple[str, ...] = ()
    """What did not pass, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How a plan stands: everything that a source's own format may want to say about it."""

    plan_id: str
    at: datetime
    items: Mapping[str, ItemProgress]
    """By the task's key; what is not named here is left as it is."""
    landing: frozenset[str] = frozenset()
    """What waits to land just now, by key: it is not named in `items`, but the files may have its mark already."""
    fixes: tuple[FixTask, ...] = ()
    discovered: tuple[Discovered, ...] = ()
    sync: SyncProgress | None = None
    """None when no business document has to follow."""
    branch: str = ""
    agent: str = ""
    started_at: datetime | None = None
    completed_at: datetime | None = None
    """When every task was settled; only then a summary of the whole is written."""
    rests: bool = False
    """Whether everything waits for a person, because of a task that does."""
    failed: bool = False
    """Whether the whole has come to an end without its goal."""
    stopped: str = ""
    """Why everything waits until a person acts; empty also if a person paused or stopped it."""
    final: bool = False
    """Whether the complete gate is about to judge the tree that this is written into: what is true once it passes has
    to be there before."""
    fix_cycles: int = 0
    """How often what the complete gate found was made into work."""
    max_fix_cycles: int = 0
    """How often that may be done at most."""
    phases: bool = True
    """Whether the end of a phase is written too: on a branch it gets its own commit."""
    evaluated: EvaluatedPlan | None = None
    """What the evaluation of the plan itself said before it ran."""
    execution: ExecutionProgress | None = None
    """How the evaluation of the execution stands; None where no agent does it."""
    judged: Judged | None = None
    """What the complete gate said of the whole in the end; None before."""


class Source(ABC):
    """Reads work in one format and writes its status back.

    A new format implements `recognises`, `files` and `parse`, and `written` if it has a place for status. Every other
    method has a default for a format that does not have the feature.
    Only `recognises`, `canonical`, `files`, `documents`, `left_out`, `finished`, `has_program` and `write_to_program`
    look at the disk.
    """

    kind: ClassVar[str]
    """The name of the format, as in `--source KIND`."""
    format_name: ClassVar[str] = ""
    """What people call the format; empty if that is its `kind`."""
    usual_places: ClassVar[tuple[str, ...]] = ()
    """Glob patterns, relative to the project, where `init` and a bare `run` look for work in this format."""

    @abstractmethod
    def recognises(self, place: Path) -> bool:
        """Return whether a file or folder is in this format, by its name and little else."""

    def canonical(self, place: Path) -> Path:
        """Return the one path of the source at a place: a folder and a file in it may mean the same work."""
        return place

    @abstractmethod
    def files(self, place: Path) -> Files:
        """Return what the source is made of, bounded in size, or raise `BadPlan`."""

    @abstractmethod
    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return the work, or raise `BadPlan` with located problems; `name` is what the user calls the source."""

    def written(self, files: Files, progress: Progress) -> Files:  # noqa: ARG002
        """Return the files that change when the status is written into them; all other bytes stay the same.

        Writing the same progress twice changes nothing. An item that is marked done stays done unless the progress
        names that item. A file that cannot be read raises `BadPlan`, and nothing is written.
        """
        return {}

    @property
    def has_status(self) -> bool:
        """Return whether the format has a place for status."""
        return type(self).written is not Source.written

    def status_files(self, files: Files) -> tuple[str, ...]:
        """Return the names of the files that have a place for status: all, unless some only specify or configure."""
        return tuple(files)

    def created(self, files: Files) -> tuple[str, ...]:  # noqa: ARG002
        """Return the names of files that `written` may add beside these. It never adds another one."""
        return ()

    def documents(self, place: Path) -> tuple[str, ...]:  # noqa: ARG002
        """Return the documents beside the source that agents should read, relative to its folder."""
        return ()

    def left_out(self, place: Path) -> tuple[str, ...]:  # noqa: ARG002
        """Return a note for each file at the place that looks like work and is not read."""
        return ()

    def finished(self, place: Path) -> str:  # noqa: ARG002
        """Return why nothing here is to be done, whatever its tasks say, such as that it is archived; else empty."""
        return ""

    def has_program(self, place: Path) -> bool:  # noqa: ARG002
        """Return whether the tool that keeps this source has a program here, to use instead of its files."""
        return False

    def write_to_program(self, place: Path, progress: Progress) -> bool:  # noqa: ARG002
        """Write the status with that program; raise what it refuses as a `UserError`; return False if it is gone."""
        return False

    @property
    def has_heartbeat(self) -> bool:
        """Return whether the format has a file that shows that work is in progress."""
        return type(self).heartbeat is not Source.heartbeat

    def heartbeat_file(self, files: Files) -> str | None:  # noqa: ARG002
        """Return the name of that file, relative to the source's folder."""
        return None

    def heartbeat(self, files: Files, progress: Progress, pid: int | None) -> bytes | None:  # noqa: ARG002
        """Return its new content, None while it is fresh; `pid` is the worker, None when it stopped."""
        return None
