"""The rows of what went wrong with attempts, and of what was tried against it."""

from dataclasses import dataclass
from datetime import datetime

from loopwright.core.values.failures import Failure
from loopwright.core.values.healing import Cause, HealStep
from loopwright.core.values.states import HealingState


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFailure:
    """How one attempt failed, without what differs from one run to the next."""

    id: str
    project_id: str
    plan_id: str
    task_id: str
    attempt_id: str
    n: int
    """The number of the attempt."""
    failure: Failure
    cause: Cause | None = None
    """The cause that this failure alone speaks for; None where it speaks for none."""
    signature: str
    """Identifies step, test, file and error: two failures with the same one failed in the same way."""
    step: str
    """The command of the gate that failed, else the failure class."""
    test: str = ""
    file: str = ""
    error: str = ""
    """The line that says what is wrong, masked."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Healing:
    """One step that was tried for a task that had failed for good."""

    id: str
    project_id: str
    plan_id: str
    task_id: str
    n: int
    """Which step of the task this is."""
    step: HealStep
    state: HealingState = HealingState.TRYING
    cause: Cause
    """What the diagnosis named when it was chosen."""
    signature: str
    """How the task failed before it."""
    because: str
    """Why this step was chosen, in words."""
    attempt_id: str | None = None
    """The first attempt that it gave the task."""
    created_at: datetime
    ended_at: datetime | None = None
    about: tuple[str, ...] = ()
    """The tasks that a bypass leaves out."""
