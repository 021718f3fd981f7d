"""`accept`, and what `run` asks and tells about the end of a plan."""

import asyncio
import os
import re
from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape

from loopwright.adapters.git import GitRepository
from loopwright.app import Home, forge, make_worker, make_world
from loopwright.cli.screens.command_effects import print_effect
from loopwright.cli.screens.plan_table import print_finish
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.config.resolve import Settings
from loopwright.core.policy.finishing import LEAVE, PULL_REQUEST
from loopwright.core.rows.model import Finish, Task
from loopwright.core.values.errors import UserError
from loopwright.core.values.states import OPEN_FINISH, FinishState
from loopwright.engine.rows.finishes import FinishView, finish_views
from loopwright.engine.rows.moves import need
from loopwright.ports import Base, Tx
from loopwright.services.homes.context import look_settings, open_existing
from loopwright.services.homes.log import log_to
from loopwright.services.homes.read_only_home import find_plan


def accept(
    plan: str | None = None,
    /,
    *,
    tasks: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    finish: str | None = None,
    json: bool = False,
) -> int:
    """Take a plan's work over: into the base branch or into a pull request, as its setting `finish` says.

    The whole plan goes in when it is VERIFIED. With --tasks only those go in: they are built on the base anew and the
    complete gate runs on them together; nothing is moved when one of them needs a task that is not among them, when
    they conflict, or when a check fails. Your checkout is only touched if it has the base branch and is clean.

    Parameters
    ----------
    plan
        Which plan (default: the newest of this repository).
    tasks
        Only these tasks, by name; several with commas or spaces between them.
    finish
        fast-forward, squash or pull-request, instead of the plan's setting.
    json
        Print the answer as JSON.
    """
    keys = [key for word in tasks for key in re.split(r"[,\s]+", word) if key]
    if tasks and not keys:
        raise UserError("--tasks names no task", hint="name some, or leave --tasks out for the whole plan")
    return asyncio.run(_accept(plan, keys, finish, as_json=json))


async def _accept(text: str | None, keys: list[str], how: str | None, *, as_json: bool) -> int:
    from loopwright.cli.commands.decide.control import ask

    settings = look_settings()
    home = open_existing(settings)
    log_to(home.root)
    try:
        plan = await home.store.read(lambda tx: find_plan(tx, text))
        answer = await ask(home, "accept", plan.id, {"tasks": keys, "finish": how})
        if not as_json:
            console().print(escape(answer.result))
            print_effect("accept")
        begun = await home.store.read(lambda tx: tx.find(Finish, plan_id=plan.id, order_by=("-created_at",)))
        finish = await _until_over(home, settings, begun[0].id)
        (end,) = await home.store.read(lambda tx: _view(tx, finish))
        done = finish.state is FinishState.FINISHED
        code = ExitCode.VERIFIED if done else ExitCode.UNFINISHED
        if as_json:
            print_json({"command": answer, "finish": end, "exit_code": int(code)})
        else:
            print_finish(end)
        return code
    finally:
        await home.store.close()


def _view(tx: Tx, finish: Finish) -> list[FinishView]:
    keys = {task.id: task.key for task in tx.find(Task, plan_id=finish.plan_id)}
    return [one for one in finish_views(tx, finish.plan_id, keys) if one.id == finish.id]


async def _until_over(home: Home, settings: Settings, finish_id: str) -> Finish:
    """Carry an end of a plan out, or wait for the worker that does."""

    async def row() -> Finish:
        return need(await home.store.read(lambda tx: tx.get(Finish, finish_id)), "the finish")

    async def finished() -> bool:
        return (await row()).state not in OPEN_FINISH

    while not await finished():
        if not home.membership.acquire({"pid": os.getpid(), "command": "accept"}):
            await home.store.changed(1.0)
            continue
        world = make_world(home, settings, os.environ, slots=1)
        try:
            await make_worker(world, only_finish=finish_id).run(finished)
        finally:
            home.membership.release()
    return await row()


async def check_finish(settings: Settings, repository: GitRepository, start: Base) -> None:
    """Refuse, before any money is spent, an end that could not be reached."""
    values = settings.values
    if values.finish == LEAVE:
        return
    ends = await repository.ends()
    branch = await ends.base_tip(start.ref)
    if values.finish == PULL_REQUEST:
        address = await ends.remote(values.forge.remote)
        if address is None:
            raise UserError(
                f"finish is pull-request, but there is no git remote {values.forge.remote!r}",
                hint="add it with `git remote add`, or set forge.remote to the one that you mean",
            )
        forge(settings, os.environ, address)
    on_remote = values.finish == PULL_REQUEST and start.ref.startswith(f"{values.forge.remote}/")
    if branch is None and not on_remote:
        raise UserError(
            f"finish is {values.finish}, but the plan would start from {start.ref}, which is no branch",
            hint="check a branch out, give one with --base, or set finish to leave",
        )
    if values.finish_sign and not await ends.can_sign():
        raise UserError(
            "finish_sign is true, but git has no key to sign with",
            hint="git config --global user.signingkey KEY (and gpg.format ssh for an ssh key)",
        )
