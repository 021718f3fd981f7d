"""What agents did to loops with their tools, with the reason that they gave."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from loopwright.core.values.states import ActionState


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One change of loops by an agent. The row is written before the change, so that none is without a record."""

    id: str
    project_id: str
    kind: str
    """One of `services.remote.actions.ActionKind`."""
    loop_id: str | None = None
    plan_id: str | None = None
    task_id: str | None = None
    reason: str
    """Why, in the agent's words."""
    actor: str
    run_id: str | None = None
    """The run that the agent did it from, if any."""
    state: ActionState
    about: Mapping[str, Any] = field(default_factory=dict)
    """What it takes to undo it."""
    result: str = ""
    """What it came to, or why it was refused."""
    created_at: datetime
    undone_at: datetime | None = None
    undone_by: str = ""
