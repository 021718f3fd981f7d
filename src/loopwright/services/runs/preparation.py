"""Prepare a run and submit it: read the plan, check everything that can be wrong before any cost, evaluate it.

A new plan begins, an unfinished one continues, a finished one is not changed.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from loopwright.adapters import registry
from loopwright.adapters.machine.host import new_id
from loopwright.app import catch_up_state_files
from loopwright.config.resolve import Settings
from loopwright.core.plans.evaluating import Weight
from loopwright.core.rows.model import Loop, Plan
from loopwright.core.values.errors import Held, Refused
from loopwright.core.values.states import ENDED_PLAN, LoopState
from loopwright.core.values.wording import grouped, to_type
from loopwright.engine.intake import submit as intake
from loopwright.engine.intake.evaluation import Evaluation, evaluate, to_do
from loopwright.engine.intake.submit import Submission, is_known, last_plan
from loopwright.engine.processes.held_files import keep
from loopwright.engine.rows.finishes import is_open
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.rows.writeback_debts import SourceNews
from loopwright.engine.views.worker_views import leased_workers
from loopwright.ports import Mark
from loopwright.services.control.finishing import check_finish
from loopwright.services.control.sending import is_worked_on, send
from loopwright.services.driving.driver import Drive, Rested, drive, tell_now, tell_stale, world_of
from loopwright.services.driving.recorded_environments import (
    record_once,
    submit_again,
    submitting,
    with_environment,
)
from loopwright.services.gates.base_gates import Bases, known_on_base
from loopwright.services.homes.caller import caller_bounds
from loopwright.services.homes.clones import check_clone, fetched
from loopwright.services.homes.context import Place, actor, glance_at, here, needed_place, settings_for
from loopwright.services.homes.loop_sources import known_path, table_of, unused_loops
from loopwright.services.homes.session import Session, opened
from loopwright.services.plans.evaluator import check_evaluator, evaluated, execution_evaluation
from loopwright.services.plans.goal_tracks import refusal_written
from loopwright.services.plans.plan_context import seen_around, with_base
from loopwright.services.preflight.checks import (
    check_accounts,
    check_agents,
    check_costs,
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
from loopwright.services.preflight.run_inputs import (
    check_prompts,
    check_rounds,
    meant_path,
    project_settings,
    read_plan,
    runs_in_rounds,
    told_of_change,
    tracked_files,
)
from loopwright.services.preflight.spec_loader import with_documents, with_specs
from loopwright.services.runs.last_plan import (
    idle_flags,
    is_ahead,
    opened_again,
    refuse_idle,
    refuse_left_behind,
    refuse_untold,
    source_debt,
)
from loopwright.services.runs.unknown_work import UnknownWork, note_move, unknown_work


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A plan to run."""

    plan: Path
    """The file or folder with the work."""
    flags: Mapping[str, Any] = field(default_factory=dict)
    """Settings by their keys, above those of the plan and the project; a plan keeps them."""
    source: str | None = None
    """The format of the work; None to recognise it."""
    base: str | None = None
    """The commit or branch to start from; None for what is checked out."""
    settings_file: Path | None = None
    """The project's settings; None for the `loopwright.toml` of the base commit."""
    despite: str = ""
    """The user's reason to run a plan that its evaluation refuses."""
    new: bool = False
    """Start over a plan that was already done or cancelled."""
    check_base: bool | None = None
    """Whether to run the gates on the base commit first; None for the setting."""
    rests: bool = False
    """Whether the plan stays a draft until the user dispatches it."""
    fills: str | None = None
    """The draft that gets the file's content; None for a new plan."""


class Importance(StrEnum):
    """The importance of a note while a run is prepared."""

    PROGRESS = "progress"
    NOTE = "note"
    WARNING = "warning"


Tell = Callable[[Importance, str], None]
"""Receives notes before any cost, as soon as they are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToDo:
    """Every item of the source is done or skipped, so there is no new plan."""

    done: int
    skipped: int
    news: SourceNews
    """What the source itself lists as unfinished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A plan that may be submitted. It keeps the home open: close it, or use it in `async with`."""

    request: RunRequest
    at: Session
    place: Place
    submission: Submission
    submitter: str
    """Names this submission while this process lives."""
    _held: AsyncExitStack

    async def close(self) -> None:
        """Close the home."""
        await self._held.aclose()

    async def __aenter__(self) -> Self:
        """Return it."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the home."""
        await self.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """A readable plan that could start, before the home is read."""

    place: Place
    settings: Settings
    submission: Submission
    evaluation: Evaluation


def _unheard(_: Importance, __: str) -> None:
    """Ignore a note."""


async def prepare(
    request: RunRequest, *, tell: Tell = _unheard, drive: Drive = drive
) -> Prepared | NothingToDo:
    """Check and evaluate a plan, and open its home; raise for problems before any cost.

    `tell` gets notes and progress; `drive` drives an agent that evaluates the plan, if the settings require
    one. Raise `UnknownWork` if the repository has work of this source that the home does not know.
    """
    await fetched(here(request.plan))
    checked = await _checked(request, tell)
    async with AsyncExitStack() as held:
        at = await held.enter_async_context(opened(checked.settings))
        checked = await _up_to_date(at, request, checked, tell)
        submission = checked.submission
        store = at.home.store
        last, known, debt = await store.read(
            lambda tx: (last_plan(tx, submission), is_known(tx, submission), source_debt(tx, submission))
        )
        if not known and (last is None or last.status in ENDED_PLAN):
            refuse_untold(debt, submission)
            if not to_do(submission.work):
                return _nothing_left(submission)
        keep(HomePaths(root=at.home.root), submission.work.held_files)
        if not known:
            submission = await _evaluated(at, checked, tell, drive)
        # Before a worker can see the plan: it may request variables at once.
        submitter = held.enter_context(submitting(at.home))
        return Prepared(
            request=request,
            at=at,
            place=checked.place,
            submission=with_environment(at.home, submission, submitter),
            submitter=submitter,
            _held=held.pop_all(),
        )


def _nothing_left(submission: Submission) -> NothingToDo:
    marks = [task.mark for task in submission.work.tasks]
    return NothingToDo(
        done=marks.count(Mark.DONE),
        skipped=marks.count(Mark.SKIPPED),
        news=SourceNews(source=submission.source_path, open_ends=submission.work.open_ends),
    )


async def _up_to_date(at: Session, request: RunRequest, checked: _Checked, tell: Tell) -> _Checked:
    """Make sure that the home knows the source's last plan, and that the source has that plan's status."""
    with glance_at(checked.place.root) as repository:
        if was := await note_move(at.home, repository, checked.place.root):
            tell(Importance.NOTE, f"this repository was at {was} before; its plans continue here")
        found = await unknown_work(at.home, repository, checked.submission)
    if found is not None:
        raise UnknownWork(found, checked.submission)
    root, named = str(checked.place.root), checked.submission.source_path
    path = await at.home.store.read(lambda tx: known_path(tx, root, named))
    checked = replace(checked, submission=replace(checked.submission, source_path=path))
    # Before new items are found: status that was not written back, or was overwritten, is not new.
    asked = checked.submission
    debt, last = await at.home.store.read(lambda tx: (source_debt(tx, asked), last_plan(tx, asked)))
    if debt is not None:
        await tell_now(at, debt.plan_id)
    if debt is not None or (last is not None and await tell_stale(at, last.id)):
        checked = await _checked(request, _unheard)
        checked = replace(checked, submission=replace(checked.submission, source_path=path))
    with glance_at(checked.place.root) as repository:
        source = registry.source(checked.submission.source_kind)
        open_again = await opened_again(at.home.store, repository, source, checked.submission)
    return replace(checked, submission=replace(checked.submission, opened=open_again))


async def _evaluated(at: Session, checked: _Checked, tell: Tell, drive: Drive) -> Submission:
    """Return the submission of a new plan with its complete evaluation and the results of its gates on the base."""
    submission, place = checked.submission, checked.place
    with glance_at(place.root) as repository:
        await refuse_left_behind(at.home.store, repository, submission)
        about = (repository, submission.base.sha, place, at.settings, submission.work)
        kept, on_base = await known_on_base(*about, lambda line: tell(Importance.PROGRESS, line))
        seen = with_base(await seen_around(*about, at.home.store), on_base)
    for one in seen:
        if one.weight is Weight.TOLD:
            tell(Importance.NOTE, one.text)
    with refusal_written(place.root / submission.source_path, submission.work):
        # Before an agent is paid to evaluate it.
        evaluation = checked.evaluation.with_seen(seen)
        evaluation = await evaluated(
            at, place, submission.base, submission.work, evaluation, drive, name=submission.source_path
        )
    known = Bases(settings=at.settings).taken(kept) if kept else None
    return replace(submission, evaluation=evaluation, base_known=known)


async def _checked(request: RunRequest, tell: Tell) -> _Checked:
    path = meant_path(request.plan, request.source)
    if runs_in_rounds(path, request.source):
        raise Refused(
            f"{path.name}/ has roles, so its roadmap is worked on in rounds and not as one plan",
            code="rounds_are_not_a_plan",
            hint=f"`{to_type('run', path.name)}` in its repository drives them, or a loop that you start",
        )
    source, work = read_plan(path, request.source)
    check_rounds(request.flags, work, source.kind)
    with refusal_written(path, work, is_new=False):
        evaluation = evaluate(work, str(path), despite=request.despite, rests=request.rests)
    place = needed_place(path)
    loop = os.path.relpath(path.resolve(), place.root)
    with glance_at(place.root) as repository:
        start = await repository.base(request.base)
        await check_folder(repository, start, place)
        found = await project_settings(repository, start.sha, place, request.settings_file)
        settings = settings_for(
            # The check of the base does not belong to a plan, so it is never compared with one that continues.
            flags={**request.flags, "check_base": request.check_base},
            plan=work,
            plan_name=path.name,
            loop=table_of(found, place.root, source, loop),
            project_text=found.text,
            project_name=found.name,
        )
        books = await tracked_files(repository, start.sha, source, path, place.root)
        await check_finish(settings, repository, start)
        check_clone(place, settings.values.finish)
        await check_prompts(repository, start.sha, place)
        await check_held_out(repository, start, place, path, work, settings.policy().copy_files)
        other = await other_base(repository, start, place.root, work)
        work, about_specs = await with_specs(
            repository, start.sha, place, path, work, settings.policy().copy_files
        )
        work, about_documents = await with_documents(
            repository, start.sha, place, path, work, settings.policy().copy_files
        )
    check_plan(settings, work)
    missing = check_agents(settings, work)
    check_fallback(settings)
    check_review(settings)
    check_evaluator(settings)
    check_accounts(settings, who_works(settings, *(task.agent for task in work.tasks)))
    check_costs(settings, work)
    check_gates(settings, work)
    check_sandbox(settings)
    for warning in check_keeping(settings, work):
        tell(Importance.WARNING, warning)
    settings_file = None if found.given else found.file
    notes = (
        *missing,
        *warnings(settings, work),
        *uncommitted(start, settings_file, committed=found.committed, plan=relative(path, place.root)),
        *unused_loops(found, place.root),
        *other,
        *about_specs,
        *about_documents,
        *grouped(work.notes),
        *(one.text for one in evaluation.findings),
    )
    for note in notes:
        tell(Importance.NOTE, note)
    submission = Submission(
        root=place.root,
        subfolder=place.subfolder,
        source_kind=source.kind,
        source_path=loop,
        work=work,
        base=start,
        policy=replace(settings.policy(), evaluation=execution_evaluation(settings, work)),
        gates=settings.gates,
        actor=actor(),
        bounds=caller_bounds(),
        books=books,
        follows=source.has_status or work.rounds,
        new=request.new,
        rests=request.rests,
        fills=request.fills,
        state_folder=settings.values.state_folder,
    )
    return _Checked(place=place, settings=settings, submission=submission, evaluation=evaluation)


# Submit a prepared plan: a new one begins, an unfinished one continues, a finished one is not changed.


class Standing(StrEnum):
    """The result of a submission."""

    NEW = "new"
    """It became a new plan, which has to be driven."""
    CONTINUED = "continued"
    """Its plan was unfinished and continues; it has to be driven."""
    FINISHING = "finishing"
    """Only the finish of its plan is left, which has to be driven."""
    ENDED = "ended"
    """Its plan ended before; nothing was started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A plan that was submitted."""

    plan: Plan
    standing: Standing
    notes: tuple[str, ...] = ()
    """Notes about a plan that continues."""
    items_left: int | None = None
    """For an ended plan: how many items its source has open; None if none of them is done or skipped."""
    is_merged: bool = False
    """For an ended plan: whether the base has its work."""


async def submit(prepared: Prepared) -> Submitted:
    """Submit a plan; the same plan twice is one plan."""
    at, submission = prepared.at, prepared.submission
    store = at.home.store
    found = await store.transact("submit", lambda tx: intake.submit(tx, new_id, submission))
    plan = found.plan
    await record_once(at.home, prepared.place, submission.policy)
    if found.created:
        return Submitted(plan=plan, standing=Standing.NEW)
    if await store.read(lambda tx: is_open(tx, plan.id)):
        return Submitted(plan=plan, standing=Standing.FINISHING)
    if plan.status in ENDED_PLAN:
        return await _ended(prepared, plan)
    return await _continued(prepared, plan, found.loop)


async def run(prepared: Prepared, *, drive: Drive = drive) -> Rested:
    """Submit a plan and drive it until it rests."""
    submitted = await submit(prepared)
    return await drive(prepared.at, submitted.plan, prepared.submitter)


async def _ended(prepared: Prepared, plan: Plan) -> Submitted:
    submission = prepared.submission
    await catch_up_state_files(world_of(prepared.at))
    with glance_at(prepared.place.root) as repository:
        ahead = await is_ahead(repository, prepared.place.root, plan.branch, submission.base.sha)
    left = len(to_do(submission.work))
    return Submitted(
        plan=plan,
        standing=Standing.ENDED,
        items_left=left if left < len(submission.work.tasks) else None,
        is_merged=not ahead,
    )


async def _continued(prepared: Prepared, plan: Plan, loop: Loop) -> Submitted:
    at, submission, request = prepared.at, prepared.submission, prepared.request
    if loop.state is LoopState.RUNNING and await is_worked_on(at.home, plan.project_id):
        raise Held(
            f"this plan is already being worked on by {await _holders(prepared)}",
            code="plan_running",
            hint=f"`loopwright watch {plan.id}` follows it; `loopwright pause {plan.id}` pauses it",
        )
    sha = submission.base.sha if request.base is not None else None
    idle = refuse_idle(idle_flags(request.flags, submission.policy, plan, base_sha=sha), plan)
    changes = await at.home.store.read(lambda tx: told_of_change(tx, submission, plan))
    await submit_again(at.home, plan, submission)
    if loop.state is not LoopState.RUNNING:
        await send(at, "resume", plan.id, {})
    return Submitted(plan=plan, standing=Standing.CONTINUED, notes=(*idle, *changes))


async def _holders(prepared: Prepared) -> str:
    home = prepared.at.home
    if holder := home.membership.holder():
        return f"process {holder.get('pid')}"
    workers = [] if home.membership.exclusive else await home.store.read(leased_workers)
    return ", ".join(f"{one.hostname} ({one.pid})" for one in workers) or "another process"
