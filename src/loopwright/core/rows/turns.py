"""The line for an agent."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The place of an attempt in the line for an agent."""

    plan_id: str
    parallel: int
    """How many agents the plan may have at once."""
    rank: tuple[int, datetime, str, int, int, datetime]
    """Lower goes first: the loop's priority, the older plan, the task's priority, its position in the source."""
    project_id: str = ""
    agent: str = ""
