"""What every fake home is made of: ids in a fixed order, a store that watches each move, and a world without a disk."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from loopwright.core.replies.discoveries import Discovery
from loopwright.core.rows.model import Attempt, Finish, Loop, Plan, Run, Task
from loopwright.core.values.ids import Kind, make
from loopwright.core.values.states import MACHINES, AttemptState
from loopwright.engine.rows.world import Me, World
from loopwright.ports import GateRequest, RunSpec, Tx
from loopwright.testing.memory_store import MemoryStore, MemoryTx

T = TypeVar("T")
R = TypeVar("R")


def fake_world(host: str, *, slots: int, **ports: Any) -> World:
    """Return the world of one worker; what is not among the ports does nothing."""
    return World(
        me=Me(host_id=host, boot_id="boot", hostname=host, pid=1, slots=slots, version="0"),
        environment=lambda _plan, _invocation, values: dict(values),
        secrets=lambda _env, _given: (),
        workspace_values=lambda _path: {},
        may_act=lambda: True,
        **ports,
    )


class UnwatchedGate:
    """A gate that starts its commands, sees no tests in them, and keeps no verdict for later."""

    def spec(self, request: GateRequest) -> RunSpec:
        return RunSpec(
            run_id=request.run_id,
            directory=request.directory,
            argv=("gate", *(one.command for one in request.commands)),
            cwd=request.tree,
            env=request.env,
        )

    def witnessed(self, directory: Path, count: int) -> None:
        return None

    def reuse(self, *_: object) -> bool:
        return False


class Numbered:
    """Draws well-formed ids in a fixed order."""

    def __init__(self) -> None:
        self._n = 0

    def __call__(self, prefix: str) -> str:
        self._n += 1
        return make(Kind(prefix), UUID(int=self._n))


_STATE = {Loop: ("loop", "state"), Plan: ("plan", "status"), Task: ("task", "status")}
_STATE |= {Attempt: ("attempt", "state"), Run: ("run", "state"), Finish: ("finish", "state")}  # type: ignore[dict-item]
_STATE |= {Discovery: ("discovery", "state")}  # type: ignore[dict-item]
_TOLD: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("loop", "RUNNING"): ("loop_started",),
    ("loop", "PAUSED"): ("loop_paused",),
    ("loop", "STOPPED"): ("loop_stopped",),
    ("loop", "COMPLETED"): ("loop_completed",),
    ("loop", "FAILED"): ("loop_failed",),
    ("plan", "DISPATCHING"): ("plan_dispatching",),
    ("plan", "RUNNING"): ("plan_dispatched", "plan_reopened", "plan_evaluated", "docs_due"),
    ("plan", "VERIFYING"): ("plan_verifying", "plan_evaluating"),
    ("plan", "VERIFIED"): ("plan_verified",),
    ("plan", "FAILED"): ("plan_failed",),
    ("plan", "CANCELLED"): ("plan_cancelled",),
    ("task", "QUEUED"): (
        "task_queued",
        "task_retried",
        "task_healing",
        "task_split",
        "task_reopened",
        "task_not_accepted",
    ),
    ("task", "RUNNING"): ("task_started", "task_resumed"),
    ("task", "AWAITING_RESPONSE"): ("task_awaiting",),
    ("task", "COMPLETE"): ("task_completed",),
    ("task", "ERROR"): ("task_failed",),
    ("task", "CANCELLED"): ("task_cancelled",),
    ("finish", "CHECKING"): ("finish_checked_again",),
    ("finish", "LANDING"): ("finish_landing",),
    ("finish", "FINISHED"): ("finish_done",),
    ("finish", "REFUSED"): ("finish_refused",),
    ("discovery", "ACCEPTED"): ("discovery_accepted",),
    ("discovery", "DISMISSED"): ("discovery_dismissed",),
    ("run", "RUNNING"): ("run_started",),
    ("run", "AWAITING_RESPONSE"): ("run_awaiting",),
    ("run", "COMPLETE"): ("run_ended",),
    ("run", "ERROR"): ("run_ended",),
    ("run", "CANCELLED"): ("run_ended",),
    **{("attempt", one.value): (f"attempt_{one.value.lower()}",) for one in AttemptState},
}
"""Which events tell of a move. Each move is told exactly once, in the transaction that makes it."""
_EVERY_MOVE = frozenset(one for types in _TOLD.values() for one in types)


class WatchfulTx(MemoryTx):
    """Notes each change of a state, and fails on one that its table does not have."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.moved: Counter[tuple[str, ...]] = Counter()

    def update(
        self, kind: type[R], id: str, /, *, expect: Mapping[str, Any] | None = None, **changes: Any
    ) -> R:
        before = self.get(kind, id)
        after = super().update(kind, id, expect=expect, **changes)
        if kind in _STATE and before is not None:
            machine, name = _STATE[kind]  # type: ignore[index]
            source, target = getattr(before, name), getattr(after, name)
            if source is not target:
                assert target in MACHINES[machine][source], f"{machine} {id}: {source} -> {target}"
                self.moved[_TOLD[machine, target.value]] += 1
        return after

    def check_told(self) -> None:
        if not self.moved and not self.appended:
            return
        told = Counter(event.type for event in self.appended)
        for types, count in self.moved.items():
            assert sum(told[one] for one in types) == count, f"{count} moves should have told {types}"
        moves = {one for types in self.moved for one in types}
        silent = _EVERY_MOVE - moves
        assert not silent & set(told), f"told without a move: {silent & set(told)}"


class WatchfulStore(MemoryStore):
    """The store in memory, whose transactions are watched."""

    def _tx(self, *, writable: bool) -> MemoryTx:
        if not writable:
            return super()._tx(writable=False)
        return WatchfulTx(
            self._rows, self._events, now=self._clock.now(), writable=writable, upcasters=self._upcasters
        )

    def transact_sync(self, name: str, work: Callable[[Tx], T]) -> T:
        def watched(tx: Tx) -> T:
            result = work(tx)
            assert isinstance(tx, WatchfulTx)
            tx.check_told()
            return result

        return super().transact_sync(name, watched)
