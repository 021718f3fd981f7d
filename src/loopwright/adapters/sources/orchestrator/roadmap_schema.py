"""The shapes of an orchestrator's state.json and of its roadmap-view.json."""

from typing import Any, Final

from loopwright.config.publish import SCHEMA_DIALECT

CONTRACT: Final = "orchestrator-v2"
VIEW: Final = "roadmap-view-v1"
STATUSES: Final = ("pending", "in-progress", "done")
_ID: Final[dict[str, Any]] = {
    "type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$",
}  # fmt: skip
_TEXT: Final[dict[str, Any]] = {"type": "string", "minLength": 1}
_IDS: Final[dict[str, Any]] = {"type": "array", "items": _ID}
_TEXTS: Final[dict[str, Any]] = {"type": ["array", "string", "null"], "items": {"type": "string"}}
_MAYBE: Final[dict[str, Any]] = {"type": ["string", "null"]}

RETIRED: Final = frozenset(
    {
        "active_round_dir", "active_round_id", "branch", "current_task", "last_completed_round",
        "pending_merge_rounds", "resume_error", "roadmap_style", "round_artifacts", "stage", "worktree_path",
    }
)  # fmt: skip
"""Fields of older contracts that real state files still carry: kept, and not read."""

STATE: Final[dict[str, Any]] = {
    "$schema": SCHEMA_DIALECT,
    "title": "Loopwright: an orchestrator's state.json",
    "type": "object",
    "required": [
        "contract_version",
        "base_branch",
        "roadmap_id",
        "roadmap_revision",
        "roadmap_dir",
        "controller_stage",
    ],
    "properties": {
        "contract_version": {"type": ["string", "integer"], "enum": [CONTRACT, 2]},
        "base_branch": _TEXT,
        "roadmap_id": _ID,
        "roadmap_revision": {"type": "string", "maxLength": 40, "pattern": "^rev-[0-9]{3,}$"},
        "roadmap_dir": _TEXT,
        "controller_stage": {
            "type": "string",
            "enum": ["dispatch-rounds", "update-roadmap", "done", "blocked"],
        },
        "max_parallel_rounds": {"type": "integer", "minimum": 1, "maximum": 100, "default": 1},
        "active_rounds": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["round_id", "stage"],
                "properties": {
                    "round_id": _TEXT,
                    "stage": {
                        "type": "string",
                        "description": "plan, implement, review, finalize-round, done or blocked.",
                    },
                    "branch": _MAYBE,
                    "worktree_path": _MAYBE,
                    "resume_error": {},
                },
            },
        },
        "roadmap_update": {"type": ["object", "null"]},
        "resume_errors": {"type": ["object", "null"]},
        "retry": {},
    },
}  # fmt: skip

ROADMAP_VIEW: Final[dict[str, Any]] = {
    "$schema": SCHEMA_DIALECT,
    "title": "Loopwright: a roadmap-view.json (roadmap-view-v1)",
    "type": "object",
    "required": [
        "schema_version", "roadmap_id", "roadmap_revision", "roadmap_dir", "roadmap_file", "milestones",
        "directions", "anchors",
    ],
    "properties": {
        "schema_version": {"type": "string", "enum": [VIEW]},
        "roadmap_id": _TEXT,
        "roadmap_revision": _TEXT,
        "roadmap_dir": _TEXT,
        "roadmap_file": _TEXT,
        "milestones": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": [
                    "milestone_id", "title", "status", "depends_on", "parallel_lane", "status_anchor",
                    "completion_anchor", "direction_ids",
                ],
                "properties": {
                    "milestone_id": _ID,
                    "title": {"type": "string", "minLength": 1, "maxLength": 500},
                    "status": {"type": "string", "enum": list(STATUSES)},
                    "depends_on": _IDS,
                    "parallel_lane": {"type": "string"},
                    "status_anchor": _TEXT,
                    "completion_anchor": _TEXT,
                    "direction_ids": _IDS,
                },
            },
        },
        "directions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["direction_id", "milestone_id", "summary", "preconditions", "parallel_hints"],
                "properties": {
                    "direction_id": _ID,
                    "milestone_id": _ID,
                    "summary": _TEXT,
                    "preconditions": _TEXTS,
                    "parallel_hints": _TEXTS,
                },
            },
        },
        "anchors": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["target_file", "selector"],
                "properties": {"target_file": _TEXT, "selector": _TEXT},
            },
        },
    },
}  # fmt: skip
