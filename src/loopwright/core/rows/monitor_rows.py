"""The rows of the monitor: what it observed of each working agent, and the troubles it found."""

from dataclasses import dataclass
from datetime import datetime

from loopwright.core.values.alerts import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A working agent, as the monitor last observed it. The row is deleted when its run ends."""

    id: str
    """The run."""
    plan_id: str
    progress: str
    """Identifies the agent's progress."""
    since: datetime
    """When the progress last changed."""
    looks: int
    """How many observations showed it."""
    idle_looks: int
    """How many of these showed no running tool."""
    seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something that the monitor finds wrong. The row is deleted when its cause ends."""

    id: str
    """The kind and the subject, so that the same trouble is one row."""
    kind: str
    severity: Severity
    project_id: str
    loop_id: str
    plan_id: str
    task_id: str | None = None
    run_id: str | None = None
    message: str
    hint: str
    since: datetime
