"""Plans: check, make, submit and drive them, list them, and follow what happens in them."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from loopwright.services.api.caller import Noun
from loopwright.services.driving.driver import Rested, drive
from loopwright.services.driving.recorded_environments import submitting, taken_over
from loopwright.services.homes.caller import unheard
from loopwright.services.homes.read_only_home import find_plan, glancing
from loopwright.services.homes.session import Session
from loopwright.services.plans.checking import PlanReport, RunOnBase, examine
from loopwright.services.plans.planning import GoalRequest, Planned, check_goal, plan_goal
from loopwright.services.preflight.run_inputs import meant_path
from loopwright.services.runs.preparation import (
    NothingToDo,
    Prepared,
    RunRequest,
    Submitted,
    Tell,
    prepare,
    run,
    submit,
)
from loopwright.services.views.changes import Span, span_of, write_diff
from loopwright.services.views.events import RecordedEvent, events_after, followed
from loopwright.services.views.plans import (
    Overview,
    PlanSummary,
    Seen,
    Step,
    known_about,
    list_plans,
    look_at,
    next_steps,
)
from loopwright.services.views.plans import overview as _overview


class Plans(Noun):
    """Plans, before and while they run."""

    async def check(
        self,
        plan: Path | str,
        *,
        source: str | None = None,
        run: RunOnBase = RunOnBase.ALL,
        settings_file: Path | None = None,
        tell: Callable[[str], None] = unheard,
    ) -> PlanReport:
        """Read a plan and find out what running it would mean.

        Args:
            plan: The file or folder that has the work.
            source: Its format; None to recognise it.
            run: What to run on the base commit.
            settings_file: The project's settings; None for the `loopwright.toml` of the base commit.
            tell: Gets a line of progress now and then.
        """
        with self._caller.here():
            path = meant_path(self._caller.path(plan), source)
            return await examine(path, source, run=run, settings_file=settings_file, tell=tell)

    async def make(
        self,
        goal: str,
        *,
        out: Path | str | None = None,
        settings: Mapping[str, Any] | None = None,
        packet: str | None = None,
        force: bool = False,
        tell: Callable[[str], None] = unheard,
    ) -> Planned:
        """Let an agent write the plan for a goal.

        Args:
            goal: What is to be done, in words.
            out: Where to put the plan; None for the folder `plans`, by the first words of the goal.
            settings: Settings by their keys, above those of the project, such as `{"agent": "claude"}`.
            packet: The id of a packet to plan from.
            force: Plan again, and replace the file that is there.
            tell: Gets a line of progress now and then.
        """
        check_goal(goal)
        request = GoalRequest(
            goal=goal,
            out=None if out is None else self._caller.path(out),
            flags=settings or {},
            packet=packet,
            force=force,
        )
        return await self._caller.call(plan_goal, request, tell=tell)

    async def run(self, plan: RunRequest | Path | str, *, tell: Tell | None = None) -> Rested | NothingToDo:
        """Prepare and submit a plan, and drive it until it rests: until it ends, waits for you, or is paused.

        A plan that was submitted before continues. One that ended is returned as it is.
        """
        prepared = await self.prepare(plan, tell=tell)
        if isinstance(prepared, NothingToDo):
            return prepared
        async with prepared:
            return await self._caller.call(run, prepared)

    async def prepare(
        self, plan: RunRequest | Path | str, *, tell: Tell | None = None
    ) -> Prepared | NothingToDo:
        """Check and evaluate a plan, before any money is spent; close the result, or use it in `async with`.

        `tell` gets notes and progress.
        """
        request = plan if isinstance(plan, RunRequest) else RunRequest(plan=Path(plan))
        request = replace(request, plan=self._caller.path(request.plan))
        if tell is None:
            return await self._caller.call(prepare, request)
        return await self._caller.call(prepare, request, tell=tell)

    async def submit(self, prepared: Prepared) -> Submitted:
        """Submit a prepared plan. A worker of the home executes it, or `drive` does."""
        return await self._caller.call(submit, prepared)

    async def drive(self, plan: str | None = None) -> Rested:
        """Drive a submitted or resumed plan until it rests; None for the newest of this repository."""
        return await self._caller.act(_drive, plan)

    async def list(self, *, everywhere: bool = False, limit: int = 20) -> tuple[PlanSummary, ...]:
        """Return the newest plans of this repository, or of every repository of the home, the newest first."""

        def load() -> tuple[PlanSummary, ...]:
            with glancing() as look:
                return look.store.read_sync(
                    lambda tx: list_plans(tx, look, everywhere=everywhere, limit=limit)
                )

        return await self._caller.look(load)

    async def get(self, plan: str | None = None) -> Seen:
        """Return a plan as it is now, with the processes behind it; None for the newest of this repository."""

        def load() -> Seen:
            with glancing() as look:
                return look.store.read_sync(lambda tx: look_at(tx, look, find_plan(tx, plan).id))

        return await self._caller.look(load)

    async def overview(self, plan: str | None = None) -> Overview:
        """Return a plan with its record, the workers of the home, the closed accounts and the newest plans."""

        def load() -> Overview:
            with glancing() as look:
                return _overview(look, look.store.read_sync(lambda tx: find_plan(tx, plan)))

        return await self._caller.look(load)

    async def next_steps(self, plan: str | None = None) -> tuple[Step, ...]:
        """Return the commands that help with a plan now, the most useful first."""
        seen = await self.get(plan)
        known = await self._caller.look(known_about, seen.view, is_worked_on=seen.worked)
        return next_steps(seen.view, known)

    async def events(
        self, plan: str | None = None, *, after: int = 0, limit: int = 500
    ) -> tuple[RecordedEvent, ...]:
        """Return the events of a plan with a higher number than `after`, the oldest first."""
        return await self._caller.look(events_after, plan, after=after, limit=limit)

    async def follow(
        self, plan: str | None = None, *, after: int | None = None
    ) -> AsyncIterator[RecordedEvent | Seen]:
        """Yield the events of a plan as they come, and the plan itself once it rests.

        `after` is the number of the last event that you know; None for only new events.
        """
        with self._caller.here():
            opened = followed(plan)
            it = opened.__enter__()
        try:
            async for one in self._caller.each(it.events(after)):
                yield one
        finally:
            opened.__exit__(None, None, None)

    async def diff(self, target: str | None = None) -> str:
        """Return what a plan, a task or a run changed, as git prints it; None for the default target."""
        pieces: list[bytes] = []
        span: Span = await self._caller.look(span_of, target, tell=unheard)
        await self._caller.call(write_diff, span, pieces.append)
        return b"".join(pieces).decode("utf-8", "replace")


async def _drive(at: Session, plan: str | None) -> Rested:
    row = await at.home.store.read(lambda tx: find_plan(tx, plan))
    with submitting(at.home) as submitter:
        return await drive(at, await taken_over(at.home, row, submitter), submitter)
