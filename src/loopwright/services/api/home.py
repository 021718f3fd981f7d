"""The home and this machine: projects, settings, health, figures and accounts."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from loopwright.services import metrics, quota
from loopwright.services import settings as settings_in_force
from loopwright.services.api.caller import Noun
from loopwright.services.control.decisions import open_account
from loopwright.services.doctor import checkup
from loopwright.services.doctor.checkup import Finding
from loopwright.services.homes.caller import unheard
from loopwright.services.homes.context import look_settings
from loopwright.services.metrics import FlakyView
from loopwright.services.projects import cleaning, projects, proposal
from loopwright.services.projects.cleaning import Leftovers
from loopwright.services.projects.projects import LoopPlans, ProjectPlans, Rebuilt, Restored
from loopwright.services.projects.proposal import Proposal
from loopwright.services.quota import Accounts, Drawn
from loopwright.services.settings import CheckedSettings, GateCommand, ShownSettings, published_schema
from loopwright.services.views.events import Command


class Projects(Noun):
    """The repositories of the home."""

    async def list(self) -> tuple[ProjectPlans, ...]:
        """Return the repositories of the home, by their paths."""
        return await self._caller.look(projects.list_projects)

    async def loops(self, *, everywhere: bool = False) -> tuple[LoopPlans, ...]:
        """Return the loops of this repository, or of the whole home: one for each source that had a plan."""
        return await self._caller.look(projects.list_loops, everywhere=everywhere)

    async def propose(
        self,
        agent: str | None = None,
        *,
        run: bool = True,
        replace: bool = False,
        tell: Callable[[str], None] = unheard,
    ) -> Proposal:
        """Look at this repository, try its checks once, and propose a loopwright.toml.

        Args:
            agent: The agent to write into the file; None for the default.
            run: Try the checks, in a clean clone.
            replace: Propose one though the project has such a file.
            tell: Gets a line when a check begins.
        """
        return await self._caller.call(proposal.propose, agent, run=run, may_exist=replace, tell=tell)

    async def write(self, proposed: Proposal) -> bool:
        """Write a proposed file, and a sample plan if the project has no work yet; return whether it did that."""
        return await self._caller.look(proposal.write, proposed)

    async def import_plans(self) -> Rebuilt:
        """Import the plans of this repository that the home does not know."""
        return await self._caller.call(projects.import_here)

    async def leftovers(self, plan: str | None = None, *, unproven: bool = False) -> tuple[Leftovers, ...]:
        """Return the branches and pins of ended plans whose work is proven to be on one of your branches."""
        return await self._caller.act(cleaning.leftovers, plan, unproven=unproven)

    async def delete(self, found: Sequence[Leftovers]) -> int:
        """Delete leftovers, and return how many there were."""
        return await self._caller.act(cleaning.delete, found)

    async def restore(self, backup: Path | str) -> Restored:
        """Put a backup in the place of the home's database, and compare it with what happened since."""
        return await self._caller.call(projects.restore, self._caller.path(backup))


class Settings(Noun):
    """The settings in force."""

    async def show(self, file: Path | None = None) -> ShownSettings:
        """Return every setting with its value, its origin and what it means."""
        return await self._caller.look(settings_in_force.show_settings, file)

    async def check(self, file: Path | None = None) -> CheckedSettings:
        """Check every setting and the options of agents; raise an error that names the first wrong one."""
        return await self._caller.look(settings_in_force.check_settings, file)

    async def gates(self, file: Path | None = None) -> tuple[GateCommand, ...]:
        """Return the gates that a plan would start with now."""
        return (await self._caller.look(look_settings, file)).gates

    async def schema(self, name: str) -> Any:
        """Return a published JSON Schema, such as `plan`, `config` or `receipt`."""
        return await self._caller.look(published_schema, name)


class Doctor(Noun):
    """The health of this machine."""

    async def check(self, settings_file: Path | None = None) -> tuple[Finding, ...]:
        """Return what was found: git, Python, agents, disk, database and sandbox."""
        return await self._caller.look(checkup.checkup, settings_file)

    async def probe(
        self, agent: str | None = None, *, account: str | None = None, model: str | None = None
    ) -> Finding:
        """Let an agent make one short turn with your login. It costs as much as one answer."""
        return await self._caller.look(checkup.probe, agent, account=account, model=model)


class Metrics(Noun):
    """The results of plans."""

    async def show(
        self, plan: str | None = None, *, last: int = metrics.MOST_PLANS, with_runs: bool = False
    ) -> metrics.Metrics:
        """Return attempts, time, cost and first-pass rate of one plan, or of the newest of this repository."""
        return await self._caller.look(metrics.metrics, plan, last=last, with_runs=with_runs)

    async def flaky(self) -> tuple[FlakyView, ...]:
        """Return the checks that failed and passed on the same tree."""
        return await self._caller.look(metrics.flaky)


class Quota(Noun):
    """The accounts that agents use."""

    async def list(self) -> Accounts:
        """Return the accounts of this home and of the settings, with their windows."""
        return await self._caller.look(quota.accounts)

    async def drawn(self, name: str) -> tuple[Drawn, ...]:
        """Return the use of an account: AGENT, AGENT/ACCOUNT or AGENT:MODEL."""
        return await self._caller.look(quota.drawn, name)

    async def open(self, name: str) -> Command:
        """Let the tasks continue that wait for an account."""
        return await self._caller.act(open_account, name)
