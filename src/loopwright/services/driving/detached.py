"""Hand a plan over to the background: to an existing worker, or to a new process."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopwright.adapters.home.membership import ALL
from loopwright.core.rows.model import Plan
from loopwright.core.values.errors import CannotRun
from loopwright.engine.people.served_projects import is_served
from loopwright.engine.rows.moves import need
from loopwright.services.driving.recorded_environments import submitting, taken_over
from loopwright.services.homes.caller import environment
from loopwright.services.homes.context import open_existing, settings_for
from loopwright.services.homes.log import log_to
from loopwright.services.homes.session import Session

FOLDER: Final = "detached"
_START_S: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Detached:
    """The process that executes a plan in the background."""

    pid: int | None
    """None for a worker that waits to take over, or that may be on another machine."""
    log: Path | None = None
    """The log of a process that was started for it; None for an existing worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenPlan:
    """A plan that this process took over, in an open home."""

    at: Session
    plan: Plan
    submitter: str
    """The name of the submission that answers for this process's variables."""


async def hand_over(at: Session, plan: Plan, program: Sequence[str]) -> Detached:
    """Hand a plan over to the worker that serves all projects, or start a process for it.

    `program` is called with the plan's id and its log. It prints its process id, and exits with 0 when the
    plan is taken over.
    """
    home = at.home
    holder = home.membership.holder() or {}
    if holder.get("serves") == ALL:
        return Detached(pid=holder.get("pid"))
    if home.membership.attended(ALL):
        return Detached(pid=None)
    if not home.membership.exclusive and await home.store.read(lambda tx: is_served(tx, plan.project_id)):
        return Detached(pid=None)
    log = home.root / FOLDER / f"{plan.id}.log"
    log.parent.mkdir(mode=0o700, exist_ok=True)
    done = await asyncio.to_thread(
        subprocess.run,
        [*program, plan.id, str(log)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_START_S,
    )
    if done.returncode != 0:
        said = [*(log.read_text(errors="replace").splitlines() if log.exists() else ()), done.stderr.strip()]
        why = next(filter(None, reversed(said)), "it printed nothing")
        raise CannotRun(f"the background process did not start: {why}; its log is {log}")
    return Detached(pid=int(done.stdout), log=log)


@asynccontextmanager
async def taking_over(plan_id: str) -> AsyncIterator[TakenPlan]:
    """Open the home in a new process, and take a plan over with its original settings."""
    looked = open_existing(settings_for())
    plan = need(await looked.store.read(lambda tx: tx.get(Plan, plan_id)), "the plan")
    await looked.store.close()
    settings = settings_for(flags={"parallel": plan.policy.parallel})
    home = open_existing(settings)
    log_to(home.root)
    try:
        with submitting(home) as submitter:
            plan = await taken_over(home, plan, submitter)
            home.membership.attend(plan.project_id)
            at = Session(home=home, settings=settings, env=environment())
            yield TakenPlan(at=at, plan=plan, submitter=submitter)
    finally:
        await home.store.close()
