"""`reject` and `rollback`: send work back, or take it out of the plan branch."""

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape

from loopwright.cli.commands.decide.control import decide, decided
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console
from loopwright.core.values.errors import Refused
from loopwright.core.values.wording import counted
from loopwright.services.control import decisions
from loopwright.services.homes.session import session

_AT = 'What is wrong with one line: --at app.py:12 "this must not be public"; give it once for each line.'


def reject(
    task: str,
    /,
    *,
    note: Annotated[str | None, Parameter(help="What is wrong with it.")] = None,
    at: Annotated[tuple[tuple[str, str], ...], Parameter(help=_AT)] = (),
    json: bool = False,
) -> int:
    """Send a task's work back: another attempt starts with what you say about it.

    What has landed already is taken out of the plan branch first, with everything that builds on it.

    Parameters
    ----------
    task
        Which task.
    json
        Print the answer as JSON.
    """
    comments = at
    return decide(
        lambda at, told: decisions.reject(at, task, note=note, comments=comments, told=told), as_json=json
    )


def rollback(
    target: str,
    /,
    *,
    to: Annotated[str | None, Parameter(help="Keep the plan up to this task or commit.")] = None,
    yes: bool = False,
    json: bool = False,
) -> int:
    """Take a landed task out of the plan branch again, with everything that builds on it.

    All of it or nothing: the branch gets one more commit, after the checks have passed without that work.

    Parameters
    ----------
    target
        A task; or a plan, with --to.
    yes
        Do not ask.
    json
        Print the answer as JSON; needs --yes.
    """
    if json and not yes:
        raise Refused("--json cannot ask", code="confirmation_needed", hint="add --yes")
    return asyncio.run(_rollback(target, to, yes=yes, as_json=json))


async def _rollback(target: str, to: str | None, *, yes: bool, as_json: bool) -> int:
    async with session() as at:
        if not yes and not _agreed(await decisions.to_roll_back(at, target, to=to)):
            console().print("nothing was changed")
            return ExitCode.UNFINISHED
        return await decided(
            at, lambda at, told: decisions.rollback(at, target, to=to, told=told), as_json=as_json
        )


def _agreed(keys: Sequence[str]) -> bool:
    """Ask on the terminal; refuse if there is none."""
    what = f"{counted(len(keys), 'task')} ({', '.join(keys[:8])}{' …' if len(keys) > 8 else ''})"
    if not (sys.stdin.isatty() and os.isatty(1)):
        raise Refused(
            f"{what} would be taken back, and there is no terminal to ask at",
            code="confirmation_needed",
            hint="--yes does it without asking",
        )
    console().print(f"Taken out of the plan branch and queued again: {escape(what)}")
    return input("Do it? [y/N] ").strip().lower() in ("y", "yes")
