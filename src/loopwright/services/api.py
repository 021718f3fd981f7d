"""The library's face: `from loopwright import Loopwright`.

Every use case of the command line, for one repository, as an asynchronous method. Results are values, errors are
`loopwright.core.values.errors.LoopwrightError` with a stable `code`, and nothing is printed.
"""

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopwright.services.homes.caller import called_from

if TYPE_CHECKING:
    from loopwright.engine.views.overview import PlanSummary
    from loopwright.engine.views.views import PlanView
    from loopwright.services.driving.driver import Rested
    from loopwright.services.plans.checking import PlanReport, RunOnBase
    from loopwright.services.plans.planning import Planned
    from loopwright.services.runs.preparation import NothingToDo, Prepared, RunRequest, Tell
    from loopwright.services.runs.submission import Submitted

_SERVICES = "loopwright.services"


class Loopwright:
    """Loopwright for one repository.

    Attributes:
        runs: prepare, submit and run plans, and look at them.
        plans: check a plan, or have one made for a goal.
        control: pause, resume, stop, retry, cancel, reject, roll back, accept, take over and hand back.
        questions: list what agents ask, and answer it.
        discovered: list work that agents found outside of their task, and decide about it.
        receipts: show, export and verify the record of a plan.
        projects: list the repositories of the home, import plans, restore a backup.
        doctor: check this machine.
        metrics: how well plans went, and which checks are flaky.
        quota: what is left of the agents' accounts.
        audit: whether finished items really are.
    """

    def __init__(
        self, repository: Path | str, *, home: Path | str | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        """Work in a repository.

        Args:
            repository: A folder in a git repository. Relative paths are relative to it.
            home: Where Loopwright keeps its database and workspaces; None for what the environment says.
            env: The variables that settings, agents and gates are taken from; None for those of this process.
        """
        self._folder = Path(repository).resolve()
        self._env = dict(os.environ if env is None else env)
        if home is not None:
            self._env["LOOPWRIGHT_HOME"] = str(Path(home).resolve())
        self.runs = Runs(self._called, self._folder)
        self.plans = Plans(self._called, self._folder)
        self.control = self._noun("control.decisions", "control.finishing", "control.handover")
        self.questions = self._noun("questions.listing", "questions.answering")
        self.discovered = self._noun("control.discoveries")
        self.receipts = self._noun("receipts.receipts")
        self.projects = self._noun("projects.projects", "projects.cleaning", "projects.restoring")
        self.doctor = self._noun("doctor.checkup")
        self.metrics = self._noun("metrics.figures")
        self.quota = self._noun("quota.accounts")
        self.audit = self._noun("audit.finished_items")

    def _noun(self, *modules: str) -> "Functions":
        return Functions(self._called, tuple(f"{_SERVICES}.{one}" for one in modules))

    @contextmanager
    def _called(self) -> Iterator[None]:
        with called_from(self._folder, self._env):
            yield


_Called = Callable[[], Any]
"""Opens a context in which services work for one repository."""


class Runs:
    """Runs of plans."""

    def __init__(self, called: _Called, folder: Path) -> None:
        """Work for the repository that `called` stands for."""
        self._called = called
        self._folder = folder

    async def run(
        self, plan: "RunRequest | Path | str", *, tell: "Tell | None" = None
    ) -> "Rested | NothingToDo":
        """Prepare and submit a plan, and drive it until it rests: until it ends, waits for you, or is paused.

        A plan that was submitted before continues; one that ended is returned as it is.
        """
        from loopwright.services.runs.preparation import NothingToDo
        from loopwright.services.runs.submission import run

        with self._called():
            prepared = await self.prepare(plan, tell=tell)
            if isinstance(prepared, NothingToDo):
                return prepared
            async with prepared:
                return await run(prepared)

    async def prepare(
        self, plan: "RunRequest | Path | str", *, tell: "Tell | None" = None
    ) -> "Prepared | NothingToDo":
        """Check and evaluate a plan, before any money is spent; close the result, or use it in `async with`.

        `tell` gets notes and progress. Raise an error with a `code` if the plan cannot run.
        """
        from loopwright.services.runs.preparation import RunRequest, prepare

        request = plan if isinstance(plan, RunRequest) else RunRequest(plan=Path(plan))
        request = replace(request, plan=self._folder / request.plan)
        with self._called():
            return await (prepare(request) if tell is None else prepare(request, tell=tell))

    async def submit(self, prepared: "Prepared") -> "Submitted":
        """Submit a prepared plan; a worker of the home executes it, or `drive` does."""
        from loopwright.services.runs.submission import submit

        with self._called():
            return await submit(prepared)

    async def drive(self, plan: str | None = None) -> "Rested":
        """Drive a submitted or resumed plan until it rests; None for the newest of this repository."""
        from loopwright.services.driving.driver import drive
        from loopwright.services.driving.submitters import submitting, taken_over
        from loopwright.services.homes.read_only_home import find_plan
        from loopwright.services.homes.session import session

        with self._called():
            async with session() as at:
                row = await at.home.store.read(lambda tx: find_plan(tx, plan))
                with submitting(at.home) as submitter:
                    return await drive(at, await taken_over(at.home, row, submitter), submitter)

    async def show(self, plan: str | None = None) -> "PlanView":
        """Return a plan as it is now; None for the newest of this repository."""
        from loopwright.engine.rows.world import HomePaths
        from loopwright.engine.views.views import plan_view
        from loopwright.services.homes.read_only_home import find_plan
        from loopwright.services.homes.session import session

        with self._called():
            async with session() as at:
                paths = HomePaths(root=at.home.root)
                return await at.home.store.read(lambda tx: plan_view(tx, find_plan(tx, plan).id, paths))

    async def list(self, *, limit: int = 20) -> "tuple[PlanSummary, ...]":
        """Return the newest plans of this repository, the newest first."""
        from loopwright.engine.views.overview import plan_summaries
        from loopwright.services.homes.read_only_home import project_here
        from loopwright.services.homes.session import session

        with self._called():
            async with session() as at:
                return tuple(
                    await at.home.store.read(
                        lambda tx: plan_summaries(tx, project_path=project_here(), limit=limit)
                    )
                )


class Plans:
    """Plans before they run."""

    def __init__(self, called: _Called, folder: Path) -> None:
        """Work for the repository that `called` stands for."""
        self._called = called
        self._folder = folder

    async def check(
        self,
        plan: Path | str,
        *,
        source: str | None = None,
        run: "RunOnBase | None" = None,
        tell: Callable[[str], None] | None = None,
    ) -> "PlanReport":
        """Read a plan and find out what running it would mean.

        Args:
            plan: The file or folder that has the work.
            source: Its format; None to recognise it.
            run: What to run on the base commit; None for the gates and every acceptance command.
            tell: Gets a line of progress now and then.
        """
        from loopwright.services.homes.caller import unheard
        from loopwright.services.plans.checking import RunOnBase, examine
        from loopwright.services.preflight.run_inputs import meant_path

        with self._called():
            path = meant_path(self._folder / plan, source)
            return await examine(path, source, run=run or RunOnBase.ALL, tell=tell or unheard)

    async def make(
        self,
        goal: str,
        *,
        out: Path | str | None = None,
        settings: Mapping[str, Any] | None = None,
        packet: str | None = None,
        force: bool = False,
        tell: Callable[[str], None] | None = None,
    ) -> "Planned":
        """Let an agent write the plan for a goal.

        Args:
            goal: What is to be done, in words.
            out: Where to put the plan; None for the folder `plans`, by the first words of the goal.
            settings: Settings by their keys, above those of the project, such as `{"agent": "claude"}`.
            packet: The id of a packet to plan from.
            force: Plan again, and replace the file that is there.
            tell: Gets a line of progress now and then.
        """
        from loopwright.services.homes.caller import unheard
        from loopwright.services.plans.goals import check_goal
        from loopwright.services.plans.planning import GoalRequest, plan_goal

        with self._called():
            check_goal(goal)
            request = GoalRequest(
                goal=goal,
                out=self._folder / out if out is not None else None,
                flags=settings or {},
                packet=packet,
                force=force,
            )
            return await plan_goal(request, tell=tell or unheard)


class Functions:
    """The public functions of some modules of services, as asynchronous methods for one repository.

    A function that takes a session gets one that is open for the length of the call.
    """

    def __init__(self, called: _Called, modules: tuple[str, ...]) -> None:
        """Offer the functions of these modules; they are imported when the first is asked for."""
        self._called = called
        self._modules = modules

    def __dir__(self) -> list[str]:
        """Return the names of the functions."""
        return sorted(self._offered())

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Return a function for this repository."""
        function = None if name.startswith("_") else self._offered().get(name)
        if function is None:
            raise AttributeError(f"there is no {name!r} here; there are: {', '.join(dir(self))}")

        async def call(*arguments: Any, **named: Any) -> Any:
            with self._called():
                return await _awaited(function, arguments, named)

        call.__name__, call.__doc__ = name, function.__doc__
        return call

    def _offered(self) -> dict[str, Callable[..., Any]]:
        found: dict[str, Callable[..., Any]] = {}
        for module in map(import_module, self._modules):
            for name, function in inspect.getmembers(module, inspect.isfunction):
                if function.__module__ == module.__name__ and not name.startswith("_"):
                    found.setdefault(name, function)
        return found


async def _awaited(function: Callable[..., Any], arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    if not inspect.iscoroutinefunction(function):
        # It may wait for a program or a disk, and a thread has the caller's folder and environment too.
        return await asyncio.to_thread(function, *arguments, **named)
    if next(iter(inspect.signature(function).parameters), "") != "at":
        return await function(*arguments, **named)
    from loopwright.services.homes.session import session

    async with session() as at:
        return await function(at, *arguments, **named)
