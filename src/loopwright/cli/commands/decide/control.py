"""What a person may ask of a plan or a task: each is a command in the rows, carried out by whoever works there."""

import asyncio
import os
import sys
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final

from cyclopts import Parameter
from rich.markup import escape

from loopwright.adapters.machine.host import host_id, new_id
from loopwright.app import Home
from loopwright.cli.foreground import Foreground, is_worked_on
from loopwright.cli.screens.command_effects import print_effect
from loopwright.cli.screens.follow import Display
from loopwright.cli.shell.cost_flags import NO_COST_FLAGS, CostFlags
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json, warn
from loopwright.config.resolve import Settings
from loopwright.core.policy.budget import CAPS
from loopwright.core.policy.escalations import RETRY, is_given_up, meaning
from loopwright.core.rows.model import Command, CommandState, Loop, Plan, Run, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.errors import Held, NotFound
from loopwright.core.values.ids import short_id
from loopwright.core.values.shell_hints import to_type
from loopwright.core.values.states import LoopState
from loopwright.engine.people import commands
from loopwright.engine.rows.moves import need
from loopwright.engine.rows.projects import recent_plans
from loopwright.engine.views.question_views import find_question
from loopwright.engine.views.views import live_workers
from loopwright.ports import Tx
from loopwright.services.homes.context import actor, look_settings, open_existing, settings_for
from loopwright.services.homes.log import log_to
from loopwright.services.homes.read_only_home import find_here, nothing_named, project_here
from loopwright.services.runs.cost_check import check_another_try, check_new_limits

_PATIENCE_S = 60.0
_TRIES_AGAIN: Final = frozenset({"retry", "reject"})
"""Commands after which a task that was settled has an agent again."""


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
    return asyncio.run(control("pause", plan, {"now": now}, as_json=json))


def stop(plan: str | None = None, /, *, json: bool = False) -> int:
    """Stop a plan now: running agents are interrupted, all work is kept.

    Parameters
    ----------
    plan
        Which plan (default: the newest of this repository).
    json
        Print the answer as JSON.
    """
    return asyncio.run(control("stop", plan, {}, as_json=json))


def cancel(target: str, /, *, yes: bool = False, json: bool = False) -> int:
    """Give up a task or a plan for good; what landed stays, every attempt's work stays pinned.

    Parameters
    ----------
    target
        A plan or a task.
    yes
        Do not ask. Without a terminal, and with --json, nobody is asked.
    json
        Print the answer as JSON.
    """
    asks = not yes and not json and sys.stdin.isatty() and os.isatty(1)
    return asyncio.run(_cancel(target, asks=asks, as_json=json))


async def _cancel(target: str, *, asks: bool, as_json: bool) -> int:
    if asks:
        home = open_existing(look_settings())
        try:
            row = await home.store.read(lambda tx: find_target(tx, target, "cancel"))
        finally:
            await home.store.close()
        if not _agreed(row):
            console().print("nothing was changed")
            return ExitCode.UNFINISHED
    return await control("cancel", target, {}, as_json=as_json)


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
    """Give a failed or cancelled task another attempt, and carry the plan on.

    Parameters
    ----------
    task
        Which task.
    agent
        Let another agent try.
    model
        Let another model try.
    allow
        A file that judges the work, such as an existing test, and that it may change; can be given several times.
    json
        Print the answer as JSON.
    """
    if agent is not None:
        from loopwright.services.runs.preflight import check_agent

        check_agent(agent, model, look_settings())
    arguments = {"note": note, "agent": agent, "model": model, "allow": list(allow)}
    return asyncio.run(control("retry", task, arguments, as_json=json, carry_on=True))


def resume(
    plan: str | None = None,
    /,
    *,
    no_wait: Annotated[bool, Parameter(negative="")] = False,
    costs: CostFlags = NO_COST_FLAGS,
    json: bool = False,
) -> int:
    """Go on with a paused or stopped plan, here in the foreground unless a worker is there.

    Parameters
    ----------
    plan
        Which plan (default: the newest of this repository).
    no_wait
        Pause, and say why, rather than wait for an account that is used up or locked, or for the next day.
    json
        Print the answer as JSON.
    """
    flags = costs.given()
    policy = settings_for(flags=flags).policy() if flags else None
    arguments = {key: getattr(policy, key) for key in flags}
    if no_wait:
        arguments["wait_for_limits"] = False
    return asyncio.run(control("resume", plan, arguments, as_json=json, carry_on=True))


def reverify(plan: str | None = None, /, *, json: bool = False) -> int:
    """Run the complete gate of a failed plan once more, or of one that only cancelled tasks hold up.

    Parameters
    ----------
    plan
        Which plan (default: the newest of this repository).
    json
        Print the answer as JSON.
    """
    return asyncio.run(control("reverify", plan, {}, as_json=json, carry_on=True))


async def control_question(question: str, arguments: dict[str, Any], *, as_json: bool) -> int:
    """Send an answer and say what became of it."""
    home = open_existing(look_settings())
    log_to(home.root)
    try:
        row = await home.store.read(lambda tx: find_question(tx, question))
        await _refuse_another_try(home, row, str(arguments.get("answer") or ""))
        answer = await ask(home, "answer", row.id, arguments)
        loop = await home.store.read(lambda tx: tx.get(Loop, row.loop_id))
        # What was left as it is, or cancelled, may have left nothing to go on with.
        rests = is_given_up(row.kind, row.key) and loop is not None and loop.state is not LoopState.RUNNING
        worked = rests or await is_worked_on(home, row.project_id)
        if as_json:
            print_json({"command": answer, "exit_code": 0})
            return ExitCode.VERIFIED
        console().print(escape(answer.result))
        print_effect("answer")
        if not worked:
            console().print(f"no worker is running: `loopwright resume {short_id(row.plan_id)}` goes on")
        return ExitCode.VERIFIED
    finally:
        await home.store.close()


async def _refuse_another_try(home: Home, question: Question, answer: str) -> None:
    """Refuse to try a task again by an answer where `retry` would refuse it."""
    if not is_given_up(question.kind, question.key) or (meaning(answer) or ("", ""))[0] != RETRY:
        return
    from loopwright.services.runs.source_changes import refuse_older_checks

    task = await home.store.read(lambda tx: tx.get(Task, question.task_id))
    if task is not None:
        await refuse_older_checks(home.store, task)
        await _check_agent_of_try(home, look_settings(), task, {})


async def _check_agent_of_try(
    home: Home, settings: Settings, task: Task, arguments: Mapping[str, Any]
) -> tuple[str, ...]:
    """Refuse another try where `run` would refuse its agent; of a new one, say what nothing keeps it from."""
    from loopwright.services.runs.preflight import keeping

    plan = need(await home.store.read(lambda tx: tx.get(Plan, task.plan_id)), "the plan")
    agent = arguments.get("agent") or task.agent
    check_another_try(plan, agent, arguments.get("model") or task.model)
    notes = keeping(settings, plan.policy, [agent or plan.policy.agent], place="as the plan began")
    return notes if arguments.get("agent") else ()


async def control(
    verb: str, target: str | None, arguments: dict[str, Any], *, as_json: bool, carry_on: bool = False
) -> int:
    """Send a command about a plan or a task, say what became of it, and perhaps carry the plan on."""
    settings = look_settings()
    home = open_existing(settings)
    log_to(home.root)
    try:
        row = await home.store.read(lambda tx: find_target(tx, target, verb))
        if verb == "retry" and isinstance(row, Task):
            from loopwright.services.runs.source_changes import refuse_older_checks

            await refuse_older_checks(home.store, row)
        if verb in _TRIES_AGAIN and isinstance(row, Task):
            for note in await _check_agent_of_try(home, settings, row, arguments):
                warn(note, stderr=as_json)
        limits = {name: arguments[name] for name in CAPS if name in arguments}
        if limits and isinstance(row, Plan):
            about = row
            await home.store.read(lambda tx: check_new_limits(tx, about, limits))
        answer = await ask(home, verb, row.id, arguments)
        plan_id = row.plan_id if isinstance(row, Task) else row.id
        plan = need(await home.store.read(lambda tx: tx.get(Plan, plan_id)), "the plan")
        if not as_json:
            console().print(escape(answer.result))
            print_effect(_effect_of(verb, row, arguments))
        if carry_on and not await is_worked_on(home, plan.project_id):
            return await _carry_on(home, settings, plan, as_json=as_json)
        if not await someone_works(home):
            await let_agents_stop(home, settings)
        if as_json:
            print_json({"command": answer, "exit_code": 0})
        return ExitCode.VERIFIED
    finally:
        await home.store.close()


def _effect_of(verb: str, row: Plan | Task, arguments: Mapping[str, Any]) -> str:
    """Return the line of the table of effects that a command prints."""
    if verb == "pause" and arguments.get("now"):
        return "pause --now"
    if verb == "cancel":
        return "cancel TASK" if isinstance(row, Task) else "cancel PLAN"
    return verb.replace("_", "-")


def find_target(tx: Tx, text: str | None, verb: str) -> Plan | Task:
    """Find the plan or task that a command is about."""
    if text is None:
        project = project_here()
        if project is None:
            raise nothing_named(verb)
        plans = recent_plans(tx, project_path=project, limit=1)
        if not plans:
            raise NotFound(
                "there is no plan of this repository yet",
                hint=f"`loopwright run plan.yaml`, or `{to_type(verb, 'PLAN')}` for one of another repository",
            )
        return plans[0]
    fits = partial(commands.may_retry, tx) if verb == "retry" else None
    row = find_here(tx, text, fits)
    if isinstance(row, Run):
        raise NotFound(f"{text} is a run", hint="name a plan or a task")
    return row


async def ask(home: Home, verb: str, target: str, arguments: dict[str, Any]) -> Command:
    """Write a command down and wait for its answer, given here if nobody works; raise it when it is a refusal."""
    command = await home.store.transact(
        "command.request",
        lambda tx: commands.request(tx, new_id, actor=actor(), verb=verb, target=target, arguments=arguments),
    )
    try:
        # What runs a gate takes as long as that does.
        async with asyncio.timeout(None if verb in commands.BY_GIT else _PATIENCE_S):
            return await _answered(home, command)
    except TimeoutError as late:
        raise Held(
            f"whoever works in this home has not answered `{verb}` within {_PATIENCE_S:g} s",
            hint="it is written down, and carried out as soon as that process goes on; `loopwright status` shows it",
        ) from late


async def _answered(home: Home, command: Command) -> Command:
    while True:
        row = await home.store.read(lambda tx: tx.get(Command, command.id))
        if row is not None and row.state is CommandState.REFUSED:
            raise commands.refusal(row)
        if row is not None and row.state is not CommandState.PENDING:
            return row
        if not await someone_works(home) and home.membership.acquire(
            {"pid": os.getpid(), "command": command.verb}
        ):
            try:
                await _apply_here(home)
            finally:
                home.membership.release()
            continue
        await home.store.changed(1.0)


async def _apply_here(home: Home) -> None:
    """Carry out everything that waits, in its order: also what somebody asked for who was killed."""
    from loopwright.engine.worker.worker import apply_command

    for command in await home.store.read(commands.pending):
        if command.verb in commands.BY_GIT:
            await _decide_here(home, command)
        else:
            await apply_command(home.store, new_id, command)


async def _decide_here(home: Home, command: Command) -> None:
    from loopwright.app import make_world
    from loopwright.engine.attempt.landing_line import LandingLines
    from loopwright.engine.plans.rollback import carry_out

    settings = look_settings()
    world = make_world(home, settings, os.environ, slots=settings.values.parallel)
    try:
        await carry_out(world, LandingLines(), command)
    finally:
        world.keepers.close()


async def someone_works(home: Home) -> bool:
    """Say whether a worker is there."""
    if home.membership.exclusive:
        return home.membership.holder() is not None
    return bool(await home.store.read(live_workers))


async def let_agents_stop(home: Home, settings: Settings) -> None:
    """Agents outlive their worker: when none is there, end what was asked to end ourselves."""
    from loopwright.app import make_worker, make_world
    from loopwright.engine.attempt.cleanup import end_cancelled_gates
    from loopwright.engine.worker.reconcile import to_be_ended

    world = make_world(home, settings, os.environ, slots=settings.values.parallel)
    await end_cancelled_gates(world)
    # What runs on other machines ends when one of their workers sees it; waiting for a dead one would never end.
    asked = partial(to_be_ended, host_id=None if home.membership.exclusive else host_id(home.root))
    if not await home.store.read(asked) or not home.membership.acquire(
        {"pid": os.getpid(), "command": "stop"}
    ):
        return
    worker = make_worker(world, only_end=True)

    async def finished() -> bool:
        mine = [worker.lease.worker.id]
        return not await home.store.read(asked) and not await world.engine.in_flight(mine)

    try:
        await worker.run(finished)
    finally:
        home.membership.release()


async def work_here(home: Home, settings: Settings, plan: Plan, *, quiet: bool) -> ExitCode:
    """Work on a plan in the foreground until it ends or waits; return the exit code."""
    return await _foreground(home, settings, plan, quiet=quiet).run()


def _foreground(home: Home, settings: Settings, plan: Plan, *, quiet: bool) -> Foreground:
    display = Display(footer="Ctrl-C pauses cleanly; closing this terminal does the same.", quiet=quiet)
    return Foreground(home, settings, plan, actor=actor(), display=display)


async def _carry_on(home: Home, settings: Settings, plan: Plan, *, as_json: bool) -> int:
    from loopwright.cli.screens.end import print_end

    foreground = _foreground(home, settings, plan, quiet=as_json)
    code = await foreground.run()
    return await print_end(home, plan.id, code, as_json=as_json) if as_json or not foreground.left else code
