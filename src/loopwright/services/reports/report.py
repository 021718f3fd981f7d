"""What happened since a time, on one page: what was verified, what waits for the user, what failed, and the cost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from loopwright.core.rows.model import Cursor, Loop, Plan, Project, Task
from loopwright.core.values.access import Caller, Scope
from loopwright.core.values.states import ENDED_PLAN, PlanState, TaskState
from loopwright.ports import Tx
from loopwright.services.homes.session import Session
from loopwright.services.remote.seen import seen_where
from loopwright.services.reports.alerts import Alert, alerts
from loopwright.services.reports.costs import Cost, Dimension, cost_of, costed_runs, grouped

USUAL: Final = timedelta(days=1)
"""The default period of a report."""
_FIRST: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MOST: Final = 1_000
_LAST: Final = "report"
"""The cursor of the last report of the whole home; that of one repository ends with its project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLine:
    """A plan in a report."""

    plan_id: str
    project: str
    title: str
    status: PlanState
    passed: int
    total: int
    reason: str
    """Why it failed or waits; empty if there is no reason."""
    branch: str
    spent_micros: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaWait:
    """A time in which an account allowed no runs."""

    account: str
    since: datetime
    until: datetime | None
    """None if it is still closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkReport:
    """What happened in a period, and what is next."""

    since: datetime
    until: datetime
    verified: tuple[PlanLine, ...]
    waiting: tuple[Alert, ...]
    """What waits for the user, the most important first."""
    failed: tuple[PlanLine, ...]
    spent: Cost
    spent_by_agent: tuple[Cost, ...]
    quota_waits: tuple[QuotaWait, ...]
    """Empty for a caller that sees some projects only: accounts belong to the whole home."""
    next: tuple[PlanLine, ...]
    """The plans that have not ended."""


async def report(
    at: Session,
    caller: Caller,
    *,
    since: datetime | None = None,
    project_id: str | None = None,
    after: int | None = None,
) -> WorkReport:
    """Return what happened since a time, by default the last day; `after` leaves out events up to a number."""

    def load(tx: Tx) -> WorkReport:
        where = seen_where(tx, caller, project_id)
        # A time before all homes or after now could have no date in another time zone.
        begin = min(max(since, _FIRST), tx.now()) if since else tx.now() - USUAL
        seen = after if after is not None else _first_since(tx, begin) - 1
        ended = tx.find(Plan, id=_ended(tx, seen), made_for=None, **where)
        going = tx.find(
            Plan, status=frozenset(PlanState) - ENDED_PLAN, made_for=None, order_by=("created_at",), **where
        )
        runs = costed_runs(tx, where, begin)
        return WorkReport(
            since=begin,
            until=tx.now(),
            verified=_lines(tx, [one for one in ended if one.status is PlanState.VERIFIED]),
            waiting=(),
            failed=_lines(tx, [one for one in ended if one.status is PlanState.FAILED]),
            spent=cost_of("", runs),
            spent_by_agent=tuple(
                cost_of(name, rows) for name, rows in sorted(grouped(runs, Dimension.AGENT).items())
            ),
            quota_waits=_quota_waits(tx, begin, seen) if project_id is None and caller.sees(None) else (),
            next=_lines(tx, going[:_MOST]),
        )

    found = await at.home.store.read(load)
    # A failed plan has its own part.
    waiting = [
        one
        for one in await alerts(at, caller, project_id)
        if one.kind != "plan_failed" and not one.acknowledged_by
    ]
    return replace(found, waiting=tuple(waiting))


def _lines(tx: Tx, plans: Sequence[Plan]) -> tuple[PlanLine, ...]:
    ids = [one.id for one in plans]
    total = tx.tally(Task, "plan_id", plan_id=ids) if ids else {}
    passed = tx.tally(Task, "plan_id", plan_id=ids, status=TaskState.COMPLETE) if ids else {}
    projects = {one.id: one.name for one in tx.find(Project, id={one.project_id for one in plans})}
    loops = {one.id: one for one in tx.find(Loop, id={one.loop_id for one in plans})}
    return tuple(
        PlanLine(
            plan_id=one.id,
            project=projects.get(one.project_id, ""),
            title=one.title,
            status=one.status,
            passed=passed.get(one.id, 0),
            total=total.get(one.id, 0),
            reason=one.reason or (loops[one.loop_id].reason if one.status not in ENDED_PLAN else ""),
            branch=one.branch,
            spent_micros=one.spent_micros,
        )
        for one in plans
    )


def _ended(tx: Tx, seen: int) -> list[str]:
    found = tx.events(after=seen, types=("plan_verified", "plan_failed"), limit=10 * _MOST)
    return list(dict.fromkeys(one.plan for one in found if one.plan is not None))


def _quota_waits(tx: Tx, begin: datetime, seen: int) -> tuple[QuotaWait, ...]:
    waits: dict[str, QuotaWait] = {}
    done: list[QuotaWait] = []
    for event in tx.events(after=seen, types=("envelope_closed", "envelope_opened"), limit=10 * _MOST):
        account = str(event.payload.get("envelope", ""))
        if event.type == "envelope_closed":
            waits.setdefault(account, QuotaWait(account=account, since=event.at, until=None))
        else:
            wait = waits.pop(account, None)
            began = wait.since if wait else begin  # it was closed before
            done.append(QuotaWait(account=account, since=began, until=event.at))
    return tuple(sorted([*done, *waits.values()], key=lambda one: one.since))


def _first_since(tx: Tx, begin: datetime) -> int:
    """Return the number of the first event at or after a time: events are in order, so by bisection."""
    low, high = 1, tx.last_event() + 1
    while low < high:
        middle = (low + high) // 2
        found = tx.events(after=middle - 1, limit=1)
        if found and found[0].at < begin:
            low = found[0].n + 1
        else:
            high = middle
    return low


# The command line reports what happened since its last report.


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The user at the terminal, in a repository or outside one."""

    caller: Caller
    cursor: str


def owner_of(tx: Tx, checkouts: Sequence[str] | None) -> Owner:
    """Return the caller: in a repository, the report is about its project alone."""
    ids = None if checkouts is None else sorted(one.id for one in tx.find(Project, path=list(checkouts)))
    caller = Caller(
        token_id="",
        name="terminal",
        scope=Scope.READ,
        projects=None if ids is None else frozenset(ids),
    )
    return Owner(caller=caller, cursor="/".join((_LAST, *(ids or ()))))


async def report_since_last(at: Session, owner: Owner) -> WorkReport:
    """Return what happened since the last such report, by default the last day, and record this report."""

    def begin(tx: Tx) -> tuple[datetime | None, int | None, int]:
        cursor = tx.get(Cursor, owner.cursor)
        found = tx.events(after=cursor.n - 1, limit=1) if cursor is not None else []
        # By its number too: several events can have one time.
        return (found[0].at, found[0].n, tx.last_event()) if found else (None, None, tx.last_event())

    since, seen, last = await at.home.store.read(begin)
    made = await report(at, owner.caller, since=since, after=seen)

    def note(tx: Tx) -> None:
        if tx.get(Cursor, owner.cursor) is None:
            tx.insert(Cursor(id=owner.cursor, n=last))
        else:
            tx.update(Cursor, owner.cursor, n=last)

    await at.home.store.transact("report", note)
    return made
