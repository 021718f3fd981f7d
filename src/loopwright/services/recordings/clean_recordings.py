"""Delete the recordings of agents in plans that have ended for good."""

from collections.abc import Sequence
from dataclasses import dataclass

from loopwright.adapters.machine.disk import HomeDisk
from loopwright.core.rows.model import AGENT_ROLES, Plan, Run
from loopwright.core.values.states import ENDED_RUN
from loopwright.engine.people.clean import record_removed
from loopwright.ports import Tx
from loopwright.services.homes.context import actor
from loopwright.services.homes.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Recordings:
    """The recordings of the agents of one ended plan in this home."""

    plan: Plan
    sizes: dict[str, int]
    """Bytes by the id of the run."""

    @property
    def size(self) -> int:
        """How many bytes go with them."""
        return sum(self.sizes.values())


async def recordings_of(at: Session, plans: Sequence[Plan]) -> list[Recordings]:
    """Return what these plans still have; the output of gates is evidence, and stays."""
    disk, found = HomeDisk(at.home.root), []
    for plan in plans:
        runs = await at.home.store.read(lambda tx, plan=plan: _runs(tx, plan))  # type: ignore[misc]
        sizes = {run.id: disk.recorded(at.home.root / "runs" / run.id) for run in runs}
        found.append(Recordings(plan=plan, sizes={run: size for run, size in sizes.items() if size}))
    return [one for one in found if one.sizes]


def _runs(tx: Tx, plan: Plan) -> list[Run]:
    return tx.find(Run, plan_id=plan.id, role=AGENT_ROLES, state=ENDED_RUN)


async def remove(at: Session, found: Sequence[Recordings]) -> int:
    """Delete them, on the record; return how many."""
    disk, gone = HomeDisk(at.home.root), {run: size for one in found for run, size in one.sizes.items()}
    # Written down first: a kill in between leaves a record of what may be gone, never the other way round.
    day = await at.home.store.transact(
        "recordings.removed", lambda tx: record_removed(tx, list(gone), sum(gone.values()), actor())
    )
    for run in gone:
        disk.forget(at.home.root / "runs" / run, day)
    return len(gone)
