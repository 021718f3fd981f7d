"""Run an orchestrator folder in rounds: the checks before it begins, and the controller that drives it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from loopwright.adapters.git.branches.round_branches import RoundBranches
from loopwright.adapters.machine.host import new_id
from loopwright.adapters.sources.orchestrator.orchestrator import OrchestratorSource
from loopwright.adapters.sources.orchestrator.roadmap_bundle import is_template
from loopwright.app import repositories
from loopwright.config.resolve import Settings
from loopwright.core.orchestrator import manifest
from loopwright.core.orchestrator.self_check import Ending
from loopwright.core.values.errors import BadPlan, Refused
from loopwright.engine.intake.submit import register_project
from loopwright.ports import PlannedWork
from loopwright.services.driving.driver import Drive
from loopwright.services.homes.context import actor, glance_at, needed_place, settings_for
from loopwright.services.homes.session import opened
from loopwright.services.orchestrator.control_plane import ControlPlane
from loopwright.services.orchestrator.controller import Controller, Ended, blocked_by
from loopwright.services.orchestrator.controller_files import ControllerFiles
from loopwright.services.orchestrator.controller_lock import controlling
from loopwright.services.orchestrator.delegation import Desk
from loopwright.services.preflight.checks import (
    check_accounts,
    check_agents,
    check_fallback,
    check_plan,
    check_review,
    check_sandbox,
    who_works,
)
from loopwright.services.preflight.run_inputs import check_prompts, meant_path, project_settings
from loopwright.services.runs.preparation import RunRequest

__all__ = ["Ending", "RoundsEnded", "run_rounds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsEnded:
    """How the rounds of a folder ended."""

    ended: Ended
    is_gated: bool
    """Whether the project has checks and all passed."""


async def run_rounds(
    request: RunRequest,
    *,
    tell: Callable[[str], None],
    drive: Drive,
    begun: Callable[[], Awaitable[None]] | None = None,
) -> RoundsEnded:
    """Drive an orchestrator folder until its roadmap is done, or something needs the user.

    `begun` is called as soon as this process is its controller.
    """
    path = meant_path(request.plan, request.source).resolve()
    place = needed_place(path)
    if path != place.root / manifest.FOLDER:
        raise Refused(
            f"{path} is not the folder {manifest.FOLDER}/ at the top of the repository",
            code="orchestrator_misplaced",
            hint=f"move it to {place.root / manifest.FOLDER}",
        )
    plane = ControlPlane(root=place.root)
    try:
        state = plane.state()
    except BadPlan as corrupt:
        return await _corrupt(place.root, corrupt)
    with glance_at(place.root) as glance:
        start = await glance.base()
        found = await project_settings(glance, start.sha, place, request.settings_file)
        await check_prompts(glance, start.sha, place)
    work = _work(plane)

    def settings_with(plan: PlannedWork | None) -> Settings:
        return settings_for(
            flags=request.flags,
            plan=plan,
            plan_name=manifest.FOLDER,
            loop=manifest.FOLDER,
            project_text=found.text,
            project_name=found.name,
        )

    # The folder counts rounds and the setting counts agents: one round alone may have several workers.
    settings = settings_with(replace(work, settings={}) if work is not None else None)
    if state.max_parallel_rounds > settings.values.parallel:
        settings = settings_with(work)
    nothing = PlannedWork(title="rounds", tasks=(), sha256="")
    check_plan(settings, nothing)
    check_agents(settings, nothing)
    check_fallback(settings)
    check_review(settings)
    check_accounts(settings, who_works(settings))
    check_sandbox(settings)
    # An unreadable roadmap has no checks: the controller records why, and begins nothing.
    if work is not None and not settings.gates and not settings.values.allow_unverified:
        raise Refused(
            "nothing would check the rounds: the project has no gates, and verification.md has no baseline command",
            code="rounds_unchecked",
            hint="add a command to its Baseline Checks or to [[gates]]; --allow-unverified runs without",
        )
    async with opened(settings) as at:
        project = await at.home.store.transact(
            "project.register",
            lambda tx: register_project(tx, new_id, place.root, place.subfolder, actor()),
        )
        repository = repositories(at.home)(project)
        branches = RoundBranches(repository.git, place.root, at.home.failpoint)
        desk = Desk(
            at=at,
            place=place,
            settings=settings,
            repository=repository,
            branches=branches,
            plane=plane,
            writer=ControllerFiles(root=place.root, failpoint=at.home.failpoint),
            drive=drive,
            tell=tell,
            base_branch=state.base_branch,
            project_id=project.id,
        )
        async with controlling(branches):
            if begun is not None:
                await begun()
            return RoundsEnded(ended=await Controller(desk).run(), is_gated=bool(settings.gates))


async def _corrupt(root: Path, corrupt: BadPlan) -> RoundsEnded:
    """Record in a state that is not valid what is wrong with it."""
    with glance_at(root) as repository:
        async with controlling(RoundBranches(repository.git, root)):
            return RoundsEnded(ended=blocked_by(ControllerFiles(root=root), corrupt), is_gated=False)


def _work(plane: ControlPlane) -> PlannedWork | None:
    """Return the roadmap as a plan, for its checks; None if the controller has to report it."""
    try:
        files = plane.files()
        if is_template(files):
            raise Refused(
                f"{manifest.FOLDER}/ is the template of a scaffold",
                code="orchestrator_template",
                hint='`loopwright scaffold orchestrator "..."` writes one for a goal',
            )
        return OrchestratorSource().parse(files, manifest.FOLDER)
    except BadPlan:
        return None
