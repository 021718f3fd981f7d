"""Give a goal to the orchestrator of a project."""

import asyncio
import logging
from typing import Final

from loopwright.adapters.processes.redaction import redacted
from loopwright.core.prompts.prompts import indented
from loopwright.core.rows.model import Plan, Project, Role
from loopwright.core.values.access import Caller
from loopwright.core.values.errors import LoopwrightError, Refused
from loopwright.engine.money.charges import check_creation
from loopwright.ports import Tx
from loopwright.prompts import packaged
from loopwright.services.driving.recorded_environments import needed_environment
from loopwright.services.homes.context import look_settings
from loopwright.services.homes.session import Session
from loopwright.services.remote.seen import acting, seen_project
from loopwright.services.roles.rounds import Round, begin, rounds_of

log = logging.getLogger(__name__)

_TICK_S: Final = 1.0
_TITLE: Final = 200


class Orchestrators:
    """The orchestrators that work now."""

    def __init__(self, at: Session) -> None:
        self._at = at
        self._working: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Stop waiting for them: their plans continue with the next daemon."""
        for task in self._working:
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)

    async def delegate(self, caller: Caller, project_id: str, goal: str) -> Plan:
        """Give a goal to the orchestrator of a project; return the plan in which it works."""

        def load(tx: Tx) -> tuple[Project, set[str]]:
            check_creation(tx, caller.bounds)
            project = seen_project(tx, caller, project_id)
            return project, {one.id for one in rounds_of(tx, project.id, Role.ORCHESTRATOR)}

        project, known = await self._at.home.store.read(load)
        needed_environment(project)
        with acting(self._at, caller, project):
            values = look_settings().values.orchestrator
        if values.agent is None:
            raise Refused(
                "the project has no orchestrator",
                code="role_missing",
                hint="set `orchestrator.agent` in its loopwright.toml",
            )
        said = redacted(goal.strip(), ())
        if not said:
            raise Refused("the goal is empty", code="goal_missing", hint="say what shall be true")
        wanted = Round(
            role=Role.ORCHESTRATOR,
            title=" ".join(said.split())[:_TITLE],
            text=packaged("parts/delegated").fill({"project": project.id, "goal": indented(said)}),
            agent=values.agent,
            max_cost=values.max_cost,
            spending=values.spending,
        )
        task = asyncio.create_task(self._work(project, wanted, caller), name=f"orchestrator {project.id}")
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        while True:
            rounds = await self._at.home.store.read(lambda tx: rounds_of(tx, project.id, Role.ORCHESTRATOR))
            if new := [one for one in rounds if one.id not in known]:
                return new[0]
            if task.done():
                task.result()
                raise Refused("the orchestrator did not begin", code="role_not_begun")
            await self._at.home.store.changed(_TICK_S)

    async def _work(self, project: Project, wanted: Round, caller: Caller) -> None:
        try:
            await begin(self._at, project, wanted, caller)
        except LoopwrightError as wrong:
            log.warning("the orchestrator of %s does not work: %s", project.name, wrong)
            raise
