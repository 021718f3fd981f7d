"""`accept`: move a plan's work into the base branch, or open a pull request."""

import asyncio
import re
from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape

from loopwright.cli.screens.command_effects import print_effect
from loopwright.cli.screens.plan_table import print_finish
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.errors import UserError
from loopwright.services.control import finishing
from loopwright.services.homes.session import session
from loopwright.services.views.events import Command


def accept(
    plan: str | None = None,
    /,
    *,
    tasks: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    finish: str | None = None,
    json: bool = False,
) -> int:
    """Accept a plan's work: into the base branch or into a pull request, as its setting `finish` says.

    A whole plan must be VERIFIED. With --tasks only those tasks move. Loopwright builds them on the base again and runs
    the complete gate on them together. Nothing moves if a task needs one that is not named, if they conflict, or if a
    check fails. Your checkout changes only if it has the base branch and is clean.

    Parameters
    ----------
    plan
        Which plan (default: the newest of this repository).
    tasks
        Only these tasks, by name, separated by commas or spaces.
    finish
        fast-forward, squash or pull-request, instead of the plan's setting.
    json
        Print the answer as JSON.
    """
    keys = [key for word in tasks for key in re.split(r"[,\s]+", word) if key]
    if tasks and not keys:
        raise UserError(
            "--tasks names no task",
            code="no_task_named",
            hint="name some, or leave --tasks out for the whole plan",
        )
    return asyncio.run(_accept(plan, keys, finish, as_json=json))


async def _accept(plan: str | None, keys: list[str], how: str | None, *, as_json: bool) -> int:
    def told(command: Command) -> None:
        if not as_json:
            console().print(escape(command.result))
            print_effect("accept")

    async with session() as at:
        done = await finishing.accept(at, plan, tasks=keys, finish=how, told=told)
    code = ExitCode.VERIFIED if done.is_done else ExitCode.UNFINISHED
    if as_json:
        print_json({"command": done.command, "finish": done.finish, "exit_code": int(code)})
    else:
        print_finish(done.finish)
    return code
