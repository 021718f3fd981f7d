"""An agent that reads its settings from the repository is not started with any that another agent wrote there."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from loopwright.core.rows.model import Plan, Project
from loopwright.core.values.errors import Refused
from loopwright.engine.rows.world import World


async def refuse_foreign(
    world: World, project: Project, plan: Plan, workspace: Path, agent: str, places: Sequence[str]
) -> None:
    """Raise when settings in the workspace are neither those of the plan's base nor of the user's own checkout."""
    names = [str(above / place) + "/" * place.endswith("/") for place in places for above in _above(project)]
    repository = world.repository(project)
    own = world.settings_in(Path(project.path), names)
    foreign = [
        path
        for path, text in world.settings_in(workspace, names).items()
        if text is None or text not in (own.get(path), await repository.file_at(plan.base_sha, path))
    ]
    if foreign:
        listed = ", ".join(sorted(foreign)[:5]) + (" and more" if len(foreign) > 5 else "")
        # The whole text: it becomes the reason of the failed task, where hints are not kept apart.
        raise Refused(
            f"{agent} would take settings from {listed}, which changed since the plan began: an agent may have written "
            "them. "
            "Look at them and begin a plan from a commit that has them, let another agent do this task, or set "
            f"agents.{agent}.trust_workspace = true",
            code="agent_settings_changed",
        )


def _above(project: Project) -> list[PurePosixPath]:
    """Return the folders in which such settings are looked for: where the agent is started, and all above it."""
    start = PurePosixPath(project.subfolder)
    return [start, *start.parents] if project.subfolder else [start]
