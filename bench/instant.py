"""Agents, gates and git that take no time, so that what is left is the cost of the product's own bookkeeping.

The store, the controller, the pipeline of an attempt and the export to state files around them are the real ones.
"""

import os
import random
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from loopwright.adapters import registry
from loopwright.adapters.dispatch.local import LocalEngine
from loopwright.adapters.host import SystemClock, new_id
from loopwright.adapters.membership import LockedMembership
from loopwright.adapters.store.sql import SqlStore
from loopwright.core.findings import Verdict, VerdictStatus
from loopwright.core.model import Leg
from loopwright.core.policy import GateCommand, Policy
from loopwright.engine.submit import Submission
from loopwright.engine.world import HomePaths, Me, World
from loopwright.ports import (
    Base,
    Candidate,
    Exit,
    GateRequest,
    OutputLine,
    PlannedTask,
    PlannedWork,
    RunSpec,
    Sighting,
    Snapshot,
    Standing,
    Step,
    Tripwire,
)

HOST = "host-bench"
GATE = GateCommand(name="whole", command="true", timeout_s=60)
NOTHING = Tripwire(head="", refs={}, status={}, config={})


class InstantKeepers:
    """Whatever is started has ended well."""

    def __init__(self) -> None:
        self._ended: dict[Path, Exit] = {}

    def get_ready(self) -> None:
        """Nothing is needed ahead."""

    async def start(self, spec: RunSpec) -> None:
        """Note its end."""
        now = datetime.now(UTC)
        self._ended[spec.directory] = Exit(
            code=0, ended_by="itself", started_at=now, ended_at=now, output_bytes=0, output_sha256=""
        )

    def look(self, directory: Path) -> Sighting:
        """Say that it has ended, or was never started."""
        ended = self._ended.get(directory)
        return Sighting(state="absent") if ended is None else Sighting(state="exited", exit=ended)

    async def follow(self, directory: Path, offset: int = 0) -> AsyncIterator[OutputLine]:  # noqa: ARG002
        """Yield nothing."""
        lines: tuple[OutputLine, ...] = ()
        for line in lines:
            yield line

    async def wait(self, directory: Path) -> Exit:
        """Return its end."""
        return self._ended[directory]

    async def end(self, directory: Path, *, polite: bool = True) -> Exit:  # noqa: ARG002 - the port's shape
        """Return its end."""
        return self._ended[directory]

    async def write(
        self, directory: Path, n: int, data: str, *, close: bool = False, stops: bool = False
    ) -> None:
        """Take no input."""

    def evidence(self, directory: Path) -> str:  # noqa: ARG002 - the port's shape
        """Return nothing: nothing is written down."""
        return ""

    async def sweep(self, *run_ids: str) -> int:  # noqa: ARG002 - the port's shape
        """Find nothing left."""
        return 0

    def close(self) -> None:
        """Nothing is kept for the next start."""


class InstantRepository:
    """A branch that every candidate lands on."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._tip = self._new()

    def _new(self) -> str:
        return f"{next(self._numbers):040x}"

    async def ensure_branch(self, _branch: str, _sha: str) -> str:
        """Have the branch."""
        return self._tip

    async def tip(self, _branch: str) -> str:
        """Return where it is."""
        return self._tip

    async def standing(self, _branch: str) -> Standing:
        """Return where it is: nobody else moves it."""
        return Standing(tip=self._tip)

    async def steps(self, _tip: str, **_since: str) -> tuple[Step, ...]:
        """Return nothing: there are no commits."""
        return ()

    async def make_workspace(self, *_where: Any, **_how: Any) -> bool:
        """Make nothing."""
        return False

    async def checkout(self, *_where: Any, **_how: Any) -> None:
        """Make nothing."""

    async def remove_workspace(self, _path: Path) -> None:
        """Remove nothing."""

    async def tripwire(self, *_plan_ids: str) -> Tripwire:
        """See nothing."""
        return NOTHING

    def stray(self, _before: Tripwire, _after: Tripwire) -> tuple[str, ...]:
        """Find nothing."""
        return ()

    async def repin(self, *_between: Any, **_how: Any) -> dict[str, str]:
        """Miss nothing."""
        return {}

    async def is_pinned(self, _ref: str) -> bool:
        """Have taken nothing off the branch."""
        return False

    async def snapshot(self, _path: Path, **_how: Any) -> Snapshot:
        """Return a new commit."""
        return Snapshot(sha=self._new(), tree=self._new(), changed=("file",))

    async def landed(self, _tip: str, **_how: Any) -> str | None:
        """Say that it has not landed."""
        return None

    async def candidate(self, *, tip: str, **_how: Any) -> Candidate:
        """Return a new merge."""
        return Candidate(parent=tip, sha=self._new(), tree=self._new(), empty=False)

    async def advance(self, _branch: str, *, new: str, old: str) -> bool:
        """Move the branch."""
        if old != self._tip:
            return False
        self._tip = new
        return True

    async def tree_of(self, sha: str) -> str:
        """Return the tree of a candidate: made right after it."""
        return f"{int(sha, 16) + 1:040x}"

    async def proven(self, _sha: str, _target: str) -> bool:
        """Believe it."""
        return True

    async def drop_quarantine(self, _older_than: datetime) -> list[Any]:
        """Have none."""
        return []

    async def diff_hashes(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """Return something for each."""
        return ["0" * 64 for _ in pairs]


class InstantGate:
    """Every tree passes."""

    def spec(self, request: GateRequest) -> RunSpec:
        """Say how it would be run."""
        return RunSpec(
            run_id=request.run_id, directory=request.directory, argv=("true",), cwd=request.tree, env={}
        )

    def verdict(self, _request: GateRequest, _exit: Exit) -> Verdict:
        """Return that it passed."""
        return Verdict(status=VerdictStatus.PASSED)

    def witnessed(self, _directory: Path, _count: int) -> None:
        """Return that nothing was seen: there is no test runner."""


def instant_world(home: Path, store: SqlStore, *, slots: int = 2) -> World:
    """Return real bookkeeping around instant work."""
    repository: Any = InstantRepository()
    gate: Any = InstantGate()
    membership = LockedMembership(home)
    membership.acquire({"pid": os.getpid()})
    return World(
        me=Me(host_id=HOST, boot_id="boot", hostname="bench", pid=os.getpid(), slots=slots, version="0"),
        paths=HomePaths(root=home),
        store=store,
        clock=SystemClock(),
        ids=new_id,
        chance=random.random,
        keepers=InstantKeepers(),
        repository=lambda _project: repository,
        agent=registry.agent,
        gate=gate,
        engine=LocalEngine(on_error=_raised),
        membership=membership,
        environment=lambda _plan, _invocation, values: dict(values),
        secrets=lambda _env, _given: (),
        workspace_values=lambda _path: {},
        may_act=lambda: True,
    )


def _raised(leg: Leg, error: BaseException) -> None:
    raise RuntimeError(f"leg {leg.id} failed") from error


def submission(root: Path, name: str, count: int, *, slots: int = 2, needs_before: bool = True) -> Submission:
    """Return a plan of many tasks; every tenth waits for the one before it."""
    tasks = tuple(
        PlannedTask(
            key=f"t{n}",
            title=f"Task {n} of {name}",
            description="What is to be done, in a sentence or two, as people write it into a plan." * 3,
            acceptance=(GateCommand(name=f"check {n}", command=f"test -s file-{n}", timeout_s=60),),
            depends_on=(f"t{n - 1}",) if needs_before and n % 10 == 9 else (),
        )
        for n in range(count)
    )
    return Submission(
        root=root,
        subfolder="",
        source_kind="yaml",
        source_path=f"{name}.yaml",
        work=PlannedWork(title=name, tasks=tasks, sha256=name),
        base=Base(ref="trunk", sha="1" * 40),
        policy=Policy(agent="command", parallel=slots, agent_options={"command": {"command": "true"}}),
        gates=(GATE,),
        actor="bench",
    )
