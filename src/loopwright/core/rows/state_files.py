"""The shape of the files in a state folder: a project, a session, a run, a plan, an event."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from loopwright.core.replies.discoveries import Discovery
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.rows.model import (
    AGENT_ROLES,
    Attempt,
    Command,
    Finish,
    Loop,
    Plan,
    Project,
    Review,
    Role,
    Run,
    Task,
    VerdictRecord,
)
from loopwright.core.rows.source_rows import SourceDebt, SourceMarks
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.documents import plain
from loopwright.core.values.shapes import json_schema, published
from loopwright.core.values.states import ENDED_RUN, RunState

_SAFE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_TEXT: Final = {"type": "string"}
_NAME: Final = {"type": ["string", "null"]}
_MOMENT: Final = {"type": ["string", "null"], "format": "date-time"}


def session_file(ref: str) -> str:
    """Return the name of the file of a conversation: its own id, or a hash of one that is not safe as a name."""
    return ref if _SAFE.fullmatch(ref) else f"session_{hashlib.sha256(ref.encode()).hexdigest()[:32]}"


def session_document(project_id: str, runs: Sequence[Run]) -> dict[str, Any]:
    """Return one conversation with an agent, from its runs in their order."""
    first, last = runs[0], runs[-1]
    return {
        "session_id": first.session_ref,
        "project_id": project_id,
        "plan_id": first.plan_id,
        "attempt_id": first.attempt_id,
        "agent": first.agent,
        "account": last.account,
        "status": last.state.value,
        "started_at": plain(first.started_at),
        "ended_at": plain(last.ended_at) if last.state in ENDED_RUN else None,
        "runs": [{"run_id": one.id, "role": one.role.value, "status": one.state.value} for one in runs],
    }


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": dict(properties),
    }


def _row(kind: type[Any], without: str = "") -> dict[str, Any]:
    properties = json_schema(kind)["properties"]
    return {name: one for name, one in properties.items() if name != without}


def _rows(kind: type[Any]) -> dict[str, Any]:
    return {"type": "array", "items": json_schema(kind)}


def _or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


_STATUS: Final = {"enum": [one.value for one in RunState]}
_SESSION: Final = {
    "session_id": _TEXT,
    "project_id": _TEXT,
    "plan_id": _TEXT,
    "attempt_id": _NAME,
    "agent": _NAME,
    "account": _NAME,
    "status": _STATUS,
    "started_at": _MOMENT,
    "ended_at": _MOMENT,
    "runs": {
        "type": "array",
        "items": _object(
            {
                "run_id": _TEXT,
                "role": {"enum": [one.value for one in Role if one in AGENT_ROLES]},
                "status": _STATUS,
            }
        ),
    },
}


def state_schemas() -> dict[str, dict[str, Any]]:
    """Return the schema of each kind of file, by its published name."""
    project, plan = _row(Project, "environment"), _row(Plan, "environment")
    listed = {
        "tasks": Task,
        "attempts": Attempt,
        "runs": Run,
        "reviews": Review,
        "questions": Question,
        "discoveries": Discovery,
        "commands": Command,
    }
    whole = {
        **plan,
        "event": {
            "type": "integer",
            "minimum": 0,
            "description": "The number of the last event that it knows.",
        },
        "project": _or_null(_object(project)),
        "loop": _or_null(json_schema(Loop)),
        **{name: _rows(kind) for name, kind in listed.items()},
        "source_marks": _or_null(json_schema(SourceMarks)),
        "source_debt": _or_null(json_schema(SourceDebt)),
        "finishes": _rows(Finish),
    }
    titled = {
        "state_project": (
            "projects/ID.json: a project and its loops",
            _object({**project, "loops": _rows(Loop)}),
        ),
        "state_session": ("sessions/ID.json: a conversation with an agent", _object(_SESSION)),
        "state_run": ("runs/ID.json: a run", json_schema(Run)),
        "state_verdict": ("verdicts/ID.json: a verdict of the gates on a tree", json_schema(VerdictRecord)),
        "state_event": ("a line of events/events-DAY.jsonl: an event", json_schema(RecordedEvent)),
        "state_plan": ("plans/ID.json: a plan with all its rows", _object(whole)),
    }
    return {name: published(f"Loopwright: {title}", schema) for name, (title, schema) in titled.items()}
