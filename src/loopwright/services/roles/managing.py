"""The manager of each project: it looks when something happened, and on a schedule."""

import asyncio
import logging
from functools import partial
from pathlib import Path
from typing import Final

from loopwright.core.policy.managing import WAKING, Looks, due
from loopwright.core.prompts.prompts import indented
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.rows.model import Loop, Plan, Project, Role
from loopwright.core.rows.monitor_rows import Trouble
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.errors import LoopwrightError
from loopwright.core.values.states import ENDED_PLAN, QuestionState
from loopwright.core.values.wording import one_line
from loopwright.ports import Tx
from loopwright.prompts import packaged
from loopwright.services.homes.context import look_settings
from loopwright.services.homes.session import Session
from loopwright.services.remote.seen import acting_as
from loopwright.services.roles.rounds import KIND, Round, begin, rounds_of

log = logging.getLogger(__name__)

_ME: Final = "manager"
_MOST: Final = 50
_LONGEST: Final = 300


class Managers:
    """Lets the managers of all projects look."""

    def __init__(self, at: Session) -> None:
        self._at = at
        self._looking: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Look until this task is cancelled."""
        try:
            while True:
                try:
                    await self._see()
                except LoopwrightError as away:
                    log.warning("managers wait: %s", away)
                except Exception:  # the boundary: one look must not be the last one
                    log.exception("managers cannot look; trying again")
                await asyncio.sleep(self._at.settings.values.monitor.every)
        finally:
            for task in self._looking.values():
                task.cancel()
            await asyncio.gather(*self._looking.values(), return_exceptions=True)

    async def _see(self) -> None:
        self._looking = {key: task for key, task in self._looking.items() if not task.done()}
        for project in await self._at.home.store.read(lambda tx: tx.find(Project, order_by=("created_at",))):
            is_here = project.environment is not None and Path(project.path).is_dir()
            if not is_here or project.id in self._looking:
                continue
            with acting_as(self._at, _ME, project, None):
                values = look_settings().values.manager
            if values.agent is None:
                continue
            looks = Looks(every=values.every, on_events=values.on_events, per_day=values.per_day)
            told = await self._at.home.store.read(partial(_due, project=project, looks=looks))
            if told is None:
                continue
            wanted = Round(
                role=Role.MANAGER,
                title=f"Look after the loops of {project.name}",
                text=told,
                agent=values.agent,
                max_cost=values.max_cost,
                spending=values.spending,
            )
            self._looking[project.id] = asyncio.create_task(
                self._look(project, wanted), name=f"manager {project.id}"
            )

    async def _look(self, project: Project, wanted: Round) -> None:
        try:
            await begin(self._at, project, wanted)
        except LoopwrightError as wrong:
            log.warning("the manager of %s does not look: %s", project.name, wrong)
        except Exception:  # the boundary: the next look may work
            log.exception("the manager of %s failed", project.name)


def _due(tx: Tx, *, project: Project, looks: Looks) -> str | None:
    """Return what a manager is told if it should look now."""
    before = rounds_of(tx, project.id, Role.MANAGER)
    if before and before[0].status not in ENDED_PLAN:
        return None
    # A manager that is switched on does not look at what happened before it was.
    since = before[0].created_at if before else project.created_at
    roles = {one.id for one in tx.find(Loop, project_id=project.id, source_kind=KIND)}
    told = tx.events(projects=[project.id], types=WAKING, newest=True, limit=_MOST)
    found = [one for one in told if one.at > since and one.loop not in roles]
    why = due(looks, [one.created_at for one in before], [one.type for one in found], tx.now())
    return _told(tx, project, why, found) if why else None


def _told(tx: Tx, project: Project, why: str, found: list[RecordedEvent]) -> str:
    loops = tx.find(Loop, project_id=project.id, deleted_at=None, order_by=("priority", "created_at"))
    asked = tx.find(Question, project_id=project.id, state=QuestionState.OPEN, order_by=("created_at",))
    troubles = tx.find(Trouble, project_id=project.id)
    lines = [
        f"{one.id}: {one.name}, {one.state.value}, priority {one.priority}"
        + (f", {_tasks(tx, one)}" if one.plan_id else "")
        + (f", {one_line(one.reason, _LONGEST)}" if one.reason else "")
        for one in loops
        if one.source_kind != KIND
    ]
    return packaged("parts/managed").fill(
        {
            "project": project.id,
            "why": why,
            "loops": indented("\n".join(lines[:_MOST])),
            "questions": indented(
                "\n".join(f"{one.id}: {one_line(one.text, _LONGEST)}" for one in asked[:_MOST])
            ),
            "alerts": indented("\n".join(one_line(one.message, _LONGEST) for one in troubles[:_MOST])),
            "events": indented("\n".join(f"{one.at:%H:%M} {one.type} {one.task or ''}" for one in found)),
        }
    )


def _tasks(tx: Tx, loop: Loop) -> str:
    plan = tx.get(Plan, loop.plan_id or "")
    return f"{plan.open_tasks} tasks open, {plan.failed_tasks} failed" if plan is not None else ""
