"""Delete the leftovers of ended plans: branches, pins, and the recordings of agents."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loopwright.adapters.git import GitRepository
from loopwright.adapters.git.branches.leftovers import Leftover
from loopwright.adapters.machine.disk import HomeDisk
from loopwright.core.rows.model import AGENT_ROLES, Plan, Project, Run
from loopwright.core.values.errors import NotARepository, NotFound
from loopwright.core.values.states import ENDED_RUN
from loopwright.engine.people.clean import check_clean, cleanable, record_cleaned, record_removed
from loopwright.ports import Tx
from loopwright.services.homes.context import actor
from loopwright.services.homes.read_only_home import find_plan, project_here, refuse_elsewhere
from loopwright.services.homes.session import Session

__all__ = [
    "Leftover",
    "Leftovers",
    "Recordings",
    "delete",
    "ended_plans",
    "leftovers",
    "recordings_of",
    "remove_recordings",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """The leftovers of an ended plan in its repository."""

    plan: Plan
    repository: GitRepository
    go: tuple[Leftover, ...]
    """Branches and pins that can be deleted."""
    stay: tuple[Leftover, ...]


async def ended_plans(at: Session, plan: str | None = None) -> tuple[Plan, ...]:
    """Return the plan with this name, if it has ended for good; without a name, all such plans of this repository."""
    return tuple(found for found, _ in await at.home.store.read(lambda tx: _ended(tx, plan)))


async def leftovers(at: Session, plan: str | None = None, *, unproven: bool = False) -> tuple[Leftovers, ...]:
    """Return the leftovers of ended plans; `unproven` includes work of one plan that none of your branches has."""
    if unproven and plan is None:
        raise NotFound(
            "--unproven deletes work that is nowhere else",
            code="plan_not_named",
            hint="name the one PLAN that it is about",
        )
    found = []
    for row, project in await at.home.store.read(lambda tx: _ended(tx, plan)):
        repository = GitRepository(Path(project.path), project_id=project.id, home=at.home.root)
        refs = await repository.leftovers(row.id, row.branch, into=row.base_ref)
        go = tuple(one for one in refs if (one.branch is not None or unproven) and not one.ref.worktree)
        stay = tuple(one for one in refs if one not in go)
        found.append(Leftovers(plan=row, repository=repository, go=go, stay=stay))
    return tuple(found)


async def delete(at: Session, found: Sequence[Leftovers]) -> int:
    """Delete what can be deleted, and record it; return how many branches and pins that were."""
    return sum([await _delete(at, one) for one in found])


async def _delete(at: Session, one: Leftovers) -> int:
    if not one.go:
        return 0
    # Recorded first: a kill in between leaves a record of what may be gone, never the other way round.
    names = [left.ref.name for left in one.go]
    lost = [f"{left.ref.name} {left.ref.sha}" for left in one.go if left.branch is None]
    commits = await one.repository.on_branch(one.plan.branch, [left.ref for left in one.go])
    await at.home.store.transact(
        "plan.cleaned",
        lambda tx: record_cleaned(tx, one.plan, actor(), deleted=names, unproven=lost, commits=commits),
    )
    await one.repository.let_go([left.ref for left in one.go])
    return len(one.go)


def _ended(tx: Tx, text: str | None) -> list[tuple[Plan, Project]]:
    if text is not None:
        plan = find_plan(tx, text)
        refuse_elsewhere(tx, plan.project_id, text)
        check_clean(tx, plan)
        plans = [plan]
    else:
        here = project_here()
        if here is None:
            raise NotARepository(
                "this folder is in no git repository",
                code="not_a_repository",
                hint="change into your project, or name a PLAN",
            )
        plans = cleanable(tx, project_path=here)
    projects = {project.id: project for project in tx.find(Project, id=[plan.project_id for plan in plans])}
    return [(plan, projects[plan.project_id]) for plan in plans]


# Delete the recordings of agents in plans that have ended for good.


@dataclass(frozen=True, slots=True, kw_only=True)
class Recordings:
    """The recordings of the agents of one ended plan in this home."""

    plan: Plan
    sizes: dict[str, int]
    """Bytes by the id of the run."""

    @property
    def size(self) -> int:
        """How many bytes are deleted with them."""
        return sum(self.sizes.values())


async def recordings_of(at: Session, plans: Sequence[Plan]) -> list[Recordings]:
    """Return the recordings that these plans still have; the output of gates is evidence, and stays."""
    disk, found = HomeDisk(at.home.root), []
    for plan in plans:
        runs = await at.home.store.read(lambda tx, plan=plan: _recorded_runs(tx, plan))  # type: ignore[misc]
        sizes = {run.id: disk.recorded(at.home.root / "runs" / run.id) for run in runs}
        found.append(Recordings(plan=plan, sizes={run: size for run, size in sizes.items() if size}))
    return [one for one in found if one.sizes]


def _recorded_runs(tx: Tx, plan: Plan) -> list[Run]:
    return tx.find(Run, plan_id=plan.id, role=AGENT_ROLES, state=ENDED_RUN)


async def remove_recordings(at: Session, found: Sequence[Recordings]) -> int:
    """Delete them, and record it; return how many."""
    disk, gone = HomeDisk(at.home.root), {run: size for one in found for run, size in one.sizes.items()}
    # Recorded first: a kill in between leaves a record of what may be gone, never the other way round.
    day = await at.home.store.transact(
        "recordings.removed", lambda tx: record_removed(tx, list(gone), sum(gone.values()), actor())
    )
    for run in gone:
        disk.forget(at.home.root / "runs" / run, day)
    return len(gone)
