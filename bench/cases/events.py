"""Whether recording an event and reading a page of them costs the same whatever there is already."""

import time
from collections.abc import Iterator

from bench.measure import Measurement, Setting, Target
from loopwright.adapters.store.sql import SqlStore
from loopwright.core.happenings import Event
from loopwright.ports import Tx

CASE = "events"
LIMIT = 1.3
PAGE = 500
BATCH = 2000
PLANS = 20
WRITES = 100
PER_WRITE = 5
READS = 20


def case(setting: Setting) -> Iterator[Measurement]:
    """Fill one home and stop at each size to measure."""
    sizes = (10_000, 50_000) if setting.quick else (10_000, 100_000, 1_000_000)
    store = SqlStore.open(setting.place("events") / "loopwright.db")
    record: dict[int, list[float]] = {}
    page: dict[int, list[float]] = {}
    by_plan: dict[int, list[float]] = {}
    have = 0
    for size in sizes:
        while have < size:
            store.transact_sync("fill", lambda tx, have=have: _append(tx, have, BATCH))  # type: ignore[misc]
            have += BATCH
        record[size], page[size], by_plan[size] = [], [], []
        for _ in range(setting.repeats):
            record[size].append(_recording(store, have))
            have += WRITES * PER_WRITE
            page[size].append(_reading(store, have, plan=None))
            by_plan[size].append(_reading(store, have, plan=_plan(7)))
    store.close_sync()
    for size in sizes:
        last = size == sizes[-1]
        for name, found, limited in (
            ("recording an event", record, False),
            (f"a page of {PAGE} events", page, True),
            (f"a page of {PAGE} events of one plan", by_plan, True),
        ):
            yield Measurement(
                case=CASE,
                name=f"{name}, {size:,} events recorded",
                unit="ms",
                values=tuple(found[size]),
                against=f"{sizes[0]:,} events",
                baseline=tuple(found[sizes[0]]),
                target=Target(limit=LIMIT, of="ratio") if last and limited else None,
                group="" if size == sizes[0] else "Events against a home with 10,000 of them",
                at=f"{name} {size:,}",
            )


def _plan(n: int) -> str:
    return f"plan_{n % PLANS:08d}"


def _append(tx: Tx, first: int, count: int) -> None:
    for n in range(first, first + count):
        tx.append(
            Event(
                type="run_started",
                actor="bench",
                project="prj_1",
                loop="loop_1",
                plan=_plan(n),
                task=f"task_{n // 20}",
                run=f"run_{n // 10}",
                payload={"role": "implementer", "agent": "command", "n": n},
            )
        )


def _recording(store: SqlStore, have: int) -> float:
    began = time.monotonic()
    for n in range(WRITES):
        first = have + n * PER_WRITE
        store.transact_sync("record", lambda tx, first=first: _append(tx, first, PER_WRITE))  # type: ignore[misc]
    return (time.monotonic() - began) * 1000 / (WRITES * PER_WRITE)


def _reading(store: SqlStore, have: int, *, plan: str | None) -> float:
    took = []
    for n in range(READS):
        after = (have - PAGE * (PLANS + 1)) * n // READS
        began = time.monotonic()
        found = store.read_sync(lambda tx, after=after: tx.events(after=after, limit=PAGE, plan=plan))  # type: ignore[misc]
        took.append((time.monotonic() - began) * 1000)
        if len(found) != (PAGE if plan is None or have > PAGE * PLANS else len(found)):
            raise RuntimeError("a page was not full")
    return sorted(took)[len(took) // 2]
