"""Agents, gates and git that take no time, so that what is left is the cost of the product's own bookkeeping.

The store, the controller, the pipeline of an attempt and the export to state files around them are the real ones.
"""

import asyncio
import logging
import os
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from loopwright.adapters import registry
from loopwright.adapters.dispatch.local import LocalEngine
from loopwright.adapters.home.membership import LockedMembership
from loopwright.adapters.machine.host import SystemClock, new_id
from loopwright.adapters.store.sql import SqlStore
from loopwright.core.integrity.gate_reach import Line
from loopwright.core.rows.model import Leg
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.patches import Patch
from loopwright.core.values.policy import GateCommand, Policy
from loopwright.engine.intake.submit import Submission
from loopwright.engine.rows.world import HomePaths, Me, World
from loopwright.engine.worker.worker import Finished, WorkerLoop
from loopwright.ports import (
    Base,
    Candidate,
    Ends,
    Entry,
    Exit,
    GateRequest,
    MergedFile,
    OutputLine,
    PlannedTask,
    PlannedWork,
    RunSpec,
    Sighting,
    Snapshot,
    Standing,
    StateFiles,
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


class Unasked(Exception):
    """Nothing that is measured asks for this; whoever does now has to say here what it comes to in no time."""


class InstantRepository:
    """A branch that every candidate lands on.

    It has every method of the port, so that mypy tells of a new one that is missing here.
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self._tip = self._new()

    def _new(self) -> str:
        return f"{next(self._numbers):040x}"

    async def ensure_branch(self, branch: str, sha: str) -> str:  # noqa: ARG002 - the port's shape
        """Have the branch."""
        return self._tip

    async def tip(self, branch: str) -> str:  # noqa: ARG002 - the port's shape
        """Return where it is."""
        return self._tip

    async def standing(self, branch: str) -> Standing:  # noqa: ARG002 - the port's shape
        """Return where it is: nobody else moves it."""
        return Standing(tip=self._tip)

    async def steps(self, *_: Any, **__: Any) -> tuple[Step, ...]:
        """Return nothing: there are no commits."""
        return ()

    async def make_workspace(self, *_: Any, **__: Any) -> bool:
        """Make nothing."""
        return False

    async def checkout(self, *_: Any, **__: Any) -> None:
        """Make nothing."""

    async def remove_workspace(self, path: Path) -> None:
        """Remove nothing."""

    async def tripwire(self) -> Tripwire:
        """See nothing."""
        return NOTHING

    def stray(self, *_: Any, **__: Any) -> tuple[str, ...]:
        """Find nothing."""
        return ()

    async def repin(self, *_: Any, **__: Any) -> tuple[str, ...]:
        """Miss nothing."""
        return ()

    async def copies(self, sha: str, *, since: str) -> dict[str, bytes]:  # noqa: ARG002 - the port's shape
        """Know of no copy."""
        return {}

    async def pinned(self, plan_id: str) -> dict[str, str]:  # noqa: ARG002 - the port's shape
        """Have pinned nothing."""
        return {}

    async def is_pinned(self, ref: str) -> bool:  # noqa: ARG002 - the port's shape
        """Have taken nothing off the branch."""
        return False

    async def snapshot(self, *_: Any, **__: Any) -> Snapshot:
        """Return a new commit."""
        return Snapshot(sha=self._new(), tree=self._new(), changed=("file",))

    async def archive(self, *_: Any, **__: Any) -> None:
        """Have nothing to keep."""

    async def try_keeping(self, *_: Any, **__: Any) -> None:
        """Have no trouble."""

    async def landed(self, *_: Any, **__: Any) -> str | None:
        """Say that it has not landed."""
        return None

    async def candidate(self, *, tip: str, **_: Any) -> Candidate:
        """Return a new merge."""
        return Candidate(parent=tip, sha=self._new(), tree=self._new(), empty=False)

    async def advance(self, branch: str, *, new: str, old: str) -> bool:  # noqa: ARG002 - the port's shape
        """Move the branch."""
        if old != self._tip:
            return False
        self._tip = new
        return True

    async def tree_of(self, sha: str) -> str:
        """Return the tree of a candidate: made right after it."""
        return f"{int(sha, 16) + 1:040x}"

    async def proven(self, sha: str, target: str) -> bool:  # noqa: ARG002 - the port's shape
        """Believe it."""
        return True

    async def drop_quarantine(self, older_than: datetime) -> list[Any]:  # noqa: ARG002 - the port's shape
        """Have none."""
        return []

    async def diff_hashes(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """Return something for each."""
        return ["0" * 64 for _ in pairs]

    async def base(self, *_: Any, **__: Any) -> Base:
        """Is not asked for."""
        raise Unasked

    async def accept(self, *_: Any, **__: Any) -> None:
        """Is not asked for."""
        raise Unasked

    async def put_back(self, *_: Any, **__: Any) -> bool:
        """Is not asked for."""
        raise Unasked

    async def note(self, *_: Any, **__: Any) -> None:
        """Is not asked for."""
        raise Unasked

    async def files_at(self, *_: Any, **__: Any) -> dict[str, bytes]:
        """Return no file: the project has no prompts of its own."""
        return {}

    async def booked(self, *_: Any, **__: Any) -> str:
        """Is not asked for."""
        raise Unasked

    async def merged_file(self, *_: Any, **__: Any) -> MergedFile:
        """Is not asked for."""
        raise Unasked

    async def judged(self, *_: Any, **__: Any) -> str:
        """Is not asked for."""
        raise Unasked

    async def laid_over(self, *_: Any, **__: Any) -> Candidate:
        """Is not asked for."""
        raise Unasked

    async def contents(self, *_: Any, **__: Any) -> list[str]:
        """Is not asked for."""
        raise Unasked

    async def listed(self, *_: Any, **__: Any) -> dict[str, Entry]:
        """Is not asked for."""
        raise Unasked

    async def mentions(self, *_: Any, **__: Any) -> list[Line]:
        """Is not asked for."""
        raise Unasked

    async def texts(self, *_: Any, **__: Any) -> dict[str, str]:
        """Is not asked for."""
        raise Unasked

    async def without(self, *_: Any, **__: Any) -> Candidate:
        """Is not asked for."""
        raise Unasked

    async def changed(self, *_: Any, **__: Any) -> tuple[str, ...]:
        """Is not asked for."""
        raise Unasked

    async def difference(self, *_: Any, **__: Any) -> str:
        """Is not asked for."""
        raise Unasked

    async def damaged(self, *_: Any, **__: Any) -> str | None:
        """Is not asked for."""
        raise Unasked

    async def absent(self, *_: Any, **__: Any) -> tuple[str, ...]:
        """Is not asked for."""
        raise Unasked

    async def is_ancestor(self, *_: Any, **__: Any) -> bool:
        """Is not asked for."""
        raise Unasked

    async def ends(self, *_: Any, **__: Any) -> Ends:
        """Is not asked for."""
        raise Unasked

    async def patch(self, *_: Any, **__: Any) -> Patch:
        """Is not asked for."""
        raise Unasked

    async def stray_patch(self, *_: Any, **__: Any) -> bool:
        """Is not asked for."""
        raise Unasked

    async def file_at(self, *_: Any, **__: Any) -> str | None:
        """Is not asked for."""
        raise Unasked

    def has_workspace(self, *_: Any, **__: Any) -> bool:
        """Is not asked for."""
        raise Unasked


class InstantGate:
    """Every tree passes."""

    def spec(self, request: GateRequest) -> RunSpec:
        """Say how it would be run."""
        return RunSpec(
            run_id=request.run_id, directory=request.directory, argv=("true",), cwd=request.tree, env={}
        )

    def verdict(self, request: GateRequest, exit: Exit) -> Verdict:  # noqa: ARG002 - the port's shape
        """Return that it passed."""
        return Verdict(status=VerdictStatus.PASSED)

    def witnessed(self, directory: Path, count: int) -> None:
        """Return that nothing was seen: there is no test runner."""

    def reuse(self, *_: object) -> bool:
        """Find nothing to reuse."""
        return False


def instant_world(home: Path, store: SqlStore, *, slots: int = 2) -> World:
    """Return real bookkeeping around instant work."""
    repository = InstantRepository()
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
        gate=InstantGate(),
        engine=LocalEngine(on_error=_raised),
        membership=membership,
        environment=lambda _plan, _invocation, values: dict(values),
        secrets=lambda _env, _given: (),
        workspace_values=lambda _path: {},
        may_act=lambda: True,
    )


def _raised(leg: Leg, error: BaseException) -> None:
    raise RuntimeError(f"leg {leg.id} failed") from error


class _Defects(logging.Handler):
    """Hears of errors that the engine writes into its log and records as a failure of the task, to try it again."""

    def __init__(self) -> None:
        super().__init__()
        self.first: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not self.first.done():
            self.first.set_exception(error)


async def work(world: World, files: StateFiles, finished: Finished) -> None:
    """Work until `finished` says so; a defect of one of the parts here is raised at once, not tried again for ever."""
    defects, log = _Defects(), logging.getLogger("loopwright.engine")
    log.addHandler(defects)
    working = asyncio.create_task(WorkerLoop(world, files).run(finished))
    try:
        await asyncio.wait((working, defects.first), return_when=asyncio.FIRST_COMPLETED)
        if defects.first.done():
            defects.first.result()
        await working
    finally:
        log.removeHandler(defects)
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


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
        policy=Policy(
            agent="command",
            parallel=slots,
            agents={"command": {"command": "true"}},
            red_proof="off",
        ),
        gates=(GATE,),
        actor="bench",
    )
