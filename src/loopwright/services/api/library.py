"""`from loopwright import Loopwright`: every use case for one repository."""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from loopwright.services.api.caller import Caller
from loopwright.services.api.control import Control, Discovered, Questions
from loopwright.services.api.home import Doctor, Metrics, Projects, Quota, Settings
from loopwright.services.api.plans import Plans
from loopwright.services.api.records import Audit, Receipts
from loopwright.services.api.tasks import Runs, Tasks
from loopwright.services.driving.worker import WorkerNews, work
from loopwright.services.homes.caller import unheard


class Loopwright:
    """Loopwright for one repository.

    Results are values, nothing is printed, and an error is a `loopwright.core.values.errors.LoopwrightError` with a
    stable `code`.

    Attributes:
        plans: check and make plans, submit and drive them, list and follow them.
        tasks: list the tasks of a plan, and show one.
        runs: list and show single processes of agents and gates, and what they printed.
        control: pause, resume, stop, retry, cancel, reject, roll back, accept, take over and hand back.
        questions: list what agents ask, and answer it.
        discovered: list work that agents found outside their task, and decide about it.
        receipts: show, export, verify and replay the record of a plan.
        audit: check finished items, and list the evidence for each criterion.
        projects: list the repositories and loops of the home, set one up, import plans, clean up, restore a backup.
        settings: show every setting with its origin, the gates, and the JSON Schemas.
        doctor: check this machine.
        metrics: how well plans went, and which checks are flaky.
        quota: what is left of the agents' accounts.
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
        variables = dict(os.environ if env is None else env)
        if home is not None:
            variables["LOOPWRIGHT_HOME"] = str(Path(home).resolve())
        caller = Caller(folder=Path(repository).resolve(), env=variables)
        self._caller = caller
        self.plans = Plans(caller)
        self.tasks = Tasks(caller)
        self.runs = Runs(caller)
        self.control = Control(caller)
        self.questions = Questions(caller)
        self.discovered = Discovered(caller)
        self.receipts = Receipts(caller)
        self.audit = Audit(caller)
        self.projects = Projects(caller)
        self.settings = Settings(caller)
        self.doctor = Doctor(caller)
        self.metrics = Metrics(caller)
        self.quota = Quota(caller)

    async def work(
        self,
        *,
        slots: int | None = None,
        until_idle: bool = False,
        stop: asyncio.Event | None = None,
        tell: Callable[[WorkerNews], None] = unheard,
    ) -> None:
        """Be a worker: run the plans of every project in the home until `stop` is set.

        Args:
            slots: How many tasks to run at once; None for the setting `parallel`.
            until_idle: Return as soon as nothing is left to do.
            stop: Set it to return. Running agents continue, and the next worker takes them over.
            tell: Gets what this process begins to do.
        """
        await self._caller.call(
            work, slots=slots, until_idle=until_idle, stop=stop or asyncio.Event(), tell=tell
        )
