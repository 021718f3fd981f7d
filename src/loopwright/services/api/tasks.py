"""Tasks of plans, and single processes of agents and gates with what they printed."""

from collections.abc import AsyncIterator, Mapping

from loopwright.core.values.errors import NotFound
from loopwright.services.api.caller import Noun
from loopwright.services.metrics import RunFigures, metrics
from loopwright.services.recordings.log_runs import RoleName
from loopwright.services.recordings.output import Output, followed, printed
from loopwright.services.views.changes import Change, changes_of
from loopwright.services.views.plans import Overview, TaskView
from loopwright.services.views.tasks import RunView, TaskSeen, look_up


class Tasks(Noun):
    """The tasks of plans."""

    async def list(self, plan: str) -> tuple[TaskView, ...]:
        """Return the tasks of a plan, in its order."""
        found = await self._caller.look(look_up, plan)
        if not isinstance(found, Overview) or found.seen is None:
            raise NotFound(f"{plan} is not a plan", code="plan_expected", hint="name a plan")
        return found.seen.view.tasks

    async def get(self, task: str) -> TaskSeen:
        """Return a task with its attempts, checks and decisions: by its id, its name, or PLAN/TASK."""
        found = await self._caller.look(look_up, task)
        if not isinstance(found, TaskSeen):
            raise NotFound(f"{task} is not a task", code="task_expected", hint="name a task")
        return found

    async def changes(self, task: str) -> Mapping[int, Change | None]:
        """Return what each attempt at a task changed, by its number; 0 is what landed."""
        return await self._caller.call(changes_of, (await self.get(task)).detail)


class Runs(Noun):
    """Single processes of agents and gates."""

    async def list(self, plan: str) -> tuple[RunFigures, ...]:
        """Return the runs of a plan with their role, state, time and cost."""
        return (await self._caller.look(metrics, plan, with_runs=True)).runs

    async def get(self, run: str) -> RunView:
        """Return the facts of a run; an id or the beginning of one names it."""
        found = await self._caller.look(look_up, run)
        if not isinstance(found, RunView):
            raise NotFound(f"{run} is not a run", code="run_expected", hint="name a run by its id")
        return found

    async def output(
        self, target: str, *, role: RoleName | None = None, attempt: int | None = None
    ) -> tuple[Output, ...]:
        """Return what a run, the runs of a task's newest attempt, or a plan's gate printed so far."""
        return await self._caller.look(
            lambda: tuple(printed(target, role=role, attempt=attempt))  # reads files all the while
        )

    async def follow_output(
        self, target: str, *, role: RoleName | None = None, attempt: int | None = None
    ) -> AsyncIterator[Output]:
        """Yield what is printed, run after run as they come, until the target is finished."""
        async for one in self._caller.each(followed(target, role=role, attempt=attempt)):
            yield one
