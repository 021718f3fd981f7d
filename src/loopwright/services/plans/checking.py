"""Collect everything that can be known about a plan before any cost."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from loopwright.adapters.sources.spec.yaml_plan import YamlSource
from loopwright.app import open_home
from loopwright.config.resolve import Settings
from loopwright.core.gates.held_out import proposed
from loopwright.core.plans.evaluating import OVERRIDABLE, Finding
from loopwright.core.policy import graph
from loopwright.core.policy.finishing import LEAVE
from loopwright.core.values.errors import NotARepository
from loopwright.core.values.wording import grouped
from loopwright.engine.intake.evaluation import evaluate, to_do, waits_of
from loopwright.ports import PlannedTask, PlannedWork
from loopwright.services.control.finishing import check_finish
from loopwright.services.doctor.probes import FoundAgent
from loopwright.services.gates.base_gates import BaseRun, checked_on_base
from loopwright.services.homes.caller import current_folder, environment, unheard
from loopwright.services.homes.context import (
    Place,
    ProjectSettings,
    given_settings,
    glance_at,
    here,
    project_text,
    settings_for,
    settings_in_checkout,
)
from loopwright.services.homes.loop_sources import unused_loops
from loopwright.services.plans.evaluator import UNEVALUATED, check_evaluator, is_left_unevaluated, wanted
from loopwright.services.plans.plan_context import seen_around, with_base
from loopwright.services.plans.planning import estimate, has_home
from loopwright.services.preflight.checks import (
    check_accounts,
    check_costs,
    check_fallback,
    check_held_out,
    check_keeping,
    check_review,
    check_tasks,
    other_base,
    relative,
    uncommitted,
    warnings,
    who_works,
)
from loopwright.services.preflight.run_inputs import check_prompts, project_settings, read_plan
from loopwright.services.preflight.spec_loader import with_documents, with_specs

Tell = Callable[[str], None]
__all__ = ["PlanReport", "PlannedTask", "RunOnBase", "estimated", "examine", "widest"]

_ONLY_CHECKED = "it is only looked at"


class RunOnBase(Enum):
    """What is run on the base commit to learn more about a plan."""

    NOTHING = 0
    GATES = 1
    """Only the project's own: the user may not have read the plan's commands yet."""
    ALL = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReport:
    """What is known about a readable plan."""

    path: Path
    work: PlannedWork
    settings: Settings
    to_do: tuple[PlannedTask, ...]
    """The tasks that are neither done nor skipped."""
    critical_path: tuple[str, ...]
    width: int
    """How many tasks can run at once."""
    agents: tuple[FoundAgent, ...]
    notes: tuple[str, ...]
    against: tuple[str, ...]
    """Why a run refuses it, unless the user gives a reason."""
    proposals: Mapping[str, str]
    """By task: a held-out check for those that have none."""
    base: BaseRun | None
    """How its checks end on the base commit; None if nothing ran."""

    @property
    def without_acceptance(self) -> tuple[str, ...]:
        """The tasks that have no acceptance command."""
        return tuple(task.key for task in self.to_do if not task.acceptance and not task.manual)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """The tasks that nothing would check."""
        return () if self.settings.gates else self.without_acceptance

    @property
    def is_refused(self) -> bool:
        """Whether a run refuses it as it is."""
        return bool(self.against or (self.unchecked and not self.settings.values.allow_unverified))


async def examine(
    path: Path,
    kind: str | None = None,
    *,
    run: RunOnBase = RunOnBase.ALL,
    settings_file: Path | None = None,
    tell: Tell = unheard,
) -> PlanReport:
    """Read a plan and find out what running it would mean; raise if it is unreadable or could never run."""
    source, work = read_plan(path, kind)
    known = evaluate(work, str(path), despite=_ONLY_CHECKED)
    place = here(path)
    found, notes = await _found(place, path, work, settings_file)
    settings = settings_for(
        plan=work,
        plan_name=path.name,
        loop=os.path.relpath(path.resolve(), place.root if place else current_folder().resolve()),
        project_text=found.text,
        project_name=found.name,
    )
    if place is not None:
        await _check_start(settings, place, path, work)
    agents = check_tasks(settings, work, path.name)
    check_fallback(settings)
    check_review(settings)
    check_evaluator(settings)
    check_accounts(settings, who_works(settings, *(task.agent for task in work.tasks)))
    check_costs(settings, work)
    base, seen = await _around(settings, place, work, run, tell) if place else (None, ())
    known = known.with_seen(seen)
    about_specs = await _about_documents(settings, place, path, work) if place else ()
    wanted_tasks = to_do(work)
    edges = waits_of(work.tasks, wanted_tasks)
    left = is_left_unevaluated(settings, work)
    return PlanReport(
        path=path,
        work=work,
        settings=settings,
        to_do=wanted_tasks,
        critical_path=graph.critical_path(edges),
        width=widest(edges),
        agents=agents,
        notes=(
            *warnings(settings, work),
            *check_keeping(settings, work),
            *notes,
            *about_specs,
            *grouped(work.notes),
            *(one.text for one in known.findings if one.weight not in OVERRIDABLE),
            *(f"an agent evaluates it before it runs: {why}" for why in wanted(settings, work) if not left),
        ),
        against=(*known.against, UNEVALUATED) if left else known.against,
        proposals={
            task.key: proposed(task.acceptance)
            for task in wanted_tasks
            if task.acceptance and not task.held_out and isinstance(source, YamlSource)
        },
        base=base,
    )


async def estimated(report: PlanReport) -> str:
    """Return the probable time and cost of a plan, from the project's earlier plans."""
    place = here()
    return await estimate(
        report.settings,
        str(place.root) if place else None,
        tasks=len(report.to_do),
        longest=len(report.critical_path),
        side_by_side=min(report.width, report.settings.values.parallel),
    )


def widest(edges: graph.Edges) -> int:
    """Return how many tasks can run at once if each starts as soon as its dependencies allow."""
    level: dict[str, int] = {}
    for node in graph.topological(edges):
        level[node] = 1 + max((level[dep] for dep in edges[node]), default=0)
    counts: dict[int, int] = {}
    for depth in level.values():
        counts[depth] = counts.get(depth, 0) + 1
    return max(counts.values(), default=0)


async def _found(
    place: Place | None, plan: Path, work: PlannedWork, given: Path | None
) -> tuple[ProjectSettings, tuple[str, ...]]:
    """Return the project's settings as a run would use them, and notes about them."""
    if place is None:
        outside = ("this folder is not in a git repository: `run` has to be called in one",)
        return given_settings(given) if given is not None else _beside(plan), outside
    with glance_at(place.root) as repository:
        try:
            start = await repository.base()
        except NotARepository as not_yet:
            lying = given_settings(given) if given is not None else settings_in_checkout(place)
            return lying, (f"it cannot be run here yet: {not_yet}",)
        found = await project_settings(repository, start.sha, place, given)
        await check_prompts(repository, start.sha, place)
        other = await other_base(repository, start, place.root, work)
    file = None if found.given else found.file
    notes = uncommitted(start, file, committed=found.committed, plan=relative(plan, place.root))
    return found, (*notes, *unused_loops(found, place.root), *other)


def _beside(plan: Path) -> ProjectSettings:
    """Return the settings that apply once there is a repository: those of this folder, else those beside the plan."""
    found = project_text(current_folder())
    return ProjectSettings(text=found if found is not None else project_text(plan.resolve().parent))


async def _about_documents(
    settings: Settings, place: Place, plan: Path, work: PlannedWork
) -> tuple[str, ...]:
    with glance_at(place.root) as repository:
        try:
            start = await repository.base()
        except NotARepository:
            return ()  # already reported
        copied = settings.policy().copy_files
        about = (repository, start.sha, place, plan, work, copied)
        return (*(await with_specs(*about))[1], *(await with_documents(*about))[1])


async def _check_start(settings: Settings, place: Place, path: Path, work: PlannedWork) -> None:
    """Refuse what `run` would refuse before it starts."""
    if settings.values.finish == LEAVE and not any(task.held_out for task in work.tasks):
        return
    with glance_at(place.root) as repository:
        try:
            start = await repository.base()
        except NotARepository:
            return  # already reported
        await check_finish(settings, repository, start)
        await check_held_out(repository, start, place, path, work, settings.policy().copy_files)


async def _around(
    settings: Settings, place: Place, work: PlannedWork, run: RunOnBase, tell: Tell
) -> tuple[BaseRun | None, tuple[Finding, ...]]:
    home = open_home(settings, environment()) if has_home(settings) else None
    try:
        with glance_at(place.root) as repository:
            try:
                start = await repository.base()
            except NotARepository:
                return None, ()  # already reported
            about = (repository, start.sha, place, settings, work)
            seen = await seen_around(*about, home.store if home else None)
            # Problems that are visible without running anything are reported once.
            if run is RunOnBase.NOTHING or any(one.weight in OVERRIDABLE for one in seen):
                return None, seen
            base = await checked_on_base(*about, tell, trusted=run is RunOnBase.ALL)
            return base, with_base(seen, base.findings)
    finally:
        if home is not None:
            await home.store.close()
