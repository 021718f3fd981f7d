"""The daemon polls the issues of every project."""

import asyncio
import logging
from pathlib import Path
from typing import Any, Final

from loopwright.core.integrations.issues import REQUIRED
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Loop, Project
from loopwright.core.values.access import Caller, Scope
from loopwright.core.values.errors import LoopwrightError, Refused
from loopwright.core.values.states import LoopState
from loopwright.ports import Tx
from loopwright.services.homes.context import look_settings, needed_place
from loopwright.services.homes.session import Session
from loopwright.services.issues.following import follow
from loopwright.services.issues.taking import Tracker, take, tracker_of
from loopwright.services.remote.seen import acting
from loopwright.services.remote.starting import NewLoop, ask_to_start, create_loop

log = logging.getLogger(__name__)

_ME: Final = Caller(token_id="", name="forge", scope=Scope.ADMIN)


class IssueWatch:
    """Makes loops of labelled issues, and follows them until they are closed."""

    def __init__(self, at: Session) -> None:
        self._at = at

    async def run(self) -> None:
        """Poll until this task is cancelled."""
        while True:
            try:
                await self._look()
            except LoopwrightError as away:
                log.warning("issues wait: %s", away)
            except Exception:  # the boundary: one failed poll must not be the last one
                log.exception("issues cannot be read; trying again")
            await asyncio.sleep(self._at.settings.values.forge.every)

    async def _look(self) -> None:
        projects = await self._at.home.store.read(lambda tx: tx.find(Project, order_by=("created_at",)))
        for project in projects:
            if project.environment is None or not Path(project.path).is_dir():
                continue
            try:
                with acting(self._at, _ME, project):
                    await self._serve(project)
            except LoopwrightError as wrong:
                log.warning("the issues of %s wait: %s", project.name, wrong)

    async def _serve(self, project: Project) -> None:
        settings = look_settings()
        if not settings.values.forge.issues:
            return
        tracker = await tracker_of(settings, needed_place())
        known = await self._at.home.store.read(tracker.loops)
        for n in await tracker.issues.labelled(tracker.label):
            if n not in known:
                await self._take(tracker, project, n)
        for loop in (await self._at.home.store.read(tracker.loops)).values():
            try:
                if _is_new(loop):
                    await ask_to_start(self._at, _ME, loop.id)
                await follow(self._at, tracker, loop)
            except Refused as refused:
                log.warning("the issue of %s waits: %s", loop.name, refused)

    async def _take(self, tracker: Tracker, project: Project, n: int) -> None:
        try:
            path = await take(tracker, n)
        except Refused as refused:
            await self._note_refused(project, n, refused)
            return
        wanted = NewLoop(
            project_id=project.id,
            source=path.relative_to(Path(project.path) / project.subfolder).as_posix(),
            name=f"{project.name}/issue-{n}",
            settings=REQUIRED,
        )
        await create_loop(self._at, _ME, wanted)

    async def _note_refused(self, project: Project, n: int, refused: Refused) -> None:
        """Record once why an issue does not become work."""

        def record(tx: Tx) -> None:
            told = tx.events(projects=[project.id], types=["issue_refused"], newest=True)
            about: dict[str, Any] = {"issue": n, "why": str(refused)}
            if not any(dict(one.payload) == about for one in told):
                tx.append(happened("issue_refused", _ME.actor, project_id=project.id, **about))

        await self._at.home.store.transact("issue.refused", record)


def _is_new(loop: Loop) -> bool:
    """Return whether a loop was never asked to start."""
    return loop.state is LoopState.IDLE and loop.plan_id is None and loop.start is None and not loop.reason
