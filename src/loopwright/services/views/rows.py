"""The records that services return as they are stored."""

from loopwright.core.rows.events import RecordedEvent
from loopwright.core.rows.model import Attempt, Command, Plan, Project, Role, Run, Task
from loopwright.core.rows.waiting_rows import Envelope

__all__ = ["Attempt", "Command", "Envelope", "Plan", "Project", "RecordedEvent", "Role", "Run", "Task"]
