"""Whether recording an event and reading a page of them costs the same whatever there is already."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.measure import Measurement, Setting, Target, taken_in_turn
from loopwright.adapters.store.sql import SqlStore
from loopwright.core.rows.events import Event
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
    """Fill a home of each size, then measure them in turn: a busy moment of the machine meets all of them."""
    sizes = (10_000, 50_000) if setting.quick else (10_000, 100_000, 1_000_000)
    homes = [_filled(setting, size) for size in sizes]
    found = taken_in_turn(setting.repeats, [home.measure for home in homes])
    for home in homes:
        home.store.close_sync()
    costs = dict(zip(sizes, found, strict=True))
    for size in sizes:
        last = size == sizes[-1]
        for name, part, limited in (
            ("recording an event", 0, False),
            (f"a page of {PAGE} events", 1, True),
            (f"a page of {PAGE} events of one plan", 2, True),
        ):
            yield Measurement(
                case=CASE,
                name=f"{name}, {size:,} events recorded",
                unit="ms",
                values=tuple(one[part] for one in costs[size]),
                against=f"{sizes[0]:,} events",
                baseline=tuple(one[part] for one in costs[sizes[0]]),
                target=Target(limit=LIMIT, of="ratio") if last and limited else None,
                group="" if size == sizes[0] else "Events against a home with 10,000 of them",
                at=f"{name} {size:,}",
            )


@dataclass(kw_only=True)
class _Home:
    store: SqlStore
    have: int

    def measure(self, _n: int) -> tuple[float, float, float]:
        """Return what an event takes to record, a page to read, and a page of one plan, in milliseconds."""
        recording = _recording(self.store, self.have)
        self.have += WRITES * PER_WRITE
        return (
            recording,
            _reading(self.store, self.have, plan=None),
            _reading(self.store, self.have, plan=_plan(7)),
        )


def _filled(setting: Setting, size: int) -> _Home:
    home = _Home(store=SqlStore.open(setting.place(f"events-{size}") / "loopwright.db"), have=0)
    while home.have < size:
        home.store.transact_sync("fill", lambda tx: _append(tx, home.have, BATCH))
        home.have += BATCH
    return home


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
