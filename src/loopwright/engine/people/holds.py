"""Turns of loops as rows: what a plan holds while it is live, and what it waits for."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from loopwright.core.policy.graph import claims, fixed_part, kept, scopes_overlap
from loopwright.core.policy.turns import blocking, victims
from loopwright.core.rows.events import happened
from loopwright.core.rows.hold_rows import Hold
from loopwright.core.rows.model import Loop, Plan, Task
from loopwright.core.values.ids import Kind
from loopwright.core.values.round_states import STAGE_KIND
from loopwright.core.values.states import (
    ENDED_PLAN,
    HOLD,
    SETTLED_TASK,
    HoldState,
    LoopState,
    PlanState,
    step,
)
from loopwright.core.values.wording import listed
from loopwright.ports import Ids, Tx

_MACHINE: Final = "loopwright"
_LIVE: Final = (LoopState.RUNNING, LoopState.PAUSED)
_BEGUN: Final = (PlanState.DISPATCHING, PlanState.RUNNING, PlanState.VERIFYING)
_NAMED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Whether a plan has its turn."""

    claims: tuple[str, ...] | None = None
    """The tasks for which it has to ask now, empty for the plan itself; None if there is nothing to ask."""
    held_up: frozenset[str] = frozenset()
    """The tasks that wait for another loop, or the plan itself."""


FREE: Final = Turn()


def live_holds_if_any_wait(tx: Tx, loops: Sequence[Loop]) -> list[Hold] | None:
    """Return what live plans hold or wait for; None where no loop can be in the way of another.

    A running loop has a reason only while it waits.
    """
    projects = [one.project_id for one in loops]
    if len(set(projects)) == len(projects) and not any(one.reason for one in loops):
        return None
    return live_holds(tx)


def live_holds(tx: Tx) -> list[Hold]:
    """Return what plans hold or wait for that are live."""
    rows = tx.find(Hold, order_by=("created_at", "id"))
    alive = {one: _is_live(tx, one) for one in {row.plan_id for row in rows}}
    return [row for row in rows if alive[row.plan_id]]


def _is_live(tx: Tx, plan_id: str) -> bool:
    plan = tx.get(Plan, plan_id)
    loop = tx.get(Loop, plan.loop_id) if plan else None
    if plan is None or loop is None or loop.plan_id != plan.id:
        return False
    return plan.status not in ENDED_PLAN and loop.state in _LIVE


def turn_of(tx: Tx, loop: Loop, plan: Plan, ready: Sequence[Task], holds: Sequence[Hold]) -> Turn:
    """Return whether a plan, or some of its tasks that are ready, have to wait for another loop."""
    if loop.source_kind == STAGE_KIND:
        return FREE  # the rounds of an orchestrator folder coordinate their stages themselves
    mine = [one for one in holds if one.plan_id == plan.id]
    locks = [one for one in mine if one.lock and one.state is HoldState.WAITING]
    changed = any(_waits_for(one, holds) != one.waits_for for one in locks)
    if plan.status is PlanState.DRAFT:
        files = next((one for one in mine if one.task_id is None and not one.lock), None)
        if files is None:
            asks_first = bool(_scopes(tx, plan))
            waits, changed = asks_first, changed or asks_first
        else:
            waits = files.state is HoldState.WAITING
            changed = changed or (waits and _waits_for(files, holds) != files.waits_for)
        return Turn(claims=() if changed else None, held_up=frozenset({plan.id} if waits or locks else ()))
    if plan.status is not PlanState.RUNNING:
        return FREE
    have = [path for one in mine if one.state is not HoldState.WAITING for path in one.paths]
    asks: list[str] = []
    held_up: set[str] = set()
    for task in ready:
        if is_covered(claims(task), have):
            continue
        held_up.add(task.id)
        row = next((one for one in mine if one.task_id == task.id), None)
        if row is None or row.state is not HoldState.WAITING or _waits_for(row, holds) != row.waits_for:
            asks.append(task.id)
    if locks:
        held_up = {task.id for task in ready}
    return Turn(claims=tuple(asks) if asks or changed else None, held_up=frozenset(held_up))


def is_covered(wanted: Collection[str], have: Collection[str]) -> bool:
    """Return whether some patterns cover all wanted paths."""
    parts = [fixed_part(path) for path in have]
    return all(any(fixed_part(path)[: len(part)] == part for part in parts) for path in dict.fromkeys(wanted))


def claim(tx: Tx, ids: Ids, plan: Plan, task_ids: Sequence[str]) -> None:
    """Ask for the files of a plan, or of some of its tasks, and take each that is free now."""
    _sweep(tx)
    _hold_begun(tx, ids, plan.project_id)
    mine = tx.find(Hold, plan_id=plan.id)
    if plan.status is PlanState.DRAFT:
        if not any(one.task_id is None and not one.lock for one in mine) and (paths := _scopes(tx, plan)):
            _insert(tx, ids, plan, paths=paths)
    else:
        known = {one.task_id: one for one in mine}
        for task in tx.find(Task, id=task_ids) if task_ids else ():
            before = known.get(task.id)
            if before is not None and before.state is HoldState.WAITING:
                continue
            if before is not None:
                tx.delete(Hold, before.id)  # its scope was changed since
            _insert(tx, ids, plan, task_id=task.id, paths=kept(claims(task)))
    settle(tx)


def _hold_begun(tx: Tx, ids: Ids, project_id: str) -> None:
    """Let plans that are under way hold what they may change and did change, whether they declared it or not.

    A loop that is alone in its project claims nothing, so this may be the first time that it matters.
    """
    for loop in tx.find(Loop, project_id=project_id, state=_LIVE):
        plan = tx.get(Plan, loop.plan_id) if loop.plan_id else None
        if plan is None or plan.status not in _BEGUN or loop.source_kind == STAGE_KIND:
            continue
        mine = [one for one in tx.find(Hold, plan_id=plan.id) if not one.lock]
        tasks = tx.find(Task, plan_id=plan.id, order_by=("position",))
        whole = next((one for one in mine if one.task_id is None), None)
        if whole is None:
            if paths := kept(path for task in tasks for path in claims(task)):
                row = _insert(tx, ids, plan, paths=paths)
                _move(tx, row, HoldState.HELD)
        elif whole.state is HoldState.HELD:
            paths = kept((*whole.paths, *(path for task in tasks for path in task.touched)))
            if paths != whole.paths:
                tx.update(Hold, whole.id, paths=paths)


def ask_lock(tx: Tx, ids: Ids, plan: Plan, name: str) -> Hold:
    """Ask for a named lock, and take it if it is free; a second request is the same one."""
    _sweep(tx)
    known = tx.find(Hold, plan_id=plan.id, lock=name)
    row = known[0] if known else _insert(tx, ids, plan, lock=name)
    settle(tx)
    found = tx.get(Hold, row.id)
    assert found is not None, "it was inserted in this transaction"
    return found


def release(tx: Tx, hold: Hold, actor: str) -> None:
    """Give up what a plan holds; a plan that waits continues without it."""
    plan = tx.get(Plan, hold.plan_id)
    if hold.state is HoldState.WAITING:
        _move(tx, hold, HoldState.REFUSED, reason=f"released by {actor}", waits_for=())
    else:
        tx.delete(Hold, hold.id)
    tx.append(happened("hold_released", actor, plan=plan, hold=hold.id, lock=hold.lock, paths=_some(hold)))
    settle(tx)
    _note(tx, hold.loop_id)


def settle(tx: Tx) -> None:
    """Give free files and locks to those that wait, the oldest first, and refuse requests that wait in a circle."""
    touched: set[str] = set()
    for row in [one for one in live_holds(tx) if one.state is HoldState.WAITING]:
        holds = live_holds(tx)
        stops = blocking(row, holds)
        waits_for = _plans(stops)
        if not stops:
            _move(tx, row, HoldState.HELD, waits_for=(), reason="")
            if row.after or row.waits_for:
                _tell(tx, "loop_turn", row)
        elif waits_for != row.waits_for:
            after = tuple(dict.fromkeys((*row.after, *waits_for)))
            why = _why(tx, row, stops)
            tx.update(Hold, row.id, waits_for=waits_for, after=after, reason=why)
            _tell(tx, "loop_waits", row, waits_for=list(waits_for), reason=why)
        touched.add(row.loop_id)
    for victim in victims(live_holds(tx)):
        names = listed([loop_name(tx, one) for one in dict.fromkeys(victim.cycle)])
        reason = f"{names} waited for each other, and this request is the newest: it was refused"
        _move(tx, victim.hold, HoldState.REFUSED, waits_for=(), reason=reason)
        _tell(tx, "deadlock_broken", victim.hold, cycle=list(victim.cycle), reason=reason)
        touched.add(victim.hold.loop_id)
    for loop_id in touched:
        _note(tx, loop_id)


def _sweep(tx: Tx) -> None:
    alive = {one.id for one in live_holds(tx)}
    for row in tx.find(Hold):
        if row.id not in alive:
            tx.delete(Hold, row.id)


def _scopes(tx: Tx, plan: Plan) -> tuple[str, ...]:
    tasks = tx.find(Task, plan_id=plan.id, order_by=("position",))
    return kept(path for task in tasks if task.status not in SETTLED_TASK for path in claims(task))


def _insert(tx: Tx, ids: Ids, plan: Plan, **what: Any) -> Hold:
    row = _row(tx, ids(Kind.HOLD), plan, HoldState.WAITING, **what)
    tx.insert(row)
    return row


def _row(tx: Tx, id_: str, plan: Plan, state: HoldState, **what: Any) -> Hold:
    return Hold(
        id=id_,
        project_id=plan.project_id,
        loop_id=plan.loop_id,
        plan_id=plan.id,
        state=state,
        created_at=tx.now(),
        **what,
    )


def _move(tx: Tx, row: Hold, target: HoldState, **changes: Any) -> None:
    step("hold", HOLD, row.id, row.state, target)
    tx.update(Hold, row.id, expect={"state": row.state}, state=target, **changes)


def _tell(tx: Tx, event: str, row: Hold, **told: Any) -> None:
    plan = tx.get(Plan, row.plan_id)
    tx.append(happened(event, _MACHINE, plan=plan, hold=row.id, lock=row.lock, paths=_some(row), **told))


def _some(row: Hold) -> list[str]:
    return list(row.paths[:_NAMED])


def _plans(holds: Sequence[Hold]) -> tuple[str, ...]:
    return tuple(sorted({one.plan_id for one in holds}))


def _waits_for(row: Hold, holds: Sequence[Hold]) -> tuple[str, ...]:
    return _plans(blocking(row, holds))


def _why(tx: Tx, row: Hold, stops: Sequence[Hold]) -> str:
    names = listed([loop_name(tx, one) for one in _plans(stops)])
    if row.lock:
        return f"waits for {names}, which has the lock {row.lock}"
    shared = next(path for path in row.paths if any(scopes_overlap([path], one.paths) for one in stops))
    return f"waits for {names} to end, which changes {shared} too"


def loop_name(tx: Tx, plan_id: str) -> str:
    """Return the name of the loop of a plan."""
    plan = tx.get(Plan, plan_id)
    loop = tx.get(Loop, plan.loop_id) if plan else None
    return loop.name if loop else plan_id


def _note(tx: Tx, loop_id: str) -> None:
    """Record on a running loop what it waits for."""
    loop = tx.get(Loop, loop_id)
    if loop is None or loop.state is not LoopState.RUNNING:
        return
    waiting = tx.find(Hold, loop_id=loop_id, state=HoldState.WAITING, order_by=("created_at",), limit=1)
    reason = waiting[0].reason if waiting else ""
    if loop.reason != reason:
        tx.update(Loop, loop.id, reason=reason, updated_at=tx.now())
