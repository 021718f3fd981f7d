"""The rows of the monitor: what it saw of each agent at work, and what it found wrong."""

from dataclasses import dataclass
from datetime import datetime

from loopwright.core.values.alerts import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """An agent at work, as the monitor last saw it. The row goes when its run ends."""

    id: str
    """The run."""
    plan_id: str
    progress: str
    """Identifies what the agent has done so far."""
    since: datetime
    """When that last changed."""
    looks: int
    """How often it was seen like that."""
    idle_looks: int
    """How often of these no tool of it worked."""
    seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something that the monitor finds wrong. The row goes when its cause does."""

    id: str
    """The kind and what it is about, so that the same trouble is one row."""
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
