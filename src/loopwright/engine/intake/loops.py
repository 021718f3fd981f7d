"""Loops without a terminal: register one for a source, request its start, and delete it."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Loop, Project
from loopwright.core.values.access import Bounds
from loopwright.core.values.errors import Refused
from loopwright.core.values.ids import Kind
from loopwright.core.values.round_states import FOLDER_KIND
from loopwright.core.values.states import LoopState
from loopwright.core.values.wording import advised
from loopwright.engine.money.charges import charge
from loopwright.engine.rows.moves import move_loop
from loopwright.ports import NOT_NULL, Ids, Tx


def register_loop(
    tx: Tx,
    ids: Ids,
    project: Project,
    actor: str,
    *,
    name: str,
    kind: str,
    source: str,
    priority: int,
    settings: Mapping[str, Any] | None = None,
    template: str | None = None,
    bounds: Bounds | None = None,
) -> Loop:
    """Register a loop over a source; a source has one loop, and a deleted one is restored."""
    known = next(iter(tx.find(Loop, project_id=project.id, source_path=source, limit=1)), None)
    if known is not None and known.deleted_at is None:
        raise Refused(f"{source} has the loop {known.id} already", code="loop_exists", hint="start that one")
    now = tx.now()
    wanted: dict[str, Any] = {
        "name": name,
        "source_kind": kind,
        "priority": priority,
        "settings": settings or None,
        "updated_at": now,
    }
    if known is not None:
        loop = tx.update(Loop, known.id, deleted_at=None, reason="", **wanted)
    else:
        loop = Loop(
            id=ids(Kind.LOOP),
            project_id=project.id,
            source_path=source,
            state=LoopState.IDLE,
            created_at=now,
            **wanted,
        )
        tx.insert(loop)
    made: dict[str, Any] = {"template": template} if template else {}
    charge(tx, bounds, loop.id)
    tx.append(happened("loop_created", actor, loop=loop, source=source, **made))
    return loop


def delete_loop(tx: Tx, loop: Loop, actor: str) -> None:
    """Delete a loop that is at rest; its plans and their record are kept. A second call changes nothing."""
    if loop.deleted_at is not None:
        return
    if loop.state in (LoopState.RUNNING, LoopState.PAUSED) or loop.start is not None:
        state = "starting" if loop.start is not None else loop.state.value.lower()
        raise Refused(f"the loop {loop.name} is {state}", code="loop_at_work", hint="stop it first")
    gone = tx.update(Loop, loop.id, deleted_at=tx.now(), updated_at=tx.now())
    tx.append(happened("loop_deleted", actor, loop=gone, name=loop.name))


def stop_unstarted(tx: Tx, loop: Loop, actor: str) -> Loop:
    """Stop a loop that has no plan yet: a requested start is cancelled."""
    loop = tx.update(Loop, loop.id, start=None)
    if loop.state is LoopState.IDLE:
        return move_loop(tx, loop, LoopState.STOPPED, "loop_stopped", actor, "stopped by a person")
    return loop


def ask_to_start(
    tx: Tx, loop: Loop, actor: str, flags: Mapping[str, Any], bounds: Bounds | None = None
) -> Loop:
    """Record a requested start; a loop that runs, or is being started, is unchanged."""
    if loop.state is LoopState.RUNNING or loop.start is not None:
        return loop
    start: dict[str, Any] = {"actor": actor, "flags": dict(flags)}
    if bounds is not None:
        start["bounds"] = asdict(bounds)
    asked = tx.update(Loop, loop.id, start=start, reason="")
    tx.append(happened("loop_starting", actor, loop=asked))
    return asked


def asked_starts(tx: Tx) -> list[Loop]:
    """Return the loops whose start was requested."""
    return tx.find(Loop, start=NOT_NULL)


def note_started(tx: Tx, loop: Loop) -> None:
    """Record that the loop's source has a plan, or that its plan continues."""
    tx.update(Loop, loop.id, start=None)


def begin_rounds(tx: Tx, loop: Loop) -> bool:
    """Record that a controller works on the folder of a loop, unless its start was cancelled; return whether it may.

    The requester stays recorded until it ends: the next daemon continues with it.
    """
    now = tx.get(Loop, loop.id)
    if now is None or now.start is None:
        return False
    now = tx.update(Loop, now.id, plan_id=None)  # a plan from when the folder had no roles
    if now.state is not LoopState.RUNNING:
        move_loop(tx, now, LoopState.RUNNING, "loop_started", starter_of(now))
    return True


def end_rounds(tx: Tx, loop: Loop, target: LoopState, reason: str = "") -> None:
    """Record how a controller ended, unless it was just stopped."""
    now = tx.get(Loop, loop.id)
    if now is not None and now.state is LoopState.RUNNING and now.start is not None:
        moved = move_loop(tx, now, target, f"loop_{target.value.lower()}", starter_of(now), reason)
        tx.update(Loop, moved.id, start=None)


def rest_rounds(tx: Tx, loop: Loop, target: LoopState, actor: str) -> None:
    """Pause or stop a loop in rounds, or cancel its start: its controller ends as soon as it sees that."""
    is_starting = loop.start is not None and loop.state is LoopState.IDLE
    loop = tx.update(Loop, loop.id, start=None)
    if is_starting and target is LoopState.STOPPED:
        move_loop(tx, loop, target, "loop_stopped", actor, "stopped by a person")
    if loop.state is not target and loop.state in (LoopState.RUNNING, LoopState.PAUSED):
        move_loop(tx, loop, target, f"loop_{target.value.lower()}", actor, "by a person")


def note_not_started(tx: Tx, loop: Loop, *, code: str, reason: str, hint: str) -> None:
    """Record why a loop could not be started, and what to do about it."""
    told = advised(reason, hint)
    row = tx.update(Loop, loop.id, start=None, reason=told, updated_at=tx.now())
    if row.state is LoopState.RUNNING and row.source_kind == FOLDER_KIND:
        row = move_loop(tx, row, LoopState.FAILED, "loop_failed", starter_of(loop), told)
    who = starter_of(loop)
    tx.append(happened("loop_not_started", who, loop=row, code=code, reason=reason, hint=hint))


def starter_of(loop: Loop) -> str:
    """Return who requested the start of a loop."""
    return str((loop.start or {}).get("actor", "unknown"))
