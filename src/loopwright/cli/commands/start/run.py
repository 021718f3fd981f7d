"""`run`: the command that does a plan."""

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.markup import escape

from loopwright.adapters import registry
from loopwright.adapters.machine.host import new_id
from loopwright.app import Home, catch_up_state_files, make_world, open_home
from loopwright.cli.commands.decide.finishing import check_finish
from loopwright.cli.foreground import Foreground, follows_worker, is_worked_on, tell_now, tell_stale
from loopwright.cli.screens.end import closing, print_end
from loopwright.cli.screens.follow import Display
from loopwright.cli.screens.source_news import view_with_news
from loopwright.cli.shell.cost_flags import NO_COST_FLAGS, CostFlags
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json, warn
from loopwright.cli.shell.round_flags import NO_ROUND_FLAGS, RoundFlags, check_rounds
from loopwright.config.resolve import Settings
from loopwright.config.settings import settings
from loopwright.core.plans.evaluating import Weight
from loopwright.core.rows.model import Plan
from loopwright.core.values.errors import Held, Refused
from loopwright.core.values.ids import short_id
from loopwright.core.values.shell_hints import to_type
from loopwright.core.values.states import ENDED_PLAN, LoopState, PlanState
from loopwright.engine.intake.submit import (
    Submission,
    Submitted,
    evaluate,
    is_known,
    last_plan,
    submit,
    to_do,
)
from loopwright.engine.processes.held_files import keep
from loopwright.engine.rows.finishes import is_open
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.sources.status_writeback import writes
from loopwright.engine.views.views import live_workers
from loopwright.services.gates.base_gates import known_on_base
from loopwright.services.gates.kept_bases import Bases
from loopwright.services.homes.context import Place, SettingsFile, actor, settings_for
from loopwright.services.homes.log import log_to
from loopwright.services.homes.loop_sources import unused_loops
from loopwright.services.homes.repository_glance import glance_at, needed_place
from loopwright.services.plans.evaluator import check_evaluator, evaluated
from loopwright.services.plans.goals import is_goal
from loopwright.services.plans.plan_context import seen_around, with_base
from loopwright.services.plans.prompt_check import check_prompts
from loopwright.services.runs.cost_check import check_costs
from loopwright.services.runs.known_plans import for_finished, idle_flags, print_nothing_left, refuse_idle
from loopwright.services.runs.last_plan import (
    is_ahead,
    opened_again,
    refuse_left_behind,
    refuse_untold,
    source_debt,
)
from loopwright.services.runs.preflight import (
    check_accounts,
    check_agents,
    check_fallback,
    check_folder,
    check_gates,
    check_held_out,
    check_keeping,
    check_plan,
    check_review,
    check_sandbox,
    other_base,
    relative,
    uncommitted,
    warnings,
    who_works,
)
from loopwright.services.runs.run_inputs import (
    PlanPath,
    meant_path,
    project_settings,
    read_plan,
    tracked_files,
)
from loopwright.services.runs.source_changes import told_of_change
from loopwright.services.runs.submitters import submit_again, submitting, with_environment
from loopwright.services.runs.unknown_work import ask_or_refuse, note_move, unknown_work

_MODES = f"What the agent may do by itself: {', '.join(settings()['permission_mode'].kind.schema['enum'])}."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What `run` was asked to do, once everything that can be wrong before spending was looked at."""

    place: Place
    settings: Settings
    submission: Submission
    flags: Mapping[str, Any]
    base: str | None


def run(
    plan: PlanPath,
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
    allow_unverified: Annotated[bool | None, Parameter(negative="--no-allow-unverified")] = None,
    finish: str | None = None,
    qa_mode: str | None = None,
    despite: str = "",
    new: bool = False,
    no_check_base: bool = False,
    no_wait: bool = False,
    detach: Annotated[bool, Parameter(negative="")] = False,
    yes: Annotated[bool, Parameter(alias="-y")] = False,
    costs: CostFlags = NO_COST_FLAGS,
    rounds: RoundFlags = NO_ROUND_FLAGS,
    json: bool = False,
) -> int:
    """Do a plan: run agents over its tasks until the project's own checks pass.

    Parameters
    ----------
    plan
        The file or folder that has the work, in any form that is known; or a goal in words, to be planned first.
    agent
        Which agent does the work (default: the setting `agent`, which is claude unless you set it).
    model
        Which model the agent uses.
    parallel
        How many tasks are worked on at once.
    max_attempts
        How often a task is tried before a person is asked.
    source
        Which form the work has, where that cannot be seen from its name.
    base
        Commit or branch to start from (default: what is checked out).
    settings_file
        Read the project's settings from this file instead of the commit's loopwright.toml.
    allow_unverified
        Let work land that nothing checks, or do not; if it lands, the exit code is not 0.
    finish
        What becomes of the plan's branch once it is verified: leave, fast-forward, squash or pull-request.
    qa_mode
        What a look at the whole (a QA item) goes through: full or lite.
    despite
        Your reason to run a plan that its evaluation refuses; it stands in the receipt.
    new
        Start over a plan that was already done or cancelled.
    no_check_base
        Do not run the gates on the commit that the plan starts from before anything is spent.
    no_wait
        Pause, and say why, rather than wait for an account that is used up or locked, or for the next day.
    detach
        Submit the plan and return; a worker, or a process in the background, executes it.
    yes
        Run the plan that was made for a goal without asking.
    json
        Print the result as JSON, and nothing else.
    """
    if is_goal(str(plan)):
        plan = _for_goal(str(plan), agent=agent, model=model, costs=costs, yes=yes, as_json=json)
    flags: dict[str, Any] = {
        "agent": agent,
        "model": model,
        "parallel": parallel,
        "max_attempts": max_attempts,
        "permission_mode": permission_mode,
        "allow_unverified": allow_unverified,
        "finish": finish,
        "qa_mode": qa_mode,
        "wait_for_limits": False if no_wait else None,
        **costs.given(),
        **rounds.given(),
    }
    look = {"check_base": False if no_check_base else None}
    return asyncio.run(
        _run(
            plan,
            flags,
            kind=source,
            base=base,
            despite=despite,
            new=new,
            look=look,
            settings_file=settings_file,
            detach=detach,
            as_json=json,
        )
    )


def _for_goal(
    goal: str, *, agent: str | None, model: str | None, costs: CostFlags, yes: bool, as_json: bool
) -> Path:
    """Have a plan made for a goal, and return where it lies once a person has agreed to it."""
    from loopwright.cli.commands.start.plans import made

    if not yes and (as_json or not sys.stdin.isatty()):
        raise Refused(
            "a plan made for a goal is read by a person before it runs",
            hint=f"`{to_type('plan', goal)}` makes it for you to read; --yes runs it unread",
        )
    path = made(goal, agent=agent, model=model, costs=costs, quiet=as_json, notes=not yes)
    if not yes and input("Run it? [y/N] ").strip().lower() not in ("y", "yes"):
        raise Refused("nothing was run", hint=f"edit it, then: {to_type('run', os.path.relpath(path))}")
    return path


async def _run(
    path: Path,
    flags: dict[str, Any],
    *,
    kind: str | None,
    base: str | None,
    despite: str,
    new: bool,
    look: Mapping[str, Any],
    settings_file: Path | None,
    detach: bool,
    as_json: bool,
) -> int:
    prepare = partial(
        _prepare,
        path,
        flags,
        kind=kind,
        base=base,
        despite=despite,
        new=new,
        look=look,
        settings_file=settings_file,
    )
    asked = await prepare(quiet=as_json)
    home = open_home(asked.settings, os.environ)
    log_to(home.root)
    try:
        asked = await _known_here(home, asked, quiet=as_json)
        # Before it is judged what in it is new: what it could not be told, or says of an older copy, is none of that.
        debt, last = await home.store.read(
            lambda tx: (source_debt(tx, asked.submission), last_plan(tx, asked.submission))
        )
        if debt is not None:
            await tell_now(home, make_world(home, asked.settings, os.environ, slots=1), debt.plan_id)
        if debt is not None or (last is not None and await tell_stale(home, asked.settings, last.id)):
            asked = await prepare(quiet=True)
        with glance_at(asked.place.root) as repository:
            source = registry.source(asked.submission.source_kind)
            opened = await opened_again(home.store, repository, source, asked.submission)
        asked = replace(asked, submission=replace(asked.submission, opened=opened))
        last, known, debt = await home.store.read(
            lambda tx: (
                last_plan(tx, asked.submission),
                is_known(tx, asked.submission),
                source_debt(tx, asked.submission),
            )
        )
        over = last is None or last.status in ENDED_PLAN
        if over and not known:
            refuse_untold(debt, asked.submission)
        if over and not known and not to_do(asked.submission.work):
            return print_nothing_left(asked.submission, as_json=as_json)
        keep(HomePaths(root=home.root), asked.submission.work.held_files)
        submission = asked.submission if known else await _judged(home, asked, quiet=as_json)
        # Before a worker can see the plan: it may ask for variables at once.
        with submitting(home) as submitter:
            asked = replace(asked, submission=with_environment(home, submission, submitter))
            return await _carried_out(home, asked, submitter, detach=detach, as_json=as_json)
    finally:
        await home.store.close()


async def _carried_out(home: Home, asked: _Asked, submitter: str, *, detach: bool, as_json: bool) -> int:
    """Submit a plan, and drive or follow it until it rests, or leave it to the background."""
    submitted = await home.store.transact("submit", lambda tx: submit(tx, new_id, asked.submission))
    early = await _already(home, asked, submitted, as_json=as_json)
    if early is not None:
        return early
    if detach:
        return await _detached(home, submitted.plan, as_json=as_json)
    footer = (
        "Ctrl-C pauses cleanly; closing this terminal does the same. "
        "`loopwright run PLAN --detach` leaves a plan to the background."
    )
    if holder := follows_worker(home):
        footer = f"process {holder.get('pid')} executes this plan; Ctrl-C only stops following it"
    foreground = Foreground(
        home,
        asked.settings,
        submitted.plan,
        actor=asked.submission.actor,
        display=Display(footer=footer, quiet=as_json),
        submitter=submitter,
    )
    code = await foreground.run()
    if foreground.left and not as_json:
        return code
    return await print_end(home, submitted.plan.id, code, as_json=as_json)


async def _detached(home: Home, plan: Plan, *, as_json: bool) -> int:
    """Leave a plan to the background, and say how to follow, pause and stop it."""
    from loopwright.cli.commands.start.detached import hand_over

    theirs = await hand_over(home, plan)
    if as_json:
        view = await view_with_news(home, plan.id)
        about = {"pid": theirs.pid, "log": str(theirs.log) if theirs.log else None}
        print_json({"plan": view, "worker": about, "exit_code": int(ExitCode.VERIFIED)})
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


async def _known_here(home: Home, asked: _Asked, *, quiet: bool) -> _Asked:
    """Make sure that the home knows what the repository has of this source; `--new` does without."""
    with glance_at(asked.place.root) as repository:
        if was := await note_move(home, repository, asked.place.root):
            _note(*() if quiet else (f"this repository was at {was} before; its plans continue here",))
        found = await unknown_work(home, repository, asked.submission)
    if found is None:
        return asked
    if not ask_or_refuse(found, asked.submission, may_ask=not quiet):
        return replace(asked, submission=replace(asked.submission, new=True))
    from loopwright.cli.commands.maintain.projects import take_up

    console().print(escape((await take_up(home, asked.settings, asked.place.root)).in_words()))
    return asked


async def _judged(home: Home, asked: _Asked, *, quiet: bool) -> Submission:
    """Return what is submitted with everything that has to be known of a new plan."""
    submission = asked.submission
    with glance_at(asked.place.root) as repository:
        await refuse_left_behind(home.store, repository, submission)
        about = (repository, submission.base.sha, asked.place, asked.settings, submission.work)
        kept, on_base = await known_on_base(*about, _silent if quiet else console().print)
        seen = with_base(await seen_around(*about, home.store), on_base)
    if not quiet:
        _note(*(one.text for one in seen if one.weight is Weight.TOLD))
    submission = replace(submission, seen=seen)
    # Before money is spent on somebody who looks at it.
    evaluate(submission.work, submission.source_path, despite=submission.despite, seen=seen)
    submission = await evaluated(home, asked.settings, asked.place, submission, quiet=quiet)
    return replace(submission, base_known=Bases(settings=asked.settings).taken(kept) if kept else None)


async def _prepare(
    path: Path,
    flags: dict[str, Any],
    *,
    kind: str | None,
    base: str | None,
    despite: str,
    new: bool,
    look: Mapping[str, Any],
    settings_file: Path | None,
    quiet: bool,
) -> _Asked:
    # What is looked at before it runs is no part of a plan, so it is never kept from one that goes on.
    path = meant_path(path, kind)
    source, work = read_plan(path, kind)
    check_rounds(flags, work, source.kind)
    judged = evaluate(work, str(path), despite=despite)
    place = needed_place(path)
    with glance_at(place.root) as repository:
        start = await repository.base(base)
        await check_folder(repository, start, place)
        found = await project_settings(repository, start.sha, place, settings_file)
        loop = os.path.relpath(path.resolve(), place.root)
        settings = settings_for(
            flags={**flags, **look},
            plan=work,
            plan_name=path.name,
            loop=loop,
            project_text=found.text,
            project_name=found.name,
        )
        books = await tracked_files(repository, start.sha, source, path, place.root)
        await check_finish(settings, repository, start)
        await check_prompts(repository, start.sha, place)
        await check_held_out(repository, start, place, path, work, settings.policy().copy_files)
        other = await other_base(repository, start, place.root, work)
    check_plan(settings, work)
    missing = check_agents(settings, work)
    check_fallback(settings)
    check_review(settings)
    check_evaluator(settings)
    check_accounts(settings, who_works(settings, *(task.agent for task in work.tasks)))
    check_costs(settings, work)
    check_gates(settings, work)
    check_sandbox(settings)
    unkept = check_keeping(settings, work)
    plan_name = relative(path, place.root)
    notes = (
        *uncommitted(start, None if found.given else found.file, committed=found.committed, plan=plan_name),
        *unused_loops(found, place.root),
        *other,
    )
    if not quiet:
        warn(*unkept)
        _note(
            *(*missing, *warnings(settings), *notes, *work.notes),
            *(one["text"] for one in judged["findings"]),
        )
    submission = Submission(
        root=place.root,
        subfolder=place.subfolder,
        source_kind=source.kind,
        source_path=loop,
        work=work,
        base=start,
        policy=settings.policy(),
        gates=settings.gates,
        actor=actor(),
        books=books,
        follows=writes(source) or work.rounds,
        despite=despite,
        new=new,
    )
    return _Asked(place=place, settings=settings, submission=submission, flags=flags, base=base)


def _silent(_: str) -> None:
    """Tell nobody."""


def _note(*notes: str) -> None:
    for note in notes:
        console().print(f"[yellow]note[/]: {escape(note)}")


async def _already(home: Home, asked: _Asked, submitted: Submitted, *, as_json: bool) -> int | None:
    """Deal with a plan that was here before: done, held by someone, or to be carried on."""
    if submitted.created:
        return None
    plan, loop = submitted.plan, submitted.loop
    if await home.store.read(lambda tx: is_open(tx, plan.id)):
        return None  # only its end is left to be carried out
    if plan.status in ENDED_PLAN:
        await catch_up_state_files(make_world(home, asked.settings, os.environ, slots=1))
        view = await view_with_news(home, plan.id)
        if not as_json:
            cancelled = plan.status is PlanState.CANCELLED
            settled = len(asked.submission.work.tasks) - len(to_do(asked.submission.work))
            left = len(to_do(asked.submission.work)) if settled else None
            console().print(for_finished(asked.flags, base=asked.base, cancelled=cancelled, left=left))
        with glance_at(asked.place.root) as repository:
            ahead = await is_ahead(repository, asked.place.root, plan.branch, asked.submission.base.sha)
        return closing(view, as_json=as_json, merged=not ahead)
    if loop.state is LoopState.RUNNING and await is_worked_on(home, plan.project_id):
        holder = home.membership.holder()
        workers = [] if home.membership.exclusive else await home.store.read(live_workers)
        named = [f"process {holder.get('pid')}"] if holder else [f"{w.hostname} ({w.pid})" for w in workers]
        who = ", ".join(named) or "another process"
        raise Held(
            f"this plan is already being worked on by {who}",
            hint=f"`loopwright watch {plan.id}` follows it; `loopwright pause {plan.id}` pauses it",
        )
    sha = asked.submission.base.sha if asked.base is not None else None
    told = refuse_idle(idle_flags(asked.flags, asked.submission.policy, plan, base_sha=sha), plan)
    if not as_json:
        _note(*told, *await home.store.read(lambda tx: told_of_change(tx, asked.submission, plan)))
        begun = f"begun from {escape(plan.base_ref)} ({plan.base_sha[:7]}) with the settings of that time"
        console().print(f"carrying on plan {short_id(plan.id)}, {begun}")
    await submit_again(home, plan, asked.submission)
    if loop.state is not LoopState.RUNNING:
        from loopwright.cli.commands.decide.control import ask

        await ask(home, "resume", plan.id, {})
    return None
