"""The sample project of a new home: created, registered and started by one call."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Final

from loopwright.core.rows.model import Loop, Project
from loopwright.core.values.access import Caller
from loopwright.core.values.errors import NotAllowed, UserError
from loopwright.services.demo import SAMPLE, SCRIPT, SHOP, make_sample
from loopwright.services.driving.recorded_environments import record_environment
from loopwright.services.homes.caller import called_from
from loopwright.services.homes.context import look_settings, needed_folder
from loopwright.services.homes.session import Session
from loopwright.services.remote.starting import NewLoop, ask_to_start, create_loop

_PAUSE_S: Final = 1.5
"""How long the agent pauses, so that the user can watch."""
_TRIES: Final = 20
_ONE_AT_A_TIME: Final = asyncio.Lock()
"""Two clicks start one demonstration."""


async def start_sample(at: Session, caller: Caller) -> str:
    """Start the demonstration in this home, and return the page that shows it."""
    if not caller.sees(None):
        raise NotAllowed(
            "a token for some projects cannot register others",
            code="token_reaches_too_far",
            hint="use a token for all projects",
        )
    if shutil.which("git", path=at.env.get("PATH")) is None:
        raise UserError(
            "git was not found on this machine", code="git_missing", hint="install git 2.38 or newer"
        )
    async with _ONE_AT_A_TIME:
        return await _start(at, caller)


async def _start(at: Session, caller: Caller) -> str:
    folder = at.home.root / SAMPLE
    if not (folder / SHOP).exists():
        await asyncio.to_thread(_make, folder)
    project = await _register(at, caller, folder / SHOP)
    known = await at.home.store.read(lambda tx: tx.find(Loop, project_id=project.id, deleted_at=None))
    if known:
        loop_id, is_begun = known[0].id, known[0].plan_id is not None
    else:
        wanted = NewLoop(project_id=project.id, source="plan.yaml", name="demo")
        loop_id, is_begun = (await create_loop(at, caller, wanted)).id, False
    if not is_begun:  # also if a killed daemon has created only this
        await ask_to_start(at, caller, loop_id)
    return await _begun(at, loop_id)


def _make(folder: Path) -> None:
    """Create the sample beside its place first: the leftovers of a killed process are replaced."""
    draft = folder.with_name(f"{SAMPLE}.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    make_sample(draft, pause_s=_PAUSE_S)
    # JSON strings are TOML strings too.
    script = json.dumps(str(folder / SCRIPT))
    settings = f'agent = "scripted"\nparallel = 3\n\n[agents.scripted]\nscript = {script}\n'
    (draft / SHOP / "loopwright.toml").write_text(settings, encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)


async def _register(at: Session, caller: Caller, shop: Path) -> Project:
    with called_from(shop, at.env, name=caller.actor, bounds=caller.bounds):
        place = await asyncio.to_thread(needed_folder)
        settings = await asyncio.to_thread(look_settings)
        return await record_environment(at.home, place, settings.policy(), settings.values.state_folder)


async def _begun(at: Session, loop_id: str) -> str:
    """Wait briefly for the plan, and return its page, or the page of the loop if there is none yet."""
    for _ in range(_TRIES):
        loop = await at.home.store.read(lambda tx: tx.get(Loop, loop_id))
        if loop is not None and loop.plan_id is not None:
            return f"/plans/{loop.plan_id}"
        await at.home.store.changed(0.5)
    return f"/loops/{loop_id}"
