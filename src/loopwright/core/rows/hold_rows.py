"""What a loop holds or waits for, so that the loops of a project take turns: files, or a named lock."""

from dataclasses import dataclass
from datetime import datetime

from loopwright.core.values.states import HoldState


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Files or a lock of a project that one plan holds or waits for. The row goes when its plan ends."""

    id: str
    project_id: str
    loop_id: str
    plan_id: str
    task_id: str | None = None
    """The task that needs them; None for what the plan claims before it starts."""
    lock: str = ""
    """The name of the lock; empty for files."""
    paths: tuple[str, ...] = ()
    """Patterns of the files, relative to the project's folder."""
    state: HoldState
    waits_for: tuple[str, ...] = ()
    """The plans that it waits for now."""
    after: tuple[str, ...] = ()
    """Every plan that it waited for: the plan starts from what they made."""
    reason: str = ""
    """What it waits for, or why it was refused, in words."""
    created_at: datetime
