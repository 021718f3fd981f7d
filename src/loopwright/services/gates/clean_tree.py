"""Run gates for the user, outside any plan: in a temporary clean clone, contained as in a run."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopwright.adapters.agents.environment import agent_environment, with_secrets
from loopwright.adapters.gates.commands import RUNNER, CommandGate
from loopwright.adapters.git import GitRepository, workspace_env
from loopwright.adapters.home.own_sources import own_sources
from loopwright.adapters.machine.files import copy_folder, delete
from loopwright.adapters.machine.host import new_id
from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.adapters.sandbox.container import NOTES
from loopwright.app import chosen_sandbox, environments, home_view, secrets_of
from loopwright.config.resolve import Settings
from loopwright.core.rows.model import Plan
from loopwright.core.values.containment import Containment
from loopwright.core.values.errors import UserError
from loopwright.core.values.findings import Verdict, Witnessed
from loopwright.core.values.ids import Kind
from loopwright.core.values.policy import GateCommand
from loopwright.engine.gates.gate_runs import denial_in
from loopwright.engine.processes.process_environment import CACHES, gate_cache_values, private_cache
from loopwright.engine.processes.sandboxing import Shared, contain_gate
from loopwright.engine.rows.world import HomePaths
from loopwright.ports import Exit, GateRequest, Repository, Tracked
from loopwright.services.homes.caller import environment

log = logging.getLogger(__name__)

FOLDER: Final = "trials"
"""In the home, so that the gates run on the same disk as workspaces."""

FindCommit = Callable[[Repository], Awaitable[str]]
"""Returns the commit to clone; it may be created for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The result of running commands in a clean tree."""

    verdict: Verdict
    seen: Sequence[Witnessed | None]
    """What the witness saw in their test runners."""
    exit: Exit
    denial: str | None
    """What the sandbox denied to a command that failed."""
    directory: Path
    """The directory of its records, as long as the tree exists."""


class CleanTree:
    """One clone, and the commands that run in it one after the other, each under a keeper."""

    def __init__(
        self,
        scratch: Path,
        settings: Settings,
        subfolder: str,
        *,
        checkout: Path,
        borrowed: tuple[Path, ...],
        plan: Plan | None = None,
        landed: bool = False,
        keepers: ProcessKeepers | None = None,
    ) -> None:
        """Prepare it; with a plan, its commands have the environment that the plan was submitted from.

        If the commit is `landed`, its gates fill the compiler caches that later gates read. Otherwise they use a copy.
        `keepers` are those of another tree that is used at the same time.
        """
        self.tree = scratch / "trees" / "clean"
        self.tracked: Tracked | None = None
        self._subfolder = subfolder
        self._scratch = scratch
        paths = HomePaths(root=settings.home)
        cache, self._filled = paths.cache(), paths.gate_cache(checkout)
        self._sandbox = chosen_sandbox(settings, environment(), refuse=True).sandbox
        if self._sandbox.level is not Containment.NONE:
            # Runs share a cache; a clean tree has none yet.
            cache = scratch / "cache"
            cache.mkdir(mode=0o700)
        if landed:
            self._filled.mkdir(parents=True, exist_ok=True, mode=0o700)
        caches = (cache, self._filled) if landed else (cache,)
        self._shared = Shared(
            borrowed=borrowed, caches=caches, network=settings.values.sandbox.network, checkout=checkout
        )
        values = {name: str(cache / folder) for name, folder in CACHES.items()}
        values |= gate_cache_values(self._filled if landed else private_cache(self.tree))
        values |= {**workspace_env(self.tree), "CI": "true"}
        given = (*settings.values.environment, *settings.values.environment_plain)
        if plan is not None:
            env = environments(settings, environment())(plan, None, values)
        else:
            here = with_secrets(
                environment(),
                settings.values.env_file,
                settings.values.secrets_from,
                settings.values.environment,
                environment(),
            )
            env = agent_environment(here, None, given, values)
        env = own_sources(env, checkout, self.tree)
        self._env, self._view = home_view(settings, environment())(env, None, scratch / "user")
        self._runners = settings.values.test_runners
        self._closes = keepers is None
        self.keepers = keepers or ProcessKeepers(loads=RUNNER, containers=settings.home / NOTES)
        secret = plan.policy.environment if plan is not None else settings.values.environment
        self._gate = CommandGate(secrets=secrets_of(environment(), self._env, secret))

    async def copy_caches(self) -> None:
        """Give the tree its own copy of the compiler caches; without one its gates compile everything."""
        try:
            await copy_folder(self._filled, private_cache(self.tree))
        except OSError as trouble:
            log.warning("compiler caches were not copied", extra={"why": str(trouble)})

    async def judge(
        self,
        commands: tuple[GateCommand, ...],
        *,
        only: frozenset[str] = frozenset(),
        more: Mapping[str, str] | None = None,
    ) -> Trial:
        """Run the commands as a gate does, with `more` variables: all of their tests, or `only` these."""
        run_id = new_id(Kind.RUN)
        request = GateRequest(
            run_id=run_id,
            directory=self._scratch / "runs" / run_id,
            tree=self.tree / self._subfolder,
            commands=commands,
            env={**self._env, **(more or {})},
            home=self._sandbox.view(self._view),
            runners=self._runners,
            tracked=self.tracked,
            only=only,
        )
        request, walls = contain_gate(self._sandbox, request, self.tree, self._shared)
        await self.keepers.start(self._gate.spec(request))
        try:
            ended = await self.keepers.wait(request.directory)
        finally:
            # A keeper outlives us on purpose; after Ctrl-C this one must not.
            await self.keepers.end(request.directory, polite=False)
            await self.keepers.sweep(run_id)
        verdict = self._gate.verdict(request, ended)
        return Trial(
            verdict=verdict,
            seen=self._gate.witnessed(request.directory, len(commands)) or [None] * len(commands),
            exit=ended,
            denial=denial_in(walls, verdict),
            directory=request.directory,
        )

    def python_path(self, folder: Path) -> str:
        """Return the PYTHONPATH of its commands with one more folder in front."""
        return os.pathsep.join(filter(None, (str(folder), self._env.get("PYTHONPATH"))))

    def close(self) -> None:
        """Stop the process that starts keepers."""
        if self._closes:
            self.keepers.close()


@asynccontextmanager
async def clean_tree(
    repository: Path,
    commit: str | FindCommit,
    settings: Settings,
    *,
    subfolder: str,
    copy_files: Sequence[str],
    plan: Plan | None = None,
    landed: bool = False,
    keepers: ProcessKeepers | None = None,
) -> AsyncIterator[CleanTree]:
    """Make a clean clone of a commit to run gates in, and delete it afterwards.

    `landed` says that the commit is the user's own: its gates fill the compiler caches that later gates read.
    `keepers` are those of another tree that is used at the same time.
    """
    scratch = settings.home / FOLDER / new_id(Kind.RUN)
    try:
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        scratch.mkdir(parents=True, mode=0o700)
    except OSError as error:
        raise UserError(
            f"the home {settings.home} cannot be written: {error.strerror}",
            code="home_not_writable",
            hint="make it writable, or set LOOPWRIGHT_HOME to another folder",
        ) from error
    try:
        source = GitRepository(repository, project_id="trial", home=scratch)
        tree = CleanTree(
            scratch,
            settings,
            subfolder,
            checkout=repository,
            borrowed=await source.borrowed(),
            plan=plan,
            landed=landed,
            keepers=keepers,
        )
        try:
            sha = commit if isinstance(commit, str) else await commit(source)
            tree.tracked = await source.checkout(tree.tree, sha, copy_files=copy_files)
            if not landed:
                await tree.copy_caches()
            yield tree
        finally:
            tree.close()
    finally:
        await asyncio.to_thread(delete, scratch)
        with suppress(OSError):  # another trial runs at the same time
            scratch.parent.rmdir()
