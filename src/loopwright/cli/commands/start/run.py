"""`run`: run agents on a plan."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.markup import escape

from loopwright.cli.commands.start.detached import PROGRAM
from loopwright.cli.foreground import Foreground, showing
from loopwright.cli.screens.end import closing, print_end
from loopwright.cli.screens.follow import Display
from loopwright.cli.screens.plan_table import news_lines
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json, warn
from loopwright.cli.shell.parameters import (
    NO_COST_FLAGS,
    NO_ROUND_FLAGS,
    CostFlags,
    FoundPlan,
    RoundFlags,
    SettingsFile,
)
from loopwright.config.settings import settings
from loopwright.core.values.errors import NotFound, Refused, UserError
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import PlanState
from loopwright.core.values.wording import counted, to_type
from loopwright.services.driving.detached import hand_over
from loopwright.services.driving.driver import followed_worker
from loopwright.services.homes.session import Session
from loopwright.services.plans.goal_tracks import Unplanned, unplanned_track
from loopwright.services.plans.planning import is_goal
from loopwright.services.preflight.run_inputs import runs_in_rounds as found_rounds
from loopwright.services.projects.found_work import find_work
from loopwright.services.runs.last_plan import for_finished
from loopwright.services.runs.preparation import (
    Importance,
    NothingToDo,
    Prepared,
    RunRequest,
    Standing,
    Submitted,
    Tell,
    prepare,
    submit,
)
from loopwright.services.runs.unknown_work import UnknownWork
from loopwright.services.views.plans import view_with_news

_MODES = f"What the agent may do by itself: {', '.join(settings()['permission_mode'].kind.schema['enum'])}."

After = Callable[[Session, str], Awaitable[None]]
_SHOWN = 20
"""How many sources a message names."""


def run(
    plan: FoundPlan = None,
    /,
    *,
    agent: str | None = None,
    model: str | None = None,
    parallel: Annotated[int | None, Parameter(alias="-j")] = None,
    max_attempts: int | None = None,
    permission_mode: Annotated[str | None, Parameter(help=_MODES)] = None,
    source: str | None = None,
    base: str | None = None,
    settings_file: SettingsFile = None,
    auto_heal: Annotated[bool | None, Parameter(negative="--no-auto-heal")] = None,
    allow_unverified: Annotated[bool | None, Parameter(negative="--no-allow-unverified")] = None,
    finish: str | None = None,
    qa_mode: str | None = None,
    issue: int | None = None,
    despite: str = "",
    new: bool = False,
    no_check_base: bool = False,
    no_wait: bool = False,
    detach: Annotated[bool, Parameter(negative="")] = False,
    notify: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    yes: Annotated[bool, Parameter(alias="-y")] = False,
    costs: CostFlags = NO_COST_FLAGS,
    rounds: RoundFlags = NO_ROUND_FLAGS,
    json: bool = False,
) -> int:
    """Run agents on the tasks of a plan until the project's own checks pass.

    Parameters
    ----------
    plan
        The file or folder with the work, in any supported format; or a goal in words, which an agent plans first.
        Without one, Loopwright looks for work at the usual places and asks before it runs any.
    agent
        Which agent does the work (default: the setting `agent`, which is claude unless you set it).
    model
        The model that the agent uses.
    parallel
        How many tasks to work on at once.
    max_attempts
        How often to try a task before asking you.
    source
        The kind of its format, if its name does not show it.
    base
        Commit or branch to start from (default: what is checked out).
    settings_file
        Read the project's settings from this file instead of the commit's loopwright.toml.
    auto_heal
        Try more for a task that failed for good before it waits for you.
    allow_unverified
        Let work land that no check proves; the exit code is then not 0.
    finish
        What to do with the branch of a verified plan: leave, fast-forward, squash or pull-request.
    qa_mode
        What a QA review covers: full or lite.
    issue
        Work on the issue with this number of the project's forge, or do what is due for it now.
    despite
        Your reason to run a plan although its evaluation refuses it. The receipt records it.
    new
        Start a plan over that has ended.
    no_check_base
        Do not run the gates on the base commit before the first agent starts.
    no_wait
        Pause instead of waiting for a used-up or locked account, or for the next day.
    detach
        Submit the plan and return; a worker, or a process in the background, executes it.
    notify
        An Apprise URL that gets a notice when the plan is done, failed, needs you or nears its budget; repeat it for
        several.
    yes
        Run the plan for a goal without asking you first.
    json
        Print the result as JSON, and nothing else.
    """
    if notify:
        _check_notify(notify, detach=detach)
    if issue is not None:
        if plan is not None:
            raise UserError("--issue takes the place of a plan", code="flags_conflict", hint="leave one out")
        plan = Path()
    elif plan is None:
        plan = _confirmed(as_json=json)
    elif is_goal(str(plan)):
        plan = _for_goal(str(plan), agent=agent, model=model, costs=costs, yes=yes, as_json=json)
    elif (track := unplanned_track(plan)) is not None:
        plan = _for_goal(
            track.goal, agent=agent, model=model, costs=costs, yes=yes, as_json=json, track=track
        )
    flags: dict[str, Any] = {
        "agent": agent,
        "model": model,
        "parallel": parallel,
        "max_attempts": max_attempts,
        "permission_mode": permission_mode,
        "auto_heal": auto_heal,
        "allow_unverified": allow_unverified,
        "finish": finish,
        "qa_mode": qa_mode,
        "wait_for_limits": False if no_wait else None,
        "notify": notify or None,
        **costs.given(),
        **rounds.given(),
    }
    request = RunRequest(
        plan=plan,
        flags=flags,
        source=source,
        base=base,
        settings_file=settings_file,
        despite=despite,
        new=new,
        check_base=False if no_check_base else None,
    )
    if issue is not None:
        # Only this needs the library that asks a forge.
        from loopwright.cli.commands.start.issues import carry_out as work_on

        return asyncio.run(work_on(issue, request, partial(_run, detach=detach, as_json=json), as_json=json))
    if found_rounds(plan, source):
        # Only an orchestrator folder needs the controller.
        from loopwright.cli.commands.start.rounds import carry_out

        return asyncio.run(carry_out(request, detach=detach, as_json=json))
    return asyncio.run(_run(request, detach=detach, as_json=json))


def _check_notify(urls: tuple[str, ...], *, detach: bool) -> None:
    """Refuse unusable targets before any work begins."""
    # Only notices need it.
    from loopwright.services.notifications.targets import check_flag

    if detach:
        raise UserError(
            "--notify ends with this command, and --detach leaves the plan to another process",
            code="flags_conflict",
            hint="set `notify` in your own config.toml, which every process reads",
        )
    check_flag(urls)


def _confirmed(*, as_json: bool) -> Path:
    """Return the work that the user chooses among what is found here; none of it runs without their word."""
    found = find_work(Path())
    todo = [one for one in found if one.open]
    if not todo:
        there = ", ".join(f"{one.path} ({one.summary})" for one in found[:_SHOWN])
        raise NotFound(
            f"no plan is named, and there is no open work here{f': {there}' if there else ''}",
            code="work_not_found",
            hint=f"name a plan, such as `{to_type('run', 'plan.yaml')}`, or a goal in words",
        )
    names = [f"{one.path} ({one.summary})" for one in todo[:_SHOWN]]
    more = len(todo) - len(names)
    if as_json or not sys.stdin.isatty():
        raise Refused(
            f"no plan is named; found here: {', '.join(names)}{f' and {more} more' if more else ''}",
            code="confirmation_needed",
            hint=f"name the one to run: `{to_type('run', str(todo[0].path))}`",
        )
    for n, name in enumerate(names, 1):
        sys.stdout.write(f"  {n}  {name}\n")
    said = input(f"Run {todo[0].path}? [y/N, or a number] ").strip().lower()
    if said.isdecimal() and 1 <= int(said) <= len(names):
        return todo[int(said) - 1].path
    if said in ("y", "yes"):
        return todo[0].path
    raise Refused("nothing was run", code="declined", hint=f"`{to_type('run', str(todo[0].path))}`")


def _for_goal(
    goal: str,
    *,
    agent: str | None,
    model: str | None,
    costs: CostFlags,
    yes: bool,
    as_json: bool,
    track: Unplanned | None = None,
) -> Path:
    """Have a plan made for a goal, and return its path once the user has agreed to it."""
    # Only a goal needs a planner.
    from loopwright.cli.commands.start.plans import made

    if not yes and (as_json or not sys.stdin.isatty()):
        way = f"`{to_type('plan', goal)}` makes it for you to read; " if track is None else ""
        raise Refused(
            "you have to read a plan for a goal before it runs",
            code="confirmation_needed",
            hint=f"{way}--yes runs it unread",
        )
    path = made(goal, agent=agent, model=model, costs=costs, quiet=as_json, notes=not yes, track=track)
    if not yes and input("Run it? [y/N] ").strip().lower() not in ("y", "yes"):
        raise Refused(
            "nothing was run", code="declined", hint=f"edit it, then: {to_type('run', os.path.relpath(path))}"
        )
    return path


async def _run(request: RunRequest, after: After | None = None, *, detach: bool, as_json: bool) -> int:
    """Run a plan; `after` is called with its id as soon as it was submitted."""
    notes: list[str] = []
    prepared = await _prepared(request, notes, as_json=as_json)
    if isinstance(prepared, NothingToDo):
        return _nothing_left(prepared, as_json=as_json)
    async with prepared:
        submitted = await submit(prepared)
        if after is not None:
            await after(prepared.at, submitted.plan.id)
        if submitted.standing is Standing.ENDED:
            return await _ended(prepared, submitted, as_json=as_json)
        if submitted.standing is Standing.CONTINUED and not as_json:
            _note(*submitted.notes)
            plan = submitted.plan
            begun = f"begun from {escape(plan.base_ref)} ({plan.base_sha[:7]}) with the settings of that time"
            console().print(f"continuing plan {short_id(plan.id)}, {begun}")
        if detach:
            return await _detached(prepared.at, submitted, notes, as_json=as_json)
        return await _driven(prepared, submitted, notes, as_json=as_json)


async def _prepared(request: RunRequest, notes: list[str], *, as_json: bool) -> Prepared | NothingToDo:
    """Prepare a run, and print what there is to note or collect it in `notes`; ask about work that is not known."""
    tell, drive = _collected(notes) if as_json else _told_once(), showing(quiet=as_json)
    try:
        return await prepare(request, tell=tell, drive=drive)
    except UnknownWork as unknown:
        if as_json or not unknown.found.importable or not sys.stdin.isatty():
            raise
        sys.stdout.write(
            f"{unknown.found.what}.\nImport it (i), start a new plan (n), or do nothing (Enter)? "
        )
        sys.stdout.flush()
        match sys.stdin.readline().strip().lower():
            case "i" | "import":
                # Only an answer at the terminal asks for it.
                from loopwright.services.projects.projects import import_here

                console().print(escape((await import_here()).in_words()))
            case "n" | "new":
                request = replace(request, new=True)
            case _:
                raise
    return await prepare(request, tell=tell, drive=drive)


def _collected(notes: list[str]) -> Tell:
    """Return what keeps each note once and prints nothing."""

    def tell(importance: Importance, text: str) -> None:
        if importance is not Importance.PROGRESS and text not in notes:
            notes.append(text)

    return tell


def _told_once() -> Tell:
    """Return what prints each note once, however often a run is prepared."""
    told: set[str] = set()

    def tell(importance: Importance, text: str) -> None:
        if importance is Importance.PROGRESS:
            console().print(f"[dim]… {escape(text)}[/]")
        elif text not in told:
            told.add(text)
            (warn if importance is Importance.WARNING else _note)(text)

    return tell


def _nothing_left(found: NothingToDo, *, as_json: bool) -> int:
    """Print that every item of a source is settled, so that there is no plan."""
    code = ExitCode.UNFINISHED if found.news.open_ends else ExitCode.VERIFIED
    if as_json:
        facts = {"done": found.done, "skipped": found.skipped, "open_ends": found.news.open_ends}
        print_json({"plan": None, "nothing_to_do": True, **facts, "exit_code": int(code)})
        return code
    told = f"{counted(found.done, 'item')} done" + (f", {found.skipped} skipped" if found.skipped else "")
    source = escape(found.news.source)
    if found.done or found.skipped:
        console().print(
            f"Nothing is left to do in {source}: {told}. An item that you reopen there runs again."
        )
    else:
        console().print(f"There is nothing to do in {source} yet. Add an item to it, then run it again.")
    for line in news_lines(found.news):
        console().print(escape(line))
    return code


async def _ended(prepared: Prepared, submitted: Submitted, *, as_json: bool) -> int:
    """Show a plan that ended before, and how to run it once more."""
    view = await view_with_news(prepared.at, submitted.plan.id)
    if not as_json:
        cancelled = submitted.plan.status is PlanState.CANCELLED
        request = prepared.request
        console().print(
            for_finished(request.flags, base=request.base, cancelled=cancelled, left=submitted.items_left)
        )
    return closing(view, as_json=as_json, merged=submitted.is_merged)


async def _driven(prepared: Prepared, submitted: Submitted, notes: Sequence[str], *, as_json: bool) -> int:
    """Drive or follow a plan on this terminal until it rests."""
    at = prepared.at
    footer = (
        "Ctrl-C pauses the plan and keeps all work; so does closing this terminal. "
        "`loopwright run PLAN --detach` runs a plan in the background."
    )
    if holder := followed_worker(at):
        footer = f"process {holder.get('pid')} executes this plan; Ctrl-C only stops following it"
    foreground = Foreground(
        at,
        submitted.plan,
        actor=prepared.submission.actor,
        display=Display(footer=footer, quiet=as_json),
        submitter=prepared.submitter,
    )
    code = await foreground.run()
    if foreground.left and not as_json:
        return code
    return await print_end(at, submitted.plan.id, code, as_json=as_json, notes=notes)


async def _detached(at: Session, submitted: Submitted, notes: Sequence[str], *, as_json: bool) -> int:
    """Leave a plan to the background, and say how to follow, pause and stop it."""
    plan = submitted.plan
    theirs = await hand_over(at, plan, PROGRAM)
    if as_json:
        view = await view_with_news(at, plan.id)
        about = {"pid": theirs.pid, "log": str(theirs.log) if theirs.log else None}
        document = {"plan": view, "worker": about, "notes": notes}
        print_json({**document, "exit_code": int(ExitCode.VERIFIED)})
        return ExitCode.VERIFIED
    out, name = console(), short_id(plan.id)
    who = f"process {theirs.pid}" if theirs.pid is not None else "a worker of this home"
    out.print(f"submitted {name}; {who} executes it in the background")
    if theirs.log is not None:
        out.print(f"log:  {escape(str(theirs.log))}")
    elif plan.environment is not None and plan.environment.secrets:
        names = ", ".join(plan.environment.secrets)
        _note(
            f"{who} must have {names} itself or in the file of its setting env_file, or the plan waits for it"
        )
    for what, command in (("follow it", "watch"), ("pause it", "pause"), ("stop it", "stop")):
        out.print(f"{what}:  {to_type(command, name)}")
    return ExitCode.VERIFIED


def _note(*notes: str) -> None:
    for note in notes:
        console().print(f"[yellow]note[/]: {escape(note)}")
