"""`take-over` and `reviewed`: do a task by hand, or mark landed work as reviewed."""

import asyncio
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape

from loopwright.cli.commands.decide.control import decide, work_here
from loopwright.cli.screens.command_effects import print_effect
from loopwright.cli.screens.end import closing
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.errors import UserError
from loopwright.core.values.states import LIVE_ATTEMPT, AttemptState, LoopState
from loopwright.core.values.wording import counted, to_type
from loopwright.services.control import decisions, handover
from loopwright.services.control.handover import Checkout, HandedBack, named_files
from loopwright.services.homes.session import Session, session
from loopwright.services.views.events import Attempt
from loopwright.services.views.plans import view_with_news


def take_over(
    task: str,
    directory: Path | None = None,
    /,
    *,
    done: bool = False,
    include: Annotated[bool, Parameter(name="--include-uncommitted")] = False,
    drop: bool = False,
    json: bool = False,
) -> int:
    """Do a task yourself: you get a checkout with the last work on it, and no agent touches the task.

    Parameters
    ----------
    task
        Which task.
    directory
        Where (default: beside the repository, named after the task).
    done
        Hand your work in: it goes through the same checks as an agent's. It lands, or stays with you.
    include
        With --done: also take uncommitted changes.
    drop
        Give the task back to the agents; your checkout stays as it is.
    json
        Print the answer as JSON.
    """
    if done and drop:
        raise UserError(
            "--done and --drop exclude each other",
            code="flags_conflict",
            hint="--done hands your work in, --drop does not",
        )
    if include and not done:
        raise UserError(
            "--include-uncommitted is only for --done",
            code="flags_conflict",
            hint=f"`{to_type('take-over', task, done=True)}`",
        )
    if directory is not None and (done or drop):
        raise UserError(
            "a folder is only for taking a task over", code="flags_conflict", hint="leave the folder out"
        )
    if drop:
        return decide(lambda at, told: decisions.give_back(at, task, told=told), as_json=json)
    if done:
        return asyncio.run(_hand_back(task, include=include, as_json=json))
    return asyncio.run(_take_over(task, directory, as_json=json))


def hand_back(
    task: str,
    /,
    *,
    include: Annotated[bool, Parameter(name="--include-uncommitted")] = False,
    drop: bool = False,
    json: bool = False,
) -> int:
    """Do what `take-over --done` does.

    Parameters
    ----------
    task
        Which task.
    include
        Also take uncommitted changes.
    drop
        Give the task back to the agents; your checkout stays as it is.
    json
        Print the answer as JSON.
    """
    return take_over(task, done=not drop, include=include, drop=drop, json=json)


def reviewed(target: str, /, *, json: bool = False) -> int:
    """Mark what a task, or every task of a plan, landed as reviewed by you.

    Parameters
    ----------
    target
        A task or a plan.
    json
        Print the answer as JSON.
    """
    return decide(lambda at, told: decisions.reviewed(at, target, told=told), as_json=json)


async def _take_over(task: str, directory: Path | None, *, as_json: bool) -> int:
    async with session() as at:
        taken = await handover.take_over(at, task, directory)
    if as_json:
        told = {"directory": taken.directory, "branch": taken.branch, "start": taken.start}
        print_json({"command": taken.command, **told, "exit_code": 0})
        return ExitCode.VERIFIED
    out = console()
    out.print(escape(taken.command.result))
    print_effect("take-over")
    out.print(f"work here:  cd {escape(shlex.quote(taken.directory))}")
    begun = "the plan branch" if taken.after_attempt is None else f"attempt {taken.after_attempt}"
    out.print(f"[dim]it starts from {begun} ({taken.start[:7]})[/]")
    out.print(f"then:       {escape(to_type('take-over', taken.key, done=True))}")
    return ExitCode.VERIFIED


async def _hand_back(task: str, *, include: bool, as_json: bool) -> int:
    async with session() as at:
        if not include and sys.stdin.isatty() and os.isatty(1):
            checkout = await handover.checkout_of(at, task)
            if checkout.uncommitted and not _agreed(checkout):
                console().print("nothing was handed back")
                return ExitCode.UNFINISHED
            include = bool(checkout.uncommitted)
        handed = await handover.hand_back(at, task, include_uncommitted=include)
        if not as_json:
            console().print(escape(handed.command.result))
            print_effect("take-over --done")
        if handed.needs_worker:
            await work_here(at, handed.plan, quiet=as_json)
        code = _told(handed, await handover.checked(at, handed), as_json=as_json)
        if code is ExitCode.VERIFIED and not as_json:
            left = await handover.left_checkout(at, handed)
            console().print(f"landed.{escape(_how_to_delete(left))}")
            await _close(at, handed.plan.id)
        return code


def _agreed(checkout: Checkout) -> bool:
    """Ask at the terminal whether to take what is in no commit."""
    console().print(f"In no commit: {escape(named_files(checkout.uncommitted))}")
    return input("Hand that back as well? [y/N] ").strip().lower() in ("y", "yes")


def _how_to_delete(left: Checkout | None) -> str:
    """Return the command that deletes a checkout; git wants --force for one with files that are in no commit."""
    if left is None:
        return ""
    where = shlex.quote(str(left.directory))
    remove = f"git worktree remove {'--force ' * bool(left.uncommitted)}{where}"
    files = counted(len(left.uncommitted), "file")
    more = f", with {files} that its branch does not have" if left.uncommitted else ""
    return f" Your checkout stays; `{remove}` deletes it{more}"


async def _close(at: Session, plan_id: str) -> None:
    """End like `run` where the work that landed was the last that its plan waited for."""
    view = await view_with_news(at, plan_id)
    if view.loop_state != LoopState.RUNNING.value:
        closing(view, as_json=False)


def _told(handed: HandedBack, attempt: Attempt, *, as_json: bool) -> ExitCode:
    """Print what the checks said; the exit code says whether the work landed."""
    landed = attempt.state is AttemptState.LANDED
    waits = attempt.state in LIVE_ATTEMPT
    code = ExitCode.VERIFIED if landed else ExitCode.UNFINISHED if waits else ExitCode.NOT_VERIFIED
    if as_json:
        facts = {"attempt": attempt.n, "state": attempt.state.value, "detail": attempt.detail}
        print_json({"command": handed.command, **facts, "exit_code": int(code)})
        return code
    out = console()
    if not landed and not waits:
        out.print(f"not accepted: {escape(attempt.detail)}")
        where = escape(str(handed.directory))
        out.print(f"it is still yours, in {where}; more: {escape(to_type('status', handed.key))}")
    return code
