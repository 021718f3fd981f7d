"""Loops without a terminal: register one for a source, ask for its start, and delete it."""

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
from loopwright.engine.rows.charges import charge
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
    """Register a loop over a source; a source has one loop, and a deleted one comes back."""
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
        loop = tx.update(Loop, known.id, deleted_at=None, **wanted)
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
    """Delete a loop that is at rest; its plans and their record are kept. Twice is the same as once."""
    if loop.deleted_at is not None:
        return
    if loop.state in (LoopState.RUNNING, LoopState.PAUSED) or loop.start is not None:
        state = "starting" if loop.start is not None else loop.state.value.lower()
        raise Refused(f"the loop {loop.name} is {state}", code="loop_at_work", hint="stop it first")
    gone = tx.update(Loop, loop.id, deleted_at=tx.now(), updated_at=tx.now())
    tx.append(happened("loop_deleted", actor, loop=gone, name=loop.name))


def stop_unstarted(tx: Tx, loop: Loop, actor: str) -> Loop:
    """Stop a loop that has no plan yet: a start that was asked for is taken back."""
    loop = tx.update(Loop, loop.id, start=None)
    if loop.state is LoopState.IDLE:
        return move_loop(tx, loop, LoopState.STOPPED, "loop_stopped", actor, "stopped by a person")
    return loop


def ask_to_start(
    tx: Tx, loop: Loop, actor: str, flags: Mapping[str, Any], bounds: Bounds | None = None
) -> Loop:
    """Note that a start was asked for; one that runs, or is being started, stays as it is."""
    if loop.state is LoopState.RUNNING or loop.start is not None:
        return loop
    start: dict[str, Any] = {"actor": actor, "flags": dict(flags)}
    if bounds is not None:
        start["bounds"] = asdict(bounds)
    asked = tx.update(Loop, loop.id, start=start, reason="")
    tx.append(happened("loop_starting", actor, loop=asked))
    return asked


def asked_starts(tx: Tx) -> list[Loop]:
    """Return the loops whose start was asked for."""
    return tx.find(Loop, start=NOT_NULL)


def note_started(tx: Tx, loop: Loop) -> None:
    """Note that a plan was made of the loop's source, or that its plan continues."""
    tx.update(Loop, loop.id, start=None)


def begin_rounds(tx: Tx, loop: Loop) -> bool:
    """Note that a controller works on the folder of a loop, unless its start was taken back; return whether it may.

    Who asked for it stays known until that ends: the next daemon continues with it.
    """
    now = tx.get(Loop, loop.id)
    if now is None or now.start is None:
        return False
    now = tx.update(Loop, now.id, plan_id=None)  # one is of a time in which the folder had no roles
    if now.state is not LoopState.RUNNING:
        move_loop(tx, now, LoopState.RUNNING, "loop_started", starter_of(now))
    return True


def end_rounds(tx: Tx, loop: Loop, target: LoopState, reason: str = "") -> None:
    """Note how a controller ended, unless it was stopped in this moment."""
    now = tx.get(Loop, loop.id)
    if now is not None and now.state is LoopState.RUNNING and now.start is not None:
        moved = move_loop(tx, now, target, f"loop_{target.value.lower()}", starter_of(now), reason)
        tx.update(Loop, moved.id, start=None)


def rest_rounds(tx: Tx, loop: Loop, target: LoopState, actor: str) -> None:
    """Pause or stop a loop in rounds, or take its start back: its controller ends as soon as it sees that."""
    is_starting = loop.start is not None and loop.state is LoopState.IDLE
    loop = tx.update(Loop, loop.id, start=None)
    if is_starting and target is LoopState.STOPPED:
        move_loop(tx, loop, target, "loop_stopped", actor, "stopped by a person")
    if loop.state is not target and loop.state in (LoopState.RUNNING, LoopState.PAUSED):
        move_loop(tx, loop, target, f"loop_{target.value.lower()}", actor, "by a person")


def note_not_started(tx: Tx, loop: Loop, *, code: str, reason: str, hint: str) -> None:
    """Note why a loop could not be started."""
    row = tx.update(Loop, loop.id, start=None, reason=reason)
    if row.state is LoopState.RUNNING and row.source_kind == FOLDER_KIND:
        row = move_loop(tx, row, LoopState.FAILED, "loop_failed", starter_of(loop), reason)
    who = starter_of(loop)
    tx.append(happened("loop_not_started", who, loop=row, code=code, reason=reason, hint=hint))


def starter_of(loop: Loop) -> str:
    """Return who asked for the start of a loop."""
    return str((loop.start or {}).get("actor", "unknown"))
