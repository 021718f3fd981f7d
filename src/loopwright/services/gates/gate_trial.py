"""Try proposed gates once, on the base commit, in a temporary clean clone."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from loopwright.adapters.detect import Detected, ProposedGate, Trial
from loopwright.config.resolve import Settings
from loopwright.core.gates.verdicts import is_bad, passed, telling_line
from loopwright.core.values.findings import Verdict, Witnessed
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.wording import one_line
from loopwright.engine.processes.process_environment import below
from loopwright.services.gates.clean_tree import CleanTree, clean_tree
from loopwright.services.homes.context import Place

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """The result of running one command."""

    passed: bool
    reason: str = ""
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The whole trial, without commands that did not run."""

    setup: Ran | None = None
    gates: dict[str, Ran] = field(default_factory=dict)
    seen: dict[str, Witnessed | None] = field(default_factory=dict)
    """What the witness saw in the test runners of each gate."""

    def results(self, detected: Detected) -> dict[str, Trial]:
        """Return the result of each gate for the project file, by name."""
        found = {name: Trial(passed=ran.passed, reason=ran.reason) for name, ran in self.gates.items()}
        for gate in detected.gates:
            if reason := self.why_not(gate):
                found[gate.name] = Trial(passed=False, reason=reason)
        return found

    def why_not(self, gate: ProposedGate) -> str:
        """Return why a gate could not run; empty if it did, or was not tried."""
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
    tell("making a clean clone")
    copied = below(place.subfolder, detected.env_files)
    async with clean_tree(
        place.root, sha, settings, subfolder=place.subfolder, copy_files=copied, landed=True
    ) as tree:
        setup = None
        if command := detected.preparation:
            tell(f"setup: {command}")
            limit = settings.values.setup_timeout
            setup = await ran_in(tree, GateCommand(name="setup", command=command, timeout_s=limit))
            if not setup.passed:
                return Tried(setup=setup)
        gates, seen = {}, {}
        for gate in runnable:
            tell(f"{gate.name}: {gate.command}")
            gates[gate.name], seen[gate.name] = await _tried_in(tree, gate.gate())
        return Tried(setup=setup, gates=gates, seen=seen)


async def ran_in(tree: CleanTree, command: GateCommand) -> Ran:
    """Run one command in a clean tree."""
    return (await _tried_in(tree, command))[0]


async def _tried_in(tree: CleanTree, command: GateCommand) -> tuple[Ran, Witnessed | None]:
    tried = await tree.judge((command,))
    ran = _judged(tried.verdict)
    return replace(ran, reason=tried.denial) if tried.denial is not None else ran, tried.seen[0]


def _judged(verdict: Verdict) -> Ran:
    took = sum(result.duration_s for result in verdict.commands)
    if passed(verdict):
        return Ran(passed=True, duration_s=took)
    bad = next((check for check in verdict.checks if is_bad(check)), None)
    first, _, output = bad.message.partition("\n") if bad is not None else ("", "", "")
    if first and (said := telling_line(output)):
        first = f"{first}: {said}"
    if bad is not None and verdict.commands and bad.name != verdict.commands[0].name:
        first = f"{bad.name}: {first}"
    return Ran(passed=False, reason=one_line(first or verdict.reason, 240), duration_s=took)
