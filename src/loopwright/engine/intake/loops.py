"""Loops without a terminal: register one for a source, ask for its start, and delete one that never had a plan."""

from collections.abc import Mapping
from typing import Any

from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Loop, Plan, Project
from loopwright.core.values.errors import Refused
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import LoopState
from loopwright.ports import Ids, Tx


def register_loop(
    tx: Tx, ids: Ids, project: Project, actor: str, *, name: str, kind: str, source: str, priority: int
) -> Loop:
    """Register a loop over a source; a source has one loop."""
    if known := tx.find(Loop, project_id=project.id, source_path=source, limit=1):
        raise Refused(
            f"{source} has the loop {known[0].id} already", code="loop_exists", hint="start that one"
        )
    now = tx.now()
    loop = Loop(
        id=ids(Kind.LOOP),
        project_id=project.id,
        name=name,
        source_kind=kind,
        source_path=source,
        state=LoopState.IDLE,
        priority=priority,
        created_at=now,
        updated_at=now,
    )
    tx.insert(loop)
    tx.append(happened("loop_created", actor, loop=loop, source=source))
    return loop


def delete_loop(tx: Tx, loop: Loop, actor: str) -> None:
    """Delete a loop that never had a plan; one that had keeps its record."""
    if loop.plan_id is not None or tx.count(Plan, loop_id=loop.id):
        raise Refused(
            f"the loop {loop.name} has plans, and their record is kept",
            code="loop_has_plans",
            hint="stop it instead; a stopped loop does nothing",
        )
    tx.delete(Loop, loop.id)
    tx.append(happened("loop_deleted", actor, project_id=loop.project_id, name=loop.name))


def ask_to_start(tx: Tx, loop: Loop, actor: str, flags: Mapping[str, Any]) -> Loop:
    """Note that a start was asked for; one that runs, or is being started, stays as it is."""
    if loop.state is LoopState.RUNNING or loop.start is not None:
        return loop
    asked = tx.update(Loop, loop.id, start={"actor": actor, "flags": dict(flags)}, reason="")
    tx.append(happened("loop_starting", actor, loop=asked))
    return asked


def asked_starts(tx: Tx) -> list[Loop]:
    """Return the loops whose start was asked for."""
    return [one for one in tx.find(Loop) if one.start is not None]


def note_started(tx: Tx, loop: Loop) -> None:
    """Note that a plan was made of the loop's source, or that its plan continues."""
    tx.update(Loop, loop.id, start=None)


def note_not_started(tx: Tx, loop: Loop, *, code: str, reason: str, hint: str) -> None:
    """Note why a loop could not be started."""
    row = tx.update(Loop, loop.id, start=None, reason=reason)
    who = starter_of(loop)
    tx.append(happened("loop_not_started", who, loop=row, code=code, reason=reason, hint=hint))


def starter_of(loop: Loop) -> str:
    """Return who asked for the start of a loop."""
    return str((loop.start or {}).get("actor", "unknown"))
