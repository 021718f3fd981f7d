"""The rows of learning: a lesson for agents of a project, and what became of each attempt it was meant for."""

from dataclasses import dataclass
from datetime import datetime

from loopwright.core.values.states import LessonState


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """Something that agents of a project are told where its trigger matches, as long as that helps."""

    id: str
    project_id: str
    state: LessonState
    text: str
    version: int = 1
    """Raised by each change of the text, which begins the measurement again."""
    signature: str = ""
    """The failure that it is about: it is told to an attempt whose predecessor failed like that."""
    files: tuple[str, ...] = ()
    """Patterns: it is told to a task that names or may change such a file."""
    task_type: str = ""
    """It is told to tasks of this type."""
    evidence: tuple[str, ...] = ()
    """The attempts that it was learned from."""
    proposed_by: str
    decided_by: str = ""
    reason: str = ""
    """Why it is in its state."""
    created_at: datetime
    tried_since: datetime | None = None
    expires_at: datetime | None = None
    """When it is removed, whatever was measured of it: a project changes, and a person may add it again."""
    learned_from: str = ""
    """The lesson of another project that a person brought here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonUse:
    """One task that a lesson was meant for. A share of them goes without it, for comparison."""

    id: str
    lesson_id: str
    version: int
    project_id: str
    plan_id: str
    task_id: str
    attempt_id: str
    """The first attempt that it was meant for: whether it passes is what counts."""
    given: bool
    """False for one that goes without it."""
    passed: bool | None = None
    """Whether the attempt passed its checks; None while it works, and for one that was never judged."""
    created_at: datetime
