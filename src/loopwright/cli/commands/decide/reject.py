"""`reject` and `rollback`: what a person decides about work that is done."""

import asyncio
import os
import sys
from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape

from loopwright.adapters.machine.host import new_id
from loopwright.app import Home, repositories
from loopwright.cli.commands.decide.control import control, find_target
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console
from loopwright.core.policy.rejections import parse_comment
from loopwright.core.rows.model import Command
from loopwright.core.values.errors import Refused, UserError
from loopwright.core.values.ids import Kind
from loopwright.core.values.wording import counted
from loopwright.engine.people.taking_back import Asked, check, chosen, load, undoes
from loopwright.ports import Tx
from loopwright.services.homes.context import actor, look_settings, open_existing

_AT = 'What is wrong with one line: --at app.py:12 "this must not be public"; can be given several times.'


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
    comments = [parse_comment(place, text) for place, text in at]
    if not (note or "").strip() and not comments:
        raise UserError("nothing is said about what is wrong", hint='--note "…" or --at FILE:LINE "…"')
    arguments = {"note": note or "", "comments": comments}
    return asyncio.run(control("reject", task, arguments, as_json=json, carry_on=True))


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
        raise UserError("--json cannot ask", hint="add --yes")
    return asyncio.run(_rollback(target, {"to": to} if to else {}, yes=yes, as_json=json))


async def _rollback(target: str, arguments: dict[str, str], *, yes: bool, as_json: bool) -> int:
    if not yes:
        home = open_existing(look_settings())
        try:
            keys = await _what_goes(home, target, arguments)
        finally:
            await home.store.close()
        if not _agreed(keys):
            console().print("nothing was changed")
            return ExitCode.UNFINISHED
    return await control("rollback", target, arguments, as_json=as_json)


async def _what_goes(home: Home, target: str, arguments: dict[str, str]) -> list[str]:
    """Return the tasks whose work would go; raise what speaks against it."""
    row = await home.store.read(lambda tx: find_target(tx, target, "rollback"))

    def look(tx: Tx) -> tuple[Command, Asked]:
        drawn = Command(
            id=new_id(Kind.COMMAND),
            actor=actor(),
            verb="rollback",
            target=row.id,
            arguments=arguments,
            created_at=tx.now(),
        )
        asked = load(tx, drawn)
        check(tx, drawn, asked)
        return drawn, asked

    drawn, asked = await home.store.read(look)
    repository = repositories(home)(asked.project)
    tip = await repository.tip(asked.plan.branch)
    landings = chosen(asked, drawn, await repository.steps(tip, since=asked.plan.base_sha))
    return [task.key for task in undoes(asked, landings)]


def _agreed(keys: list[str]) -> bool:
    """Ask the person at the terminal; without one, nothing is taken back unasked."""
    what = f"{counted(len(keys), 'task')} ({', '.join(keys[:8])}{' …' if len(keys) > 8 else ''})"
    if not (sys.stdin.isatty() and os.isatty(1)):
        raise Refused(
            f"{what} would be taken back, and nobody is here to ask", hint="--yes does it without asking"
        )
    console().print(f"Taken out of the plan branch and queued again: {escape(what)}")
    return input("Do it? [y/N] ").strip().lower() in ("y", "yes")
