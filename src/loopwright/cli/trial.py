"""Trying proposed gates once, on the base commit, in a clean clone that is thrown away."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from loopwright.adapters.agents.environment import agent_environment, secret_values
from loopwright.adapters.detect import Detected, ProposedGate, Trial
from loopwright.adapters.gates.commands import CommandGate
from loopwright.adapters.git import GitRepository, workspace_env
from loopwright.adapters.git.files import delete
from loopwright.adapters.host import new_id
from loopwright.adapters.keepers import ProcessKeepers
from loopwright.app import chosen_sandbox, home_view
from loopwright.cli.context import Place
from loopwright.cli.lines import one_line
from loopwright.config.resolve import Settings
from loopwright.core.containment import Containment
from loopwright.core.errors import UserError
from loopwright.core.findings import Verdict
from loopwright.core.ids import Kind
from loopwright.core.policy import GateCommand
from loopwright.core.verdicts import is_bad, passed
from loopwright.engine.checks import denial_in
from loopwright.engine.containing import Shared, contain_gate
from loopwright.engine.surroundings import CACHES, below
from loopwright.engine.world import HomePaths
from loopwright.ports import GateRequest

FOLDER: Final = "trials"
"""Below the home, so that the gates are tried on the disk that workspaces will be on."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What running one command gave."""

    passed: bool
    reason: str = ""
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The whole trial; what was not run is not in it."""

    setup: Ran | None = None
    gates: dict[str, Ran] = field(default_factory=dict)

    def results(self, detected: Detected) -> dict[str, Trial]:
        """Return what the project file should know of each gate, by name."""
        found = {name: Trial(passed=ran.passed, reason=ran.reason) for name, ran in self.gates.items()}
        for gate in detected.gates:
            if reason := self.why_not(gate):
                found[gate.name] = Trial(passed=False, reason=reason)
        return found

    def why_not(self, gate: ProposedGate) -> str:
        """Say why a gate could not be run; empty when it was, or when nobody tried."""
        if gate.missing:
            return f"not installed here: {', '.join(gate.missing)}"
        if self.setup is not None and not self.setup.passed:
            return "the setup command did not work"
        return ""


async def try_gates(place: Place, sha: str, detected: Detected, settings: Settings, tell: Tell) -> Tried:
    """Run the setup command, then every gate whose programs are there, in order, in one clean clone."""
    runnable = [gate for gate in detected.gates if not gate.missing]
    if not runnable:
        return Tried()
    scratch = settings.home / FOLDER / new_id(Kind.RUN)
    try:
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        scratch.mkdir(parents=True, mode=0o700)
    except OSError as error:
        raise UserError(
            f"the home {settings.home} cannot be written: {error.strerror}",
            hint="make it writable, set LOOPWRIGHT_HOME to another folder, or use --no-run",
        ) from error
    try:
        tell("making a clean clone")
        repository = GitRepository(place.root, project_id="trial", home=scratch)
        trial = _Trial(scratch, settings, place.subfolder, borrowed=await repository.borrowed())
        copied = below(place.subfolder, detected.env_files)
        await repository.checkout(trial.tree, sha, copy_files=copied)
        setup = None
        if detected.setup is not None:
            tell(f"setup: {detected.setup}")
            limit = settings.values.setup_timeout
            setup = await trial.run(GateCommand(name="setup", command=detected.setup, timeout_s=limit))
            if not setup.passed:
                return Tried(setup=setup)
        gates = {}
        for gate in runnable:
            tell(f"{gate.name}: {gate.command}")
            gates[gate.name] = await trial.run(gate.gate())
        return Tried(setup=setup, gates=gates)
    finally:
        await asyncio.to_thread(delete, scratch)
        with suppress(OSError):  # another trial is going on beside this one
            scratch.parent.rmdir()


class _Trial:
    """One clone, and the commands that are run in it one after the other, each under a keeper."""

    def __init__(
        self, scratch: Path, settings: Settings, subfolder: str, *, borrowed: tuple[Path, ...]
    ) -> None:
        self.tree = scratch / "trees" / "trial"
        self._subfolder = subfolder
        self._scratch = scratch
        cache = HomePaths(root=settings.home).cache()
        self._sandbox = chosen_sandbox(settings, os.environ).sandbox
        if self._sandbox.level is not Containment.NONE:
            # What runs share is theirs alone; here nobody has run anything yet.
            cache = scratch / "cache"
            cache.mkdir(mode=0o700)
        self._shared = Shared(borrowed=borrowed, caches=(cache,), network=settings.values.sandbox.network)
        values = {name: str(cache / folder) for name, folder in CACHES.items()}
        values |= {**workspace_env(self.tree), "CI": "true"}
        env = agent_environment(os.environ, None, settings.values.environment, values)
        self._env, self._view = home_view(settings, os.environ)(env, None, scratch / "user")
        self._keepers = ProcessKeepers()
        self._gate = CommandGate(secrets=secret_values(self._env))

    async def run(self, command: GateCommand) -> Ran:
        run_id = new_id(Kind.RUN)
        request = GateRequest(
            run_id=run_id,
            directory=self._scratch / "runs" / run_id,
            tree=self.tree / self._subfolder,
            commands=(command,),
            env=self._env,
            home=self._sandbox.view(self._view),
        )
        request, walls = contain_gate(self._sandbox, request, self.tree, self._shared)
        await self._keepers.start(self._gate.spec(request))
        try:
            ended = await self._keepers.wait(request.directory)
        finally:
            # A keeper outlives us on purpose; after Ctrl-C this one must not.
            await self._keepers.end(request.directory, polite=False)
            await self._keepers.sweep(run_id)
        verdict = self._gate.verdict(request, ended)
        ran = _judged(verdict)
        denial = denial_in(walls, verdict)
        return replace(ran, reason=denial) if denial is not None else ran


def _judged(verdict: Verdict) -> Ran:
    took = sum(result.duration_s for result in verdict.commands)
    if passed(verdict):
        return Ran(passed=True, duration_s=took)
    bad = next((check for check in verdict.checks if is_bad(check)), None)
    first, _, output = bad.message.partition("\n") if bad is not None else ("", "", "")
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "")
    if first and last:
        first = f"{first}: {last}"
    if bad is not None and verdict.commands and bad.name != verdict.commands[0].name:
        first = f"{bad.name}: {first}"
    return Ran(passed=False, reason=one_line(first or verdict.reason, 240), duration_s=took)
