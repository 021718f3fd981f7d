"""`pause`, `resume`, `stop`, `cancel`, `retry`, `reverify`: send the command and print its result."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape

from loopwright.cli.foreground import Foreground
from loopwright.cli.screens.command_effects import print_effect
from loopwright.cli.screens.end import print_end
from loopwright.cli.screens.follow import Display
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json, warn
from loopwright.cli.shell.parameters import NO_COST_FLAGS, CostFlags
from loopwright.core.values.ids import short_id
from loopwright.services.control import decisions
from loopwright.services.control.decisions import Decision, Told
from loopwright.services.homes.context import actor
from loopwright.services.homes.session import Session, session
from loopwright.services.views.events import Plan, Task


def pause(plan: str | None = None, /, *, now: bool = False, json: bool = False) -> int:
    """Start nothing more; running agents may finish, or are interrupted with --now.

    Parameters
    ----------
    plan
        Which plan (default: the newest of this repository).
    now
        Interrupt running agents; their work is kept.
    json
        Print the answer as JSON.
    """
    return decide(lambda at, told: decisions.pause(at, plan, now=now, told=told), as_json=json)


def stop(plan: str | None = None, /, *, json: bool = False) -> int:
    """Stop a plan now: running agents are interrupted, all work is kept.

    Parameters
    ----------
    plan
        Which plan (default: the newest of this repository).
    json
        Print the answer as JSON.
    """
    return decide(lambda at, told: decisions.stop(at, plan, told=told), as_json=json)


def cancel(target: str, /, *, chain: bool = False, yes: bool = False, json: bool = False) -> int:
    """Give up a task or a plan for good; what landed stays, every attempt's work stays pinned.

    Parameters
    ----------
    target
        A plan or a task.
    chain
        Also give up every task that waits for this one.
    yes
        Do not ask. Without a terminal, and with --json, Loopwright never asks.
    json
        Print the answer as JSON.
    """
    asks = not yes and not json and sys.stdin.isatty() and os.isatty(1)
    return asyncio.run(_cancel(target, chain=chain, asks=asks, as_json=json))


async def _cancel(target: str, *, chain: bool, asks: bool, as_json: bool) -> int:
    async with session() as at:
        if asks and not _agreed(await decisions.to_cancel(at, target)):
            console().print("nothing was changed")
            return ExitCode.UNFINISHED
        return await decided(
            at, lambda at, told: decisions.cancel(at, target, chain=chain, told=told), as_json=as_json
        )


def _agreed(row: Plan | Task) -> bool:
    what = f"the task {row.key}" if isinstance(row, Task) else f"the plan {row.title}"
    console().print(f"Given up for good: {escape(what)}  ({short_id(row.id)})")
    return input("Do it? [y/N] ").strip().lower() in ("y", "yes")


def retry(
    task: str,
    /,
    *,
    note: Annotated[str | None, Parameter(help="What to tell the agent.")] = None,
    agent: str | None = None,
    model: str | None = None,
    allow: tuple[str, ...] = (),
    json: bool = False,
) -> int:
    """Give a failed or cancelled task another attempt, and continue the plan.

    Parameters
    ----------
    task
        Which task.
    agent
        Let another agent try.
    model
        Let another model try.
    allow
        A judging file that the work may change, such as an existing test. Give it once for each file.
    json
        Print the answer as JSON.
    """
    return decide(
        lambda at, told: decisions.retry(
            at, task, note=note, agent=agent, model=model, allow=allow, told=told
        ),
        as_json=json,
    )


def resume(
    plan: str | None = None,
    /,
    *,
    no_wait: Annotated[bool, Parameter(negative="")] = False,
    costs: CostFlags = NO_COST_FLAGS,
    json: bool = False,
) -> int:
    """Resume a paused or stopped plan, in the foreground unless a worker is running.

    Parameters
    ----------
    plan
        Which plan (default: the newest of this repository).
    no_wait
        Pause instead of waiting for a used-up or locked account, or for the next day.
    json
        Print the answer as JSON.
    """
    limits = costs.given()
    return decide(
        lambda at, told: decisions.resume(at, plan, limits=limits, no_wait=no_wait, told=told), as_json=json
    )


def reverify(plan: str | None = None, /, *, partial: bool = False, json: bool = False) -> int:
    """Run the complete gate of a failed plan once more, or of one that only cancelled tasks hold up.

    Parameters
    ----------
    plan
        Which plan (default: the newest of this repository).
    partial
        Give up the tasks that failed, and verify what landed.
    json
        Print the answer as JSON.
    """
    return decide(lambda at, told: decisions.reverify(at, plan, partial=partial, told=told), as_json=json)


def decide(decision: Callable[[Session, Told], Awaitable[Decision]], *, as_json: bool) -> int:
    """Send a decision, print its result, and drive the plan here if no worker does."""

    async def run() -> int:
        async with session() as at:
            return await decided(at, decision, as_json=as_json)

    return asyncio.run(run())


async def decided(
    at: Session, decision: Callable[[Session, Told], Awaitable[Decision]], *, as_json: bool
) -> int:
    """Do as `decide` in an open home."""

    def told(made: Decision) -> None:
        for note in made.notes:
            warn(note, stderr=as_json)
        if not as_json:
            console().print(escape(made.command.result))
            print_effect(_effect_of(made))

    made = await decision(at, told)
    if made.needs_worker:
        return await _carry_on(at, made.plan, as_json=as_json)
    if as_json:
        print_json({"command": made.command, "exit_code": 0})
    return ExitCode.VERIFIED


def _effect_of(made: Decision) -> str:
    """Return the line of the table of effects that a command prints."""
    verb = made.command.verb
    if verb == "pause" and made.command.arguments.get("now"):
        return "pause --now"
    if verb == "cancel":
        return "cancel TASK" if isinstance(made.about, Task) else "cancel PLAN"
    return verb.replace("_", "-")


async def work_here(at: Session, plan: Plan, *, quiet: bool) -> ExitCode:
    """Work on a plan in the foreground until it ends or waits; return the exit code."""
    return await _foreground(at, plan, quiet=quiet).run()


def _foreground(at: Session, plan: Plan, *, quiet: bool) -> Foreground:
    display = Display(
        footer="Ctrl-C pauses the plan and keeps all work; so does closing this terminal.", quiet=quiet
    )
    return Foreground(at, plan, actor=actor(), display=display)


async def _carry_on(at: Session, plan: Plan, *, as_json: bool) -> int:
    foreground = _foreground(at, plan, quiet=as_json)
    code = await foreground.run()
    return await print_end(at, plan.id, code, as_json=as_json) if as_json or not foreground.left else code
