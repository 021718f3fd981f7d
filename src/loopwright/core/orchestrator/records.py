"""The machine records of an orchestrator folder as values, each with an equivalent JSON Schema.

A record may have fields that are not listed here, because older contracts had more. They stay in the file and
are not read.
"""

import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from loopwright.core.values.round_states import ControllerStage, RoundStage, UpdateStatus
from loopwright.core.values.shapes import (
    RelativePath,
    Rule,
    decode,
    json_schema,
    one_of,
    published,
)

R = TypeVar("R")
CONTRACT: Final = "orchestrator-v2"
MILESTONE_STATUSES: Final = ("pending", "in-progress", "done")
_ID: Final = "^[A-Za-z0-9][A-Za-z0-9._-]*$"


def _is_id(value: str) -> bool:
    plain = value.replace("-", "").replace("_", "").replace(".", "")
    return plain.isascii() and plain.isalnum() and value[0].isalnum() and len(value) <= 128


Id = Annotated[str, Rule(_is_id, {"pattern": _ID, "maxLength": 128})]
"""A name that is safe in a path and in a branch."""
Text = Annotated[str, Rule(lambda value: bool(value.strip()), {"minLength": 1})]
Number = Annotated[int, Rule(lambda value: value >= 1, {"minimum": 1})]
Status = Annotated[str, one_of(MILESTONE_STATUSES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Which item of which roadmap a record is about."""

    round_id: Id
    roadmap_id: Id
    roadmap_revision: Id
    roadmap_dir: RelativePath
    milestone_id: Id
    direction_id: Id
    extracted_item_id: Id


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """What must be merged before a round."""

    depends_on_round_ids: tuple[Id, ...]
    merge_after_item_ids: tuple[Id, ...]
    parallel_group: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(Lineage):
    """`selection-record.json`: the authority for the subject of a round."""

    schema_version: Literal["selection-record-v1"]
    summary: Text
    scheduler: Scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One slice of a fan-out."""

    worker_id: Id
    summary: Text
    assignment_path: RelativePath
    implementation_notes_path: RelativePath
    handoff_path: RelativePath
    branch: Text
    worktree_path: RelativePath
    write_scope: tuple[RelativePath, ...]
    depends_on_worker_ids: tuple[Id, ...]
    blocks_integration: bool
    verification_commands: tuple[Text, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Integration:
    """The pass that combines the slices."""

    summary: Text
    depends_on_worker_ids: tuple[Id, ...]
    verification_commands: tuple[Text, ...]
    integration_notes_path: RelativePath


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundPlan(Lineage):
    """`round-plan-record.json`."""

    schema_version: Literal["round-plan-record-v1"]
    plan_path: RelativePath
    worker_mode: Literal["none", "fanout"]
    workers: tuple[Worker, ...]
    integration: Integration | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MilestoneChange:
    """One milestone's new status."""

    milestone_id: Id
    expected_current_status: Status
    target_status: Status
    roadmap_view_anchor: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line for a place with a named anchor."""

    anchor_id: Text
    text: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class RoadmapCloseout:
    """What an approved round changes in the roadmap."""

    mode: Literal["status-only", "semantic-update-required"]
    status_changes: tuple[MilestoneChange, ...] = ()
    completion_pointers: tuple[Entry, ...] = ()
    history_entries: tuple[Entry, ...] = ()
    semantic_update_required_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRecord(Lineage):
    """`review-record.json`."""

    schema_version: Literal["review-record-v3"]
    decision: Literal["approved", "rejected"]
    evidence_summary: Text
    roadmap_closeout: RoadmapCloseout | None = None
    retry_target: Literal["implement", "plan", "blocked"] | None = None
    required_changes: tuple[Text, ...] = ()

    @property
    def is_semantic(self) -> bool:
        """Whether the meaning of the roadmap has to change after the merge."""
        return self.roadmap_closeout is not None and self.roadmap_closeout.mode == "semantic-update-required"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What the controller verified about a closeout."""

    roadmap_view_revalidated: bool
    active_bundle_revalidated: bool
    diff_matches_review_record: bool
    revalidated_after_base_refresh: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Closeout:
    """`closeout-record.json`."""

    schema_version: Literal["closeout-record-v3"]
    round_id: Id
    review_record_path: RelativePath
    review_record_sha256: Text
    base_revision: Text
    status: Literal["applied", "revalidated", "stale"]
    applied_edit_summary: tuple[Text, ...]
    verification: Verified


@dataclass(frozen=True, slots=True, kw_only=True)
class RoadmapUpdate:
    """`state.json.roadmap_update`."""

    schema_version: Literal["roadmap-update-v1"]
    trigger: Literal["merged-round", "planner-request"]
    source_round_id: Id
    branch: Text
    worktree_path: RelativePath
    update_artifact: RelativePath
    review_artifact: RelativePath
    prior_roadmap_revision: Id
    proposed_roadmap_revision: Id
    status: UpdateStatus
    attempt: Number
    last_rejection_artifact: str | None
    last_rejection_summary: str | None
    resume_error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often one stage was tried, and how it is tried now."""

    subject_id: Id
    """The round, or the round that caused a roadmap update."""
    stage: Id
    mechanism: Literal["same-role", "fresh-agent"]
    attempt: Number
    """Part of the identity of the stage's plan: resuming continues exactly this plan."""
    same_mechanism: Number
    review_cycles: Annotated[int, Rule(lambda value: value >= 0, {"minimum": 0})]
    reason: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRecord:
    """`state.json.retry`."""

    schema_version: Literal["retry-v1"]
    entries: tuple[Retry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRound:
    """One of `state.json.active_rounds`."""

    round_id: Id
    stage: RoundStage
    branch: Text
    worktree_path: RelativePath
    resume_error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlState:
    """`state.json`."""

    contract_version: Literal["orchestrator-v2"]
    base_branch: Text
    roadmap_id: Id
    roadmap_revision: Id
    roadmap_dir: RelativePath
    controller_stage: ControllerStage
    max_parallel_rounds: Number = 1
    active_rounds: tuple[LiveRound, ...] = ()
    roadmap_update: RoadmapUpdate | None = None
    resume_errors: Mapping[str, str] | None = None
    retry: RetryRecord | None = None

    @property
    def errors(self) -> dict[str, str]:
        """Every unresolved error, by its subject."""
        found = {key: text for key, text in (self.resume_errors or {}).items() if text}
        found |= {one.round_id: one.resume_error for one in self.active_rounds if one.resume_error}
        update = self.roadmap_update
        return found | ({"roadmap_update": update.resume_error} if update and update.resume_error else {})

    def retry_of(self, subject_id: str) -> Retry | None:
        """Return the retry of a round or an update, if there is one."""
        entries = self.retry.entries if self.retry else ()
        return next((one for one in entries if one.subject_id == subject_id), None)


RECORDS: Final[Mapping[str, tuple[str, type]]] = types.MappingProxyType(
    {
        "orchestrator_selection": ("selection-record.json of a round", Selection),
        "orchestrator_round_plan": ("round-plan-record.json of a round", RoundPlan),
        "orchestrator_review": ("review-record.json of a round", ReviewRecord),
        "orchestrator_closeout": ("closeout-record.json of a round", Closeout),
        "orchestrator_update": ("roadmap_update in state.json", RoadmapUpdate),
        "orchestrator_retry": ("retry in state.json", RetryRecord),
    }
)
"""The records that have a schema here, by its published name; `state.json` and the roadmap view have other schemas."""


def record_schemas() -> dict[str, dict[str, Any]]:
    """Return the published schema of every record."""
    return {
        name: published(f"Loopwright: {title}", _open(json_schema(kind), kind))
        for name, (title, kind) in RECORDS.items()
    }


def _open(schema: dict[str, Any], kind: Any) -> dict[str, Any]:
    """Return a schema that allows more fields, and makes fields with a default optional."""
    needed = {field.name for field in fields(kind) if field.default is MISSING}
    hints = get_type_hints(kind)
    inner = {name: _opened(one, hints[name]) for name, one in schema["properties"].items()}
    return {"type": "object", "required": [name for name in inner if name in needed], "properties": inner}


def _opened(schema: dict[str, Any], hint: Any) -> dict[str, Any]:
    part = _part(hint)
    if part is None:
        return schema
    if "items" in schema:
        return schema | {"items": _open(schema["items"], part)}
    if "anyOf" in schema:
        return {"anyOf": [_open(schema["anyOf"][0], part), *schema["anyOf"][1:]]}
    return _open(schema, part)


def _part(hint: Any) -> Any:
    """Return the dataclass in a type hint: itself, in a tuple, or beside None."""
    if get_origin(hint) in (Union, types.UnionType, tuple):
        hint = get_args(hint)[0]
    return hint if is_dataclass(hint) else None


def read_record(kind: type[R], value: Any, place: str) -> R:
    """Return a record; raise `Misshapen` with every missing or wrong field."""
    return decode(kind, _shaped(kind, value), place)


def read_state(value: Any) -> ControlState:
    """Return `state.json`; an error may be text or any value, and the version used to be a number."""
    if isinstance(value, dict):
        value = {**value}
        if value.get("contract_version") == 2:
            value["contract_version"] = CONTRACT
        value["resume_errors"] = {
            key: _words(one) for key, one in _table(value.get("resume_errors")).items() if one
        }
        if isinstance(value.get("active_rounds"), list):
            value["active_rounds"] = [_plain_error(one) for one in value["active_rounds"]]
        value["roadmap_update"] = _plain_error(value.get("roadmap_update"))
        if _table(value.get("retry")).get("schema_version") != "retry-v1":
            value["retry"] = None  # written by another controller in an unknown form
    return read_record(ControlState, value, "state.json")


def _plain_error(value: Any) -> Any:
    if not isinstance(value, dict) or not value.get("resume_error"):
        return value
    return {**value, "resume_error": _words(value["resume_error"])}


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"controller": value} if value else {}


def _words(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shaped(kind: Any, value: Any) -> Any:
    """Return a value with only the fields of its type; missing ones with a default are left out."""
    if not isinstance(value, dict):
        return value
    found = {}
    hints = get_type_hints(kind)
    for field in fields(kind):
        given = value.get(field.name, field.default)
        if given is MISSING:
            continue
        if field.name not in value and isinstance(given, tuple):
            given = list(given)
        part = _part(hints[field.name])
        if part is not None:
            given = [_shaped(part, one) for one in given] if isinstance(given, list) else _shaped(part, given)
        found[field.name] = given
    return found
