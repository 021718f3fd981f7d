"""The rows of learning: a lesson for agents of a project, and the result of each attempt that it matched."""

from dataclasses import dataclass
from datetime import datetime

from loopwright.core.values.states import LessonState


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A text for agents of a project whose tasks match its trigger, kept as long as it helps."""

    id: str
    project_id: str
    state: LessonState
    text: str
    version: int = 1
    """Raised by each change of the text, which restarts the measurement."""
    signature: str = ""
    """The failure that it is about: an attempt whose predecessor failed like that gets it."""
    files: tuple[str, ...] = ()
    """Patterns: a task that names or may change such a file gets it."""
    task_type: str = ""
    """Tasks of this type get it."""
    evidence: tuple[str, ...] = ()
    """The attempts that it was derived from."""
    proposed_by: str
    decided_by: str = ""
    reason: str = ""
    """Why it is in its state."""
    created_at: datetime
    tried_since: datetime | None = None
    expires_at: datetime | None = None
    """When it is removed, whatever its measurement: a project changes, and the user may add it again."""
    learned_from: str = ""
    """The lesson of another project that the user copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonUse:
    """One task that a lesson matched. A share of them does not get it, for comparison."""

    id: str
    lesson_id: str
    version: int
    project_id: str
    plan_id: str
    task_id: str
    attempt_id: str
    """The first attempt that it matched: its result counts."""
    given: bool
    """False for a task that does not get it."""
    passed: bool | None = None
    """Whether the attempt passed its checks; None while it works, and if it was never judged."""
    created_at: datetime
