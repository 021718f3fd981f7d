"""Put the processes of a run into a sandbox.

The keeper stays outside, and so does what runs and records a gate.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from loopwright.adapters.agents.asking import FILES as NOTED_BY_TOOLS
from loopwright.core.rows.model import Plan, Project, Run
from loopwright.core.values.containment import Containment
from loopwright.core.values.errors import CannotRun, Denied
from loopwright.core.values.failures import Failure
from loopwright.core.values.permissions import Access
from loopwright.core.values.states import RunState
from loopwright.engine.processes.process_environment import cache_folder
from loopwright.engine.processes.runs import Ended
from loopwright.engine.rows.world import World
from loopwright.ports import AgentRequest, GateRequest, NoSandbox, Reach, RunSpec, Sandbox

_PERHAPS_DENIED: Final = frozenset({Failure.AGENT_ERROR, Failure.TOOL, Failure.CRASH, Failure.CANNOT_START})
"""Failures that a denial of the sandbox can cause."""
_LAST_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Walls:
    """The sandbox of one run, and what it can reach."""

    sandbox: Sandbox
    reach: Reach

    def denial(self, output: Sequence[str]) -> str | None:
        """Return the sandbox denial that this output complains about."""
        return self.sandbox.denial(output, self.reach)


def needed_sandbox(world: World, plan: Plan) -> Sandbox:
    """Return the sandbox in force here; raise if a plan that requires one would have none."""
    now = world.sandbox()
    if plan.policy.sandbox_required and now.level is Containment.NONE:
        raise Denied(
            "sandbox.required is true, and there is no sandbox here; `loopwright doctor` says what is missing"
        )
    return now


def sandbox_of(world: World, plan: Plan, run: Run, directory: Path | None = None) -> Sandbox:
    """Return the sandbox that a run has, or will have: a run that has begun keeps its own.

    `directory` is where its process is kept, unless that is the run's own.
    """
    begun = run.sandbox if run.state is not RunState.QUEUED else None
    if begun is None:
        return needed_sandbox(world, plan)
    now = world.sandbox()
    if begun == now.level.value and run.sandbox_made_with == now.made_with:
        return now
    if begun == Containment.NONE.value:
        return NoSandbox()
    if world.keepers.look(directory or world.paths.run(run.id)).state == "absent":
        made = f" ({run.sandbox_made_with})" if run.sandbox_made_with else ""
        raise CannotRun(
            f"the run was to start in the sandbox {begun}{made}, which is not in force here any more"
        )
    # It runs in there, or has ended: nothing is started.
    return NoSandbox()


async def with_denial(world: World, walls: Walls, ended: Ended) -> Ended:
    """Return whether an agent failed because its sandbox denied something; a successful agent did not need it."""
    result = ended.result
    if walls.sandbox.level is Containment.NONE or result is None or ended.interrupted:
        return ended
    if result.failure not in _PERHAPS_DENIED:
        return ended
    since = max(0, ended.exit.output_bytes - _LAST_BYTES)
    lines = [line.text async for line in world.keepers.follow(walls.reach.directory, since)]
    return replace(ended, denial=walls.denial(lines) or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What every run of a project can reach besides its own files."""

    borrowed: tuple[Path, ...] = ()
    caches: tuple[Path, ...] = ()
    network: str = "on"
    checkout: Path | None = None
    """The user's own checkout, which gates do not see."""


async def shared_by(
    world: World, project: Project, plan: Plan, sandbox: Sandbox, *, also: Path | None = None
) -> Shared:
    """Return what a contained run shares with others, `also` one more cache; None without a sandbox."""
    if sandbox.level is Containment.NONE:
        return Shared()
    caches = (cache_folder(world, plan),) if world.caches else ()
    caches = (*caches, also) if also is not None else caches
    for folder in caches:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Shared(
        borrowed=await world.borrowed(project),
        caches=caches,
        network=world.network,
        checkout=Path(project.path),
    )


def contain_agent(
    sandbox: Sandbox, spec: RunSpec, request: AgentRequest, shared: Shared
) -> tuple[RunSpec, Walls]:
    """Return how to start an agent in a sandbox: it can write its workspace, unless it may only read."""
    only_reads = request.permissions.access is Access.READ_ONLY
    own = () if only_reads else (request.workspace,)
    noted = NOTED_BY_TOOLS if request.tools else ()
    given = tuple(request.run_directory / name for name in spec.files)
    reach = Reach(
        directory=spec.directory,
        cwd=spec.cwd,
        env=spec.env,
        argv=spec.argv,
        writable=(
            *own,
            *shared.caches,
            *(request.run_directory / name for name in noted),
        ),
        readable=(request.workspace, *given, *shared.borrowed),
        home=spec.home,
        network=shared.network != "off",
    )
    prefix = sandbox.prefix(reach)
    walls = Walls(sandbox=sandbox, reach=reach)
    if not prefix:
        return spec, walls
    # Its tools append to files that have to exist to be visible in the sandbox.
    files = {**spec.files, **dict.fromkeys(noted, "")}
    return replace(spec, argv=(*prefix, *spec.argv), files=files, contained=True), walls


def contain_gate(
    sandbox: Sandbox, request: GateRequest, workspace: Path, shared: Shared
) -> tuple[GateRequest, Walls]:
    """Return how to run a gate's commands in a sandbox, one after the other."""
    reach = Reach(
        directory=request.directory,
        cwd=request.tree,
        env=request.env,
        writable=(workspace, *shared.caches),
        readable=shared.borrowed,
        hidden=(shared.checkout,) if shared.checkout is not None else (),
        home=request.home,
        network=shared.network == "on",
    )
    return replace(request, wrapper=sandbox.prefix(reach)), Walls(sandbox=sandbox, reach=reach)
