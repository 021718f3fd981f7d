"""The recorded environment of a project: what plans take that are made without a terminal."""

from loopwright.adapters.machine.host import host_id, new_id
from loopwright.app import Home
from loopwright.core.rows.model import Project
from loopwright.core.values.environments import PlanEnvironment, recorded
from loopwright.core.values.errors import Refused
from loopwright.core.values.policy import Policy
from loopwright.engine.intake.submit import register_project
from loopwright.ports import Tx
from loopwright.services.homes.caller import caller_name, environment
from loopwright.services.homes.context import Place, actor


async def record_environment(home: Home, place: Place, policy: Policy) -> Project:
    """Register a project and record the environment of this terminal for it."""
    taken = recorded(
        environment(),
        host_id=host_id(home.root),
        secret=policy.environment,
        plain=policy.environment_plain,
    )
    who = actor()

    def record(tx: Tx) -> Project:
        project = register_project(tx, new_id, place.root, place.subfolder, who)
        return project if project.environment == taken else tx.update(Project, project.id, environment=taken)

    return await home.store.transact("project.environment", record)


async def record_once(home: Home, place: Place, policy: Policy) -> None:
    """Record the environment of a project that has none yet; a caller without a terminal records nothing."""
    if caller_name() is not None:
        return

    def is_known(tx: Tx) -> bool:
        known = tx.find(Project, path=str(place.root), subfolder=place.subfolder, limit=1)
        return bool(known) and known[0].environment is not None

    if not await home.store.read(is_known):
        await record_environment(home, place, policy)


def needed_environment(project: Project) -> PlanEnvironment:
    """Return the recorded environment of a project; refuse work for one that has none."""
    if project.environment is None:
        raise Refused(
            f"the project {project.name} has no recorded environment, so nothing can be started without a terminal",
            code="environment_missing",
            hint=f"in {project.path}, run `loopwright projects env --record` once",
        )
    return project.environment
