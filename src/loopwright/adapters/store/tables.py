"""The names of a home's tables and the history of their shape: all that can be known without a database library."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from loopwright.core.replies import discoveries
from loopwright.core.rows import model, waiting_rows

REVISIONS: Final = ("0001",)
"""Every schema that was ever released, oldest first. The last one is what this program reads and writes."""

HEAD: Final = REVISIONS[-1]

VERSION_TABLE: Final = "schema_version"

EVENTS: Final = "events"

NAMES: Final[Mapping[type[Any], str]] = MappingProxyType(
    {
        model.Project: "projects",
        model.Loop: "loops",
        model.Plan: "plans",
        model.Task: "tasks",
        model.Attempt: "attempts",
        model.Run: "runs",
        model.VerdictRecord: "verdicts",
        model.Review: "reviews",
        model.Command: "commands",
        waiting_rows.Question: "questions",
        discoveries.Discovery: "discoveries",
        model.Finish: "finishes",
        waiting_rows.Envelope: "envelopes",
        model.Worker: "workers",
        model.SourceMarks: "source_marks",
        model.SourceDebt: "source_debts",
        model.Cursor: "cursors",
    }
)

ALL: Final = frozenset({*NAMES.values(), EVENTS, "counters", "chains"})
"""Every table but the one with the version."""

UNIQUE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"loops": ("project_id", "source_path"), "attempts": ("task_id", "n")}
)
"""The columns, besides the id, that no two rows of a table may share."""


def name_of(kind: type[Any]) -> str:
    """Return the table of a row type; anything else is a defect."""
    try:
        return NAMES[kind]
    except KeyError:
        raise TypeError(f"{kind!r} is not a row of a home") from None
