"""The rows that a leg of an attempt works on."""

from dataclasses import dataclass

from loopwright.core.rows.model import Attempt, Loop, Plan, Project, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows that a leg works on, as last read."""

    project: Project
    loop: Loop
    plan: Plan
    task: Task
    attempt: Attempt
