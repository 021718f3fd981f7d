"""One attempt on its way to the plan branch, as a value."""

from dataclasses import dataclass, field

from loopwright.core.rows.model import Attempt, Plan, Project, Task
from loopwright.core.values.errors import FenceLost
from loopwright.engine.attempt.landing_line import Line, Place
from loopwright.engine.rows.world import World
from loopwright.ports import Repository, Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """One attempt on its way to the plan branch."""

    world: World
    repository: Repository
    project: Project
    plan: Plan
    task: Task
    attempt: Attempt
    fence: int
    place: Place = field(default_factory=lambda: Place(Line()))
    """Where it stands among the plan's others; by itself where nobody else is."""

    def still_mine(self, tx: Tx) -> None:
        """Raise when another worker took the attempt over."""
        current = tx.get(Attempt, self.attempt.id)
        if current is None or current.fence != self.fence:
            raise FenceLost(f"{self.attempt.id} was taken over")
