"""`run` and `worker`: the commands that work."""

import asyncio
import json as jsonlib
import os
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter
from rich.markup import escape

from loopwright.adapters import registry
from loopwright.adapters.host import new_id
from loopwright.app import Home, catch_up_state_files, make_worker, make_world, open_home
from loopwright.cli.again import for_finished, idle_flags, print_nothing_left, refuse_idle
from loopwright.cli.base_gates import known_on_base
from loopwright.cli.context import Place, actor, called_as, look_settings, settings_for
from loopwright.cli.cost_check import check_costs
from loopwright.cli.cost_flags import NO_COST_FLAGS, CostFlags
from loopwright.cli.drive import Foreground, log_to, tell_now
from loopwright.cli.evaluator import check_evaluator, evaluated
from loopwright.cli.exits import ExitCode
from loopwright.cli.finishing import check_finish, print_finish
from loopwright.cli.follow import Display
from loopwright.cli.followed import told_of_change
from loopwright.cli.glance import glance_at, needed_place
from loopwright.cli.goals import is_goal
from loopwright.cli.kept_bases import Bases
from loopwright.cli.last_plan import (
    is_ahead,
    opened_again,
    refuse_left_behind,
    refuse_untold,
    source_debt,
)
from loopwright.cli.lines import counted
from loopwright.cli.loop_sources import unused_loops
from loopwright.cli.output import console, print_json
from loopwright.cli.plan_surroundings import seen_around, with_base
from loopwright.cli.preflight import (
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
from loopwright.cli.round_flags import NO_ROUND_FLAGS, RoundFlags, check_rounds
from loopwright.cli.starting import PlanPath, meant_path, project_settings, read_plan, tracked_files
from loopwright.cli.steps import left_without, print_steps, written_by
from loopwright.cli.table import exit_code, has_gaps, screen
from loopwright.config.resolve import Settings
from loopwright.config.settings import settings
from loopwright.core import overspent
from loopwright.core.errors import Held, Refused
from loopwright.core.evaluating import Weight
from loopwright.core.ids import short_id
from loopwright.core.states import ENDED_PLAN, FinishState, LoopState, PlanState
from loopwright.engine.books import writes
from loopwright.engine.finishes import is_open
from loopwright.engine.held_files import keep
from loopwright.engine.moves import MACHINE
from loopwright.engine.submit import Submission, Submitted, evaluate, is_known, last_plan, submit, to_do
from loopwright.engine.views import PlanView, goes_on, live_workers, plan_view
from loopwright.engine.world import HomePaths

_MODES = f"What the agent may do by itself: {', '.join(settings()['permission_mode'].kind.schema['enum'])}."
_RECEIPT_S: Final = 5.0
"""How long to wait for a receipt that somebody else writes."""


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
    allow_unverified: Annotated[bool | None, Parameter(negative="--no-allow-unverified")] = None,
    finish: str | None = None,
    qa_mode: str | None = None,
    despite: str = "",
    new: bool = False,
    no_check_base: bool = False,
    no_wait: bool = False,
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
        _run(plan, flags, kind=source, base=base, despite=despite, new=new, look=look, as_json=json)
    )


def _for_goal(
    goal: str, *, agent: str | None, model: str | None, costs: CostFlags, yes: bool, as_json: bool
) -> Path:
    """Have a plan made for a goal, and return where it lies once a person has agreed to it."""
    from loopwright.cli.plans import made

    if not yes and (as_json or not sys.stdin.isatty()):
        raise Refused(
            "a plan made for a goal is read by a person before it runs",
            hint=f"`loopwright plan {shlex.quote(goal)}` makes it for you to read; --yes runs it unread",
        )
    path = made(goal, agent=agent, model=model, costs=costs, quiet=as_json, notes=not yes)
    if not yes and input("Run it? [y/N] ").strip().lower() not in ("y", "yes"):
        raise Refused("nothing was run", hint=f"edit it, then: loopwright run {os.path.relpath(path)}")
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
    as_json: bool,
) -> int:
    prepare = partial(_prepare, path, flags, kind=kind, base=base, despite=despite, new=new, look=look)
    asked = await prepare(quiet=as_json)
    home = open_home(asked.settings, os.environ)
    log_to(home.root)
    try:
        debt = await home.store.read(lambda tx: source_debt(tx, asked.submission))
        if debt is not None:
            # Before it is judged what in it is new: what it could not be told is none of that.
            await tell_now(home, make_world(home, asked.settings, os.environ, slots=1), debt.plan_id)
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
            print_nothing_left(asked.submission, as_json=as_json)
            return ExitCode.VERIFIED
        keep(HomePaths(root=home.root), asked.submission.work.held_files)
        submission = asked.submission if known else await _judged(home, asked, quiet=as_json)
        submitted = await home.store.transact("submit", lambda tx: submit(tx, new_id, submission))
        early = await _already(home, asked, submitted, as_json=as_json)
        if early is not None:
            return early
        footer = (
            "Ctrl-C pauses cleanly; closing this terminal does the same. "
            "`loopwright worker` in another terminal keeps going."
        )
        display = Display(footer=footer, quiet=as_json)
        foreground = Foreground(
            home, asked.settings, submitted.plan.id, actor=asked.submission.actor, display=display
        )
        code = await foreground.run()
        view = await _view(home, submitted.plan.id)
        await _written(view)
        closing(view, as_json=as_json)
        return code
    finally:
        await home.store.close()


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
        found = await project_settings(repository, start.sha, place)
        loop = os.path.relpath(path.resolve(), place.root)
        settings = settings_for(
            flags={**flags, **look}, plan=work, plan_name=path.name, loop=loop, project_text=found.text
        )
        books = await tracked_files(repository, start.sha, source, path, place.root)
        await check_finish(settings, repository, start)
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
        *uncommitted(start, found.file, committed=found.committed, plan=plan_name),
        *unused_loops(found, place.root),
        *other,
    )
    if not quiet:
        _note(
            *(*missing, *warnings(settings), *unkept, *notes, *work.notes),
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
        view = await _view(home, plan.id)
        if not as_json:
            cancelled = plan.status is PlanState.CANCELLED
            settled = len(asked.submission.work.tasks) - len(to_do(asked.submission.work))
            left = len(to_do(asked.submission.work)) if settled else None
            console().print(for_finished(asked.flags, base=asked.base, cancelled=cancelled, left=left))
        with glance_at(asked.place.root) as repository:
            ahead = await is_ahead(repository, asked.place.root, plan.branch, asked.submission.base.sha)
        closing(view, as_json=as_json, merged=not ahead)
        return exit_code(view)
    holder = home.membership.holder()
    workers = [] if home.membership.exclusive else await home.store.read(live_workers)
    if loop.state is LoopState.RUNNING and (holder is not None or workers):
        who = (
            f"process {holder.get('pid')}"
            if holder
            else ", ".join(f"{w.hostname} ({w.pid})" for w in workers)
        )
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
    if loop.state is not LoopState.RUNNING:
        from loopwright.cli.control import ask

        await ask(home, "resume", plan.id, {})
    return None


async def _view(home: Home, plan_id: str) -> PlanView:
    paths = HomePaths(root=home.root)
    return await home.store.read(lambda tx: plan_view(tx, plan_id, paths))


def _receipt(view: PlanView) -> Path:
    return Path(view.path) / ".loopwright" / "receipts" / f"{view.id}.json"


async def _written(view: PlanView) -> None:
    """Wait a moment for the receipt of a plan that is over: another worker may still be writing it."""
    if view.status not in ENDED_PLAN:
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(_RECEIPT_S):
            while not _receipt(view).exists():
                await asyncio.sleep(0.05)


def closing(view: PlanView, *, as_json: bool, merged: bool = False) -> None:
    """Print how a plan ended, and what to do with the result; there is nothing to do where it is `merged`."""
    if as_json:
        print_json({"plan": view, "exit_code": int(exit_code(view))})
        return
    out = console()
    out.print(screen(view))
    if view.reason and view.status != "VERIFIED":
        out.print(f"why: {escape(view.reason)}")
    if view.stopped:
        out.print(f"stopped: {escape(view.stopped)}")
    receipt = _receipt(view)
    # Of a plan that goes on there is none: what lies there is an older one, or not ours.
    if view.status in ENDED_PLAN and receipt.exists():
        out.print(f"receipt: {escape(os.path.relpath(receipt))}")
        if has_gaps(view):
            from loopwright.cli.gaps import print_gaps

            print_gaps(out, view.path, view.id)
    for end in view.finishes:
        print_finish(end)
    # What a person asked for and was refused leaves the result where it was.
    if any(one.actor == MACHINE or one.state != FinishState.REFUSED.value for one in view.finishes):
        return
    if view.status == "VERIFIED" and view.answers:
        print_steps(out, written_by(view))
        return
    if view.status == "VERIFIED" and merged:
        return
    if view.status == "VERIFIED":
        out.print(f"merge it:  git merge --ff-only {view.branch}")
        out.print("[dim](without --ff-only if your branch has moved on since)[/]")
        if view.status_on_branch and not view.untold:
            out.print("the status of its source is on that branch too: your checkout has it once you merge")
        return
    if view.status == "CANCELLED":
        return
    if view.status == "FAILED" and exit_code(view) is ExitCode.UNVERIFIED and not merged:
        out.print("all of it landed, and nothing has checked it: look at it before you take it over")
        out.print(f"merge it:  git merge --ff-only {view.branch}")
        return
    for task in view.tasks:
        if task.status in ("ERROR", "CANCELLED"):
            out.print(f"look at it:  loopwright show {escape(shlex.quote(view.prefix + task.key))}")
    if left_without(view):
        out.print(f"verify what landed, without what was cancelled:  loopwright reverify {short_id(view.id)}")
    # What to type about a budget was said with the reason.
    asked = any(one.kind == overspent.ASKED for one in view.questions)
    if view.loop_state in ("PAUSED", "STOPPED") and not asked:
        out.print(f"go on:  loopwright resume {view.id}")


def worker(*, slots: int | None = None, until_idle: bool = False, json: bool = False) -> int:
    """Join a home as one more worker and stay until it is told to stop.

    Parameters
    ----------
    slots
        How many tasks this worker takes at once (default: the setting `parallel`).
    until_idle
        Leave as soon as nothing is left to do.
    json
        Print one JSON document per line: when it stands by, when it begins to work, and when it leaves.
    """
    return asyncio.run(_worker(slots, until_idle=until_idle, tell=_Told(as_json=json)))


class _Told:
    """Says what a worker does, to people or to programs."""

    def __init__(self, *, as_json: bool) -> None:
        self._json = as_json

    def __call__(self, type: str, text: str, **facts: Any) -> None:
        """Tell one thing; people are told nothing where `text` is empty."""
        if self._json:
            sys.stdout.write(jsonlib.dumps({"type": type, **facts}) + "\n")
            sys.stdout.flush()
        elif text:
            console().print(escape(text))


async def _worker(slots: int | None, *, until_idle: bool, tell: _Told) -> int:
    import signal

    settings = look_settings()
    home = open_home(settings, os.environ)
    log_to(home.root)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    told = False
    try:
        while not home.membership.acquire({"pid": os.getpid(), "command": called_as()}):
            if not told:
                holder = home.membership.holder() or {}
                text = (
                    f"standing by: process {holder.get('pid')} works here; this one takes over when it ends"
                )
                tell("standing_by", text, pid=holder.get("pid"))
                told = True
            if stop.is_set():
                tell("end", "", exit_code=int(ExitCode.VERIFIED))
                return ExitCode.VERIFIED
            await home.store.changed(1.0)
        world = make_world(home, settings, os.environ, slots=slots or settings.values.parallel)
        slots = world.me.slots
        text = f"working in {home.root} with {counted(slots, 'slot')}; Ctrl-C leaves, agents go on"
        tell("working", text, home=str(home.root), slots=slots, pid=os.getpid())

        async def finished() -> bool:
            if stop.is_set():
                return True
            if not until_idle or await world.engine.in_flight():
                return False
            return not await home.store.read(goes_on)

        running = asyncio.create_task(make_worker(world).run(finished))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        running.cancel() if stop.is_set() else None
        try:
            await running
        except asyncio.CancelledError:
            if not stop.is_set():
                raise
        tell("end", "", exit_code=int(ExitCode.VERIFIED))
        return ExitCode.VERIFIED
    finally:
        home.membership.release()
        await home.store.close()
