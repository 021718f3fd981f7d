"""Status that could not be written to a plan's source: a row until it is written, or the source has another plan."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Loop, Plan
from loopwright.core.rows.source_rows import SourceDebt
from loopwright.core.values.states import ENDED_PLAN
from loopwright.engine.rows.moves import MACHINE, need
from loopwright.engine.rows.projects import Checkouts, project_ids
from loopwright.ports import Tx

TOLD_OF: Final = frozenset({"source_not_told", "source_told", "source_given_up"})
"""Events about write-back itself: they cause no write-back."""
_LONGEST: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Untold:
    """Why status could not be written to a source."""

    reason: str
    items: tuple[str, ...] = ()
    gone: bool = False
    """Whether the source of an ended plan, or its project's folder, is missing: deleted, or temporarily away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DebtView:
    """A write-back debt, for people and programs."""

    plan_id: str
    source: str
    """Relative to its project."""
    items: tuple[str, ...]
    reason: str
    since: datetime
    over: bool = False
    """Whether git tracks it, and its plan has ended: Loopwright no longer writes to the branch, so you have to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceNews:
    """What a source contains beyond its plan."""

    source: str
    """Relative to its project."""
    open_ends: tuple[str, ...] = ()
    """What keeps the source itself from being finished."""
    changes: tuple[str, ...] = ()
    """Its changes since the plan ended."""


def note_outcome(tx: Tx, plan_id: str, left: Untold | None) -> None:
    """Record the result of a write-back: a debt and an event for each new reason, or the end of a debt."""
    known, plan = tx.get(SourceDebt, plan_id), need(tx.get(Plan, plan_id), "the plan")
    if left is None:
        if known is not None:
            tx.delete(SourceDebt, plan_id)
            tx.append(happened("source_told", MACHINE, plan=plan, items=list(known.items)))
    elif need(tx.get(Loop, plan.loop_id), "the loop").plan_id == plan_id:
        _owe(tx, plan, known, left)


def _owe(tx: Tx, plan: Plan, known: SourceDebt | None, left: Untold) -> None:
    reason = left.reason[:_LONGEST]
    # If it failed before anything was read, the earlier debt remains.
    items = left.items or (known.items if known is not None else ())
    if known is None:
        tx.insert(SourceDebt(id=plan.id, items=items, reason=reason, gone=left.gone, created_at=tx.now()))
    elif (known.items, known.reason, known.gone) != (items, reason, left.gone):
        tx.update(SourceDebt, plan.id, items=items, reason=reason, gone=left.gone)
    if known is None or (known.reason, known.gone) != (reason, left.gone):
        said = "source_given_up" if left.gone else "source_not_told"
        tx.append(happened(said, MACHINE, plan=plan, reason=reason, items=list(items)))


def give_up(tx: Tx, plan: Plan, actor: str, reason: str) -> None:
    """End a debt that will not be written any more, if there is one, and record it."""
    known = tx.get(SourceDebt, plan.id)
    if known is not None:
        tx.delete(SourceDebt, plan.id)
        items = list(known.items)
        tx.append(happened("source_given_up", actor, plan=plan, reason=reason, items=items))


def is_settled(tx: Tx, plan_id: str, left: Untold | None) -> bool:
    """Return whether a write-back left nothing to record: the usual case, which costs no write."""
    known = tx.get(SourceDebt, plan_id)
    if left is None or known is None:
        return left is None and known is None
    wanted = (left.reason[:_LONGEST], left.items or known.items, left.gone)
    return (known.reason, known.items, known.gone) == wanted


def still_owed(tx: Tx, plan_id: str) -> Untold | None:
    """Return an existing debt, as the result of a write-back."""
    known = tx.get(SourceDebt, plan_id)
    return Untold(reason=known.reason, items=known.items, gone=known.gone) if known is not None else None


def ask(tx: Tx, plan_id: str) -> bool:
    """Have a worker write a debt back at once; False if there is no debt."""
    if tx.get(SourceDebt, plan_id) is None:
        return False
    tx.update(SourceDebt, plan_id, asked_at=tx.now())
    return True


def answer(tx: Tx, plan_id: str, asked_at: datetime) -> None:
    """Record that a requested write-back was tried; a later request needs another try."""
    known = tx.get(SourceDebt, plan_id)
    if known is not None and known.asked_at == asked_at:
        tx.update(SourceDebt, plan_id, asked_at=None)


def is_asked(tx: Tx, plan_id: str) -> bool:
    """Return whether an immediate write-back was requested and not tried yet."""
    known = tx.get(SourceDebt, plan_id)
    return known is not None and known.asked_at is not None


def any_asked(tx: Tx) -> bool:
    """Return whether an immediate write-back of any debt of the home was requested."""
    return any(one.asked_at is not None for one in tx.find(SourceDebt))


def debts(tx: Tx) -> list[SourceDebt]:
    """Return every debt of the home, the oldest first."""
    return tx.find(SourceDebt, order_by=("created_at", "id"))


def debt_view(tx: Tx, plan_id: str, *, gone: bool = False) -> DebtView | None:
    """Return the debt of a plan's source, also of a missing one if `gone`; None if all status is written."""
    owed = tx.get(SourceDebt, plan_id)
    return _view(tx, owed) if owed is not None and (gone or not owed.gone) else None


def debt_views(tx: Tx, *, project_path: Checkouts | None) -> tuple[DebtView, ...]:
    """Return the debts of sources that exist, of one project or of the whole home."""
    owed = [one for one in debts(tx) if not one.gone]
    if project_path is not None:
        owed = list(_of_project(tx, owed, project_path))
    return tuple(_view(tx, one) for one in owed)


def _of_project(tx: Tx, owed: Iterable[SourceDebt], at: Checkouts) -> Iterable[SourceDebt]:
    projects = set(project_ids(tx, at))
    return (one for one in owed if need(tx.get(Plan, one.id), "the plan").project_id in projects)


def _view(tx: Tx, owed: SourceDebt) -> DebtView:
    plan = need(tx.get(Plan, owed.id), "the plan")
    loop = need(tx.get(Loop, plan.loop_id), "the loop")
    return DebtView(
        plan_id=plan.id,
        source=loop.source_path,
        items=owed.items,
        reason=owed.reason,
        since=owed.created_at,
        over=bool(plan.books) and plan.status in ENDED_PLAN,
    )
