"""Executes one plan in the background: `run --detach` starts this as a program of its own, which needs no terminal."""

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopwright.adapters.home.membership import ALL
from loopwright.app import Home
from loopwright.cli.foreground import Foreground
from loopwright.cli.screens.follow import Display
from loopwright.core.rows.model import Plan
from loopwright.core.values.errors import CannotRun
from loopwright.engine.rows.moves import need
from loopwright.services.control.sending import is_worked_on
from loopwright.services.driving.submitters import submitting, taken_over
from loopwright.services.homes.context import actor, open_existing, settings_for
from loopwright.services.homes.log import log_to

FOLDER: Final = "detached"
_READY: Final = b"ready"
_START_S: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Detached:
    """Who executes a plan after `run --detach`."""

    pid: int | None
    """None for a worker that stands by, or that may be on another machine."""
    log: Path | None = None
    """Where a process that was started for it writes; None for a worker that was there already."""


async def hand_over(home: Home, plan: Plan) -> Detached:
    """Leave a plan to the worker that serves all projects, or start a process for it."""
    holder = home.membership.holder() or {}
    if holder.get("serves") == ALL:
        return Detached(pid=holder.get("pid"))
    standing_by = home.membership.attended(ALL)
    if standing_by or (not home.membership.exclusive and await is_worked_on(home, plan.project_id)):
        return Detached(pid=None)
    log = home.root / FOLDER / f"{plan.id}.log"
    log.parent.mkdir(mode=0o700, exist_ok=True)
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", __name__, plan.id, str(log)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_START_S,
    )
    if done.returncode != 0:
        said = [*(log.read_text(errors="replace").splitlines() if log.exists() else ()), done.stderr.strip()]
        why = next(filter(None, reversed(said)), "it said nothing")
        raise CannotRun(f"the background process did not start: {why}; its log is {log}")
    return Detached(pid=int(done.stdout), log=log)


def main(plan_id: str, log: str) -> int:
    """Leave the terminal, and execute the plan until it rests; return in the first process once that works."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid != 0:
        os.close(writing)
        with os.fdopen(reading, "rb") as heard:
            ready = heard.read() == _READY
        sys.stdout.write(f"{pid}\n")
        return 0 if ready else 1
    os.close(reading)
    os.setsid()
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    for fd in (1, 2):
        os.dup2(file, fd)
    # For those who ask what process this is.
    sys.argv = ["loopwright", "run", "--detach"]
    return asyncio.run(_execute(plan_id, writing))


async def _execute(plan_id: str, ready: int) -> int:
    from loopwright.cli.screens.end import print_end

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
            os.write(ready, _READY)
            os.close(ready)
            foreground = Foreground(
                home, settings, plan, actor=actor(), display=Display(), submitter=submitter
            )
            code = await foreground.run()
            return await print_end(home, plan.id, code, as_json=False)
    finally:
        await home.store.close()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
