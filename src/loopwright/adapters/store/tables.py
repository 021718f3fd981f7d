"""The tables of a home and the history of their shape: all that can be known without a database library.

The columns of a table are the fields of its row type (see `codec`); only what a dataclass cannot say is here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from loopwright.core.replies import discoveries
from loopwright.core.rows import (
    access_rows,
    action_rows,
    alert_rows,
    healing_rows,
    hold_rows,
    lesson_rows,
    model,
    monitor_rows,
    source_rows,
    waiting_rows,
    webhook_rows,
)

REVISIONS: Final = (
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
    "0015",
    "0016",
    "0017",
    "0018",
    "0019",
    "0020",
)
"""Every schema that was ever released, oldest first. The last one is what this program reads and writes."""

HEAD: Final = REVISIONS[-1]

VERSION_TABLE: Final = "schema_version"

EVENTS: Final = "events"

EVENT_COLUMNS: Final = (
    *("n", "id", "project", "loop", "plan", "task", "attempt", "run", "type", "version"),
    *("at", "actor", "importance", "payload", "prev_hash", "hash"),
)
"""The fields of an event in the order of its table, which is not that of the dataclass."""

OWNERS: Final[Mapping[str, type[Any]]] = MappingProxyType(
    {"project_id": model.Project, "loop_id": model.Loop, "plan_id": model.Plan, "task_id": model.Task}
)
"""The type of the row that an owner's column refers to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """How the rows of one type are stored."""

    table: str
    owners: tuple[str, ...] = ()
    """Columns with the id of another row, which must exist when the transaction commits."""
    unique: tuple[str, ...] = ()
    """The columns, besides the id, that no two rows may share."""
    indexes: tuple[tuple[str, ...], ...] = ()


STORED: Final[Mapping[type[Any], Stored]] = MappingProxyType(
    {
        model.Project: Stored(table="projects"),
        model.Loop: Stored(
            table="loops",
            owners=("project_id",),
            unique=("project_id", "source_path"),
            indexes=(("state",),),
        ),
        model.Plan: Stored(
            table="plans",
            owners=("project_id", "loop_id"),
            indexes=(
                ("status",),
                ("project_id", "status"),
                ("loop_id",),
                ("created_at", "id"),
                ("project_id", "created_at", "id"),
                ("made_for",),
            ),
        ),
        model.Task: Stored(
            table="tasks",
            owners=("plan_id",),
            indexes=(
                ("plan_id", "status", "unmet", "priority", "position"),
                ("plan_id", "key"),
                ("plan_id", "manual", "status"),
            ),
        ),
        model.Attempt: Stored(
            table="attempts",
            owners=("plan_id", "task_id"),
            unique=("task_id", "n"),
            indexes=(("plan_id", "state"), ("state",), ("cleaned_at", "state"), ("quarantined",)),
        ),
        model.Run: Stored(
            table="runs",
            owners=("plan_id",),
            indexes=(("attempt_id",), ("plan_id", "created_at"), ("task_id",), ("state",)),
        ),
        model.VerdictRecord: Stored(
            table="verdicts", owners=("plan_id",), indexes=(("plan_id", "tree", "gate_key"),)
        ),
        model.Review: Stored(
            table="reviews",
            owners=("plan_id", "task_id"),
            indexes=(("plan_id",), ("task_id", "patch_sha256"), ("attempt_id",)),
        ),
        model.Command: Stored(table="commands", indexes=(("state",),)),
        waiting_rows.Question: Stored(
            table="questions",
            owners=("project_id", "loop_id", "plan_id"),
            indexes=(("project_id", "kind", "state"), ("state",), ("plan_id",)),
        ),
        discoveries.Discovery: Stored(
            table="discoveries",
            owners=("project_id", "plan_id"),
            indexes=(("project_id", "state"), ("plan_id",)),
        ),
        model.Finish: Stored(table="finishes", owners=("plan_id",), indexes=(("plan_id",), ("state",))),
        waiting_rows.Envelope: Stored(table="envelopes"),
        model.Worker: Stored(table="workers"),
        source_rows.SourceMarks: Stored(table="source_marks"),
        source_rows.SourceDebt: Stored(table="source_debts"),
        model.Cursor: Stored(table="cursors"),
        access_rows.Token: Stored(table="tokens", indexes=(("sha256",),)),
        access_rows.Charge: Stored(table="charges", indexes=(("subject_id",), ("token_id",))),
        healing_rows.AttemptFailure: Stored(
            table="attempt_failures",
            owners=("project_id", "plan_id", "task_id"),
            unique=("attempt_id",),
            indexes=(("project_id", "signature"), ("signature",), ("task_id",)),
        ),
        healing_rows.Healing: Stored(
            table="healings",
            owners=("project_id", "plan_id", "task_id"),
            unique=("task_id", "n"),
            indexes=(("plan_id",),),
        ),
        monitor_rows.Watched: Stored(table="watched", owners=("plan_id",)),
        monitor_rows.Trouble: Stored(table="troubles", owners=("project_id", "loop_id", "plan_id")),
        lesson_rows.Lesson: Stored(
            table="lessons", owners=("project_id",), indexes=(("project_id", "state"), ("state",))
        ),
        lesson_rows.LessonUse: Stored(
            table="lesson_uses",
            owners=("project_id", "plan_id"),
            unique=("lesson_id", "version", "task_id"),
            indexes=(("lesson_id",), ("attempt_id",)),
        ),
        hold_rows.Hold: Stored(
            table="holds",
            owners=("project_id", "loop_id", "plan_id"),
            indexes=(("plan_id",),),
        ),
        action_rows.Action: Stored(
            table="actions",
            owners=("project_id",),
            indexes=(("project_id", "created_at", "id"), ("created_at", "id")),
        ),
        access_rows.KeptReply: Stored(table="kept_replies", indexes=(("created_at",),)),
        webhook_rows.Webhook: Stored(table="webhooks"),
        webhook_rows.DeadLetter: Stored(
            table="dead_letters", unique=("webhook_id", "n"), indexes=(("webhook_id", "replay_at"),)
        ),
        alert_rows.Acknowledgement: Stored(table="acknowledgements"),
    }
)

ALL: Final = frozenset({*(each.table for each in STORED.values()), EVENTS, "counters", "chains"})
"""Every table but the one with the version."""


def stored_as(kind: type[Any]) -> Stored:
    """Return how a row type is stored; any other type is a defect."""
    try:
        return STORED[kind]
    except KeyError:
        raise TypeError(f"{kind!r} is not a row of a home") from None


def name_of(kind: type[Any]) -> str:
    """Return the table of a row type; any other type is a defect."""
    return stored_as(kind).table
