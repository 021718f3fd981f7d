"""Rows about failed attempts, and about the steps tried against the failures."""

from dataclasses import dataclass
from datetime import datetime

from loopwright.core.values.failures import Failure
from loopwright.core.values.healing import Cause, HealStep
from loopwright.core.values.states import HealingState


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFailure:
    """How one attempt failed, without details that differ between runs."""

    id: str
    project_id: str
    plan_id: str
    task_id: str
    attempt_id: str
    n: int
    """The number of the attempt."""
    failure: Failure
    cause: Cause | None = None
    """The cause that this failure alone suggests; None if it suggests none."""
    signature: str
    """Identifies step, test, file and error: two failures with the same one failed in the same way."""
    step: str
    """The command of the gate that failed, else the failure class."""
    test: str = ""
    file: str = ""
    error: str = ""
    """The line that states the error, masked."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Healing:
    """One step that was tried for a task that failed for good."""

    id: str
    project_id: str
    plan_id: str
    task_id: str
    n: int
    """Which step of the task this is."""
    step: HealStep
    state: HealingState = HealingState.TRYING
    cause: Cause
    """The diagnosed cause when it was chosen."""
    signature: str
    """How the task failed before it."""
    because: str
    """Why this step was chosen, in words."""
    attempt_id: str | None = None
    """The first attempt that it started for the task."""
    created_at: datetime
    ended_at: datetime | None = None
    about: tuple[str, ...] = ()
    """The tasks that a bypass leaves out."""
