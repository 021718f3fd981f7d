"""`clean --recordings`: let go of what agents said in plans that are over for good."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.markup import escape

from loopwright.adapters.machine.disk import HomeDisk
from loopwright.app import Home
from loopwright.cli.shell.output import console
from loopwright.core.rows.model import AGENT_ROLES, Plan, Run
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import ENDED_RUN
from loopwright.core.values.wording import counted
from loopwright.engine.people.retention import record_removed
from loopwright.ports import Tx
from loopwright.services.homes.context import actor

_KILO = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Recordings:
    """What the agents of one ended plan said, as far as it lies in this home."""

    plan: Plan
    sizes: dict[str, int]
    """Bytes by the id of the run."""

    @property
    def size(self) -> int:
        """How many bytes go with them."""
        return sum(self.sizes.values())


async def recordings_of(home: Home, plans: Sequence[Plan]) -> list[Recordings]:
    """Return what these plans still have; what gates printed is evidence of its own, and stays."""
    disk, found = HomeDisk(home.root), []
    for plan in plans:
        runs = await home.store.read(lambda tx, plan=plan: _runs(tx, plan))  # type: ignore[misc]
        sizes = {run.id: disk.recorded(home.root / "runs" / run.id) for run in runs}
        found.append(Recordings(plan=plan, sizes={run: size for run, size in sizes.items() if size}))
    return [one for one in found if one.sizes]


def _runs(tx: Tx, plan: Plan) -> list[Run]:
    return tx.find(Run, plan_id=plan.id, role=AGENT_ROLES, state=ENDED_RUN)


def show(found: Sequence[Recordings]) -> None:
    """Print what would go."""
    out = console()
    for one in found:
        out.print(
            f"[bold]{escape(one.plan.title)}[/]  {short_id(one.plan.id)}  {one.plan.status.value.lower()}\n"
            f"  [yellow]delete[/]  {told(one)}"
        )
    if not found:
        out.print("nothing to delete: no ended plan has recordings here")


def told(one: Recordings) -> str:
    """Say in words what goes."""
    return f"what {counted(len(one.sizes), 'agent run')} said: {in_words(one.size)}"


def in_words(size: int) -> str:
    """Return a size as people read it."""
    return f"{size / _KILO / _KILO:.1f} MB" if size >= _KILO * _KILO else f"{-(-size // _KILO)} KB"


async def remove(home: Home, found: Sequence[Recordings]) -> int:
    """Delete them, on the record; return how many."""
    disk, gone = HomeDisk(home.root), {run: size for one in found for run, size in one.sizes.items()}
    # Written down first: a kill in between leaves a record of what may be gone, never the other way round.
    day = await home.store.transact(
        "recordings.removed", lambda tx: record_removed(tx, list(gone), sum(gone.values()), actor())
    )
    for run in gone:
        disk.forget(home.root / "runs" / run, day)
    return len(gone)
