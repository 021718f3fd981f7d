"""Rounds of an orchestrator folder without a terminal: the daemon is the controller while their loop runs."""

import asyncio
import logging
from pathlib import Path
from typing import Literal

from loopwright.adapters.machine.host import new_id
from loopwright.core.rows.model import Loop, Plan, Project
from loopwright.core.values.access import Caller
from loopwright.core.values.errors import NotFound, Refused
from loopwright.core.values.round_states import FOLDER_KIND
from loopwright.core.values.states import ENDED_PLAN, LoopState
from loopwright.engine.intake import loops
from loopwright.engine.money.charges import check_start
from loopwright.engine.rows.moves import need
from loopwright.engine.views.loop_views import stage_plans
from loopwright.ports import Tx
from loopwright.services.control import decisions
from loopwright.services.daemon.note import running
from loopwright.services.driving.driver import Rested
from loopwright.services.driving.recorded_environments import record_environment
from loopwright.services.homes.context import actor, look_settings, needed_place
from loopwright.services.homes.session import Session, opened
from loopwright.services.orchestrator.running import Ending, run_rounds
from loopwright.services.preflight.run_inputs import meant_path, runs_in_rounds
from loopwright.services.runs.preparation import RunRequest

log = logging.getLogger(__name__)

_DRIVEN = (LoopState.RUNNING, LoopState.PAUSED)
_START_DAEMON = "`loopwright up` starts one; without --detach rounds run on this terminal"
_LOOK_S = 1.0
_STAGES = 20
"""More stages than can be open at once."""


def is_in_rounds(loop: Loop, project: Project) -> bool:
    """Return whether the source of a loop is a folder with roles."""
    return loop.source_kind == FOLDER_KIND and runs_in_rounds(Path(project.path) / loop.source_path)


async def leave_to_daemon(request: RunRequest) -> Loop:
    """Have the daemon of the home drive the rounds of a folder; refuse if none runs."""
    path = meant_path(request.plan, request.source).resolve()
    place = needed_place(path)
    settings = look_settings()
    if running(settings.home) is None:
        raise NotFound(
            "no daemon runs here that could drive rounds", code="daemon_missing", hint=_START_DAEMON
        )
    async with opened(settings) as at:
        project = await record_environment(at.home, place, settings.policy())
        flags = {key: value for key, value in request.flags.items() if value is not None}

        def ask(tx: Tx) -> Loop:
            source = path.relative_to(project.path).as_posix()
            known = tx.find(Loop, project_id=project.id, source_path=source, deleted_at=None, limit=1)
            loop = known[0] if known else _registered(tx, project, source)
            return loops.ask_to_start(tx, loop, actor(), flags)

        return await at.home.store.transact("loop.start", ask)


def _registered(tx: Tx, project: Project, source: str) -> Loop:
    name = f"{project.name}/{source}"
    return loops.register_loop(
        tx, new_id, project, actor(), name=name, kind=FOLDER_KIND, source=source, priority=5
    )


async def drive_rounds(at: Session, loop: Loop, request: RunRequest) -> None:
    """Be the controller of a loop's folder until its roadmap is done, the user is needed, or this is cancelled."""
    store = at.home.store

    async def begun() -> None:
        if not await store.transact("loop.rounds", lambda tx: loops.begin_rounds(tx, loop)):
            raise Refused(f"{loop.name} was stopped", code="loop_at_work", hint="start it again")

    def tell(line: str) -> None:
        log.info("rounds: %s", line, extra={"loop": loop.id})

    try:
        found = (await run_rounds(request, tell=tell, drive=_followed, begun=begun)).ended
    except asyncio.CancelledError:
        if (await store.read(lambda tx: _now(tx, loop))).state is not LoopState.RUNNING:
            await _rest_stages(at, loop, "pause", now=False)  # what began after the others were paused
        raise
    target = LoopState.COMPLETED if found.ending is Ending.TERMINAL else LoopState.FAILED
    await store.transact("loop.rounds", lambda tx: loops.end_rounds(tx, loop, target, found.reason))


async def _followed(at: Session, plan: Plan, _submitter: str) -> Rested:
    """Wait until the worker of the home has ended a stage, even while it is paused."""
    store = at.home.store

    def has_ended(tx: Tx) -> bool:
        now = tx.get(Plan, plan.id)
        return now is None or now.status in ENDED_PLAN

    while not await store.read(has_ended):
        await store.changed(_LOOK_S)
    return Rested(plan_id=plan.id)


async def steer_rounds(
    at: Session, loop: Loop, action: Literal["stop", "pause", "resume"], caller: Caller, *, now: bool
) -> None:
    """Pause, stop or resume a loop in rounds; its open stages rest with it."""
    store = at.home.store
    if action == "resume":

        def ask(tx: Tx) -> None:
            check_start(tx, caller.bounds, _now(tx, loop))
            loops.ask_to_start(tx, _now(tx, loop), caller.actor, {}, caller.bounds)

        await store.transact("loop.start", ask)
        return
    target = LoopState.STOPPED if action == "stop" else LoopState.PAUSED
    await store.transact("loop.rest", lambda tx: loops.rest_rounds(tx, _now(tx, loop), target, caller.actor))
    await _rest_stages(at, loop, action, now=now)


async def _rest_stages(at: Session, loop: Loop, action: Literal["stop", "pause"], *, now: bool) -> None:
    def running(tx: Tx) -> list[Plan]:
        plans = [one for one in stage_plans(tx, loop, _STAGES) if one.status not in ENDED_PLAN]
        return [one for one in plans if need(tx.get(Loop, one.loop_id), "the loop").state in _DRIVEN]

    for plan in await at.home.store.read(running):
        if action == "pause":
            await decisions.pause(at, plan.id, now=now)
        else:
            await decisions.stop(at, plan.id)


def _now(tx: Tx, loop: Loop) -> Loop:
    """Return the current row of a loop."""
    return need(tx.get(Loop, loop.id), "the loop")
