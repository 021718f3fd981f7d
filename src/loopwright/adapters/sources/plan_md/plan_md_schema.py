"""The shape of a track's `metadata.json`, for those who read what is written there; other keys are other people's."""

from typing import Any, Final

from loopwright.config.publish import SCHEMA_DIALECT
from loopwright.core.plans.tracks import StepStatus, TrackStep

VERSION: Final = 3
"""The newest that is known, and what a file without one is brought to."""
_TEXT: Final[dict[str, Any]] = {"type": "string"}
_TEXTS: Final[dict[str, Any]] = {"type": "array", "items": _TEXT}
_COUNT: Final[dict[str, Any]] = {"type": "integer", "minimum": 0}
_TIME: Final[dict[str, Any]] = {"type": ["string", "null"], "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}"}
_VERDICT: Final[dict[str, Any]] = {"enum": ["PASS", "FAIL", None]}
STEPS: Final = tuple(one.value for one in TrackStep)
STATUSES: Final = tuple(one.value for one in StepStatus)


def _table(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", **({"required": list(required)} if required else {}), "properties": properties}


def _several(entry: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": entry}


def _checkpoint(**properties: dict[str, Any]) -> dict[str, Any]:
    common = {"status": {"enum": [*STATUSES]}, "started_at": _TIME, "completed_at": _TIME, "agent": _TEXT}
    common["run_by"] = _TEXT
    return _table({**common, **properties}, "status")


_EXECUTE: Final = _checkpoint(
    tasks_completed=_COUNT,
    tasks_total=_COUNT,
    last_task=_TEXT,
    last_commit=_TEXT,
    commits=_several(_table({"sha": _TEXT, "message": _TEXT, "task": _TEXT})),
    phases_completed=_TEXTS,
)
_CHECKPOINTS: Final = {
    "PLAN": _checkpoint(plan_version=_COUNT, tasks_total=_COUNT, commit_sha=_TEXT),
    "EVALUATE_PLAN": _checkpoint(
        verdict=_VERDICT,
        checks={"type": "object"},
        failure_reasons=_TEXTS,
        plan_sha256=_TEXT,
        overridden_because=_TEXT,
    ),
    "EXECUTE": _EXECUTE,
    "PARALLEL_EXECUTE": _EXECUTE,
    "EVALUATE_EXECUTION": _checkpoint(
        verdict=_VERDICT,
        evaluators_run=_several(_table({"evaluator": _TEXT, "verdict": _VERDICT, "issues": _TEXTS})),
        failure_items=_TEXTS,
        business_sync_required={"type": "boolean"},
    ),
    "FIX": _checkpoint(
        cycle=_COUNT,
        fixes_applied=_several(_table({"issue": _TEXT, "fix": _TEXT, "commit_sha": _TEXT}, "issue", "fix")),
        fixes_remaining=_TEXTS,
    ),
    "BUSINESS_SYNC": _checkpoint(reason=_TEXT, affected_docs=_TEXTS, commit_sha=_TEXT),
}
TRACK: Final[dict[str, Any]] = {
    "$schema": SCHEMA_DIALECT,
    "title": "Loopwright: the metadata.json of a track",
    **_table(
        {
            "version": {"type": "integer", "minimum": 1, "maximum": VERSION},
            "track_id": _TEXT,
            "type": _TEXT,
            "status": _TEXT,
            "created_at": _TIME,
            "updated_at": _TIME,
            "loop_state": _table(
                {
                    "current_step": {"enum": [*STEPS]},
                    "step_status": {"enum": [*STATUSES]},
                    "step_started_at": _TIME,
                    "fix_cycle_count": _COUNT,
                    "max_fix_cycles": _COUNT,
                    "checkpoints": _table(_CHECKPOINTS),
                },
                "current_step",
                "step_status",
                "checkpoints",
            ),
            "discovered_work": _several(
                _table(
                    {
                        **dict.fromkeys(("title", "reason", "recommendation", "found_in"), _TEXT),
                        "status": _TEXT,
                    }
                )
            ),
            "blockers": _several(
                _table(
                    {
                        **dict.fromkeys(("id", "description", "blocked_step"), _TEXT),
                        "blocked_at": _TIME,
                        "status": {"enum": ["ACTIVE", "RESOLVED"]},
                    }
                )
            ),
        },
        "version",
        "loop_state",
    ),
}
