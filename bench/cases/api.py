"""The HTTP interface with many loops, plans and events: how long requests take, and events until streams have them."""

import asyncio
import contextlib
import itertools
import json
import random
import sqlite3
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from bench.cases.recovery import once as killed_once
from bench.measure import Measurement, Setting, Target
from bench.yard import Yard
from loopwright.adapters.store.codec import encode
from loopwright.adapters.store.sql import SqlStore
from loopwright.adapters.store.tables import name_of
from loopwright.core.rows.events import Event
from loopwright.core.rows.model import Cursor, Loop, Plan, Project, Task
from loopwright.core.values.ids import Kind, make
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import LoopState, PlanState, TaskState

CASE = "api"
PROJECTS = 5
TASKS = 3
CONNECTIONS = 50
PER_SECOND = 100
STREAMS = 20
P50_MS, P99_MS, DELIVERY_MS, SCHEDULING_S = 30, 100, 150, 3.0
AT = datetime(2031, 5, 6, tzinfo=UTC)


def case(setting: Setting) -> Iterator[Measurement]:
    """Fill a home, ask its daemon, and kill one with agents at work."""
    with served_home(setting) as served:
        loops, plans, events = served.sizes
        took, delivered = asyncio.run(_asked(served, setting.pick(60, 10)))
        with_all = f"{loops:,} loops, {plans:,} plans, {events:,} events"
        for name, found in took.items():
            for part, limit in ((0.5, P50_MS), (0.99, P99_MS)):
                yield Measurement(
                    case=CASE,
                    name=f"{name}, p{part * 100:.0f} ({with_all}, {PER_SECOND} requests/s)",
                    unit="ms",
                    values=(_quantile(found, part),),
                    target=Target(limit=limit, of="value"),
                )
        yield Measurement(
            case=CASE,
            name=f"an event until {STREAMS} streams have it, p99",
            unit="ms",
            values=(_quantile(delivered, 0.99),),
            target=Target(limit=DELIVERY_MS, of="value"),
        )
    agents = setting.pick(20, 10)
    _, scheduling = killed_once(setting, agents, 0, ("serve", "--port", "0"))
    yield Measurement(
        case=CASE,
        name=f"kill -9 of the daemon with {agents} agents at work until new work is started",
        unit="s",
        values=(scheduling,),
        target=Target(limit=SCHEDULING_S, of="value"),
    )


@dataclass(frozen=True, kw_only=True)
class ServedHome:
    port: int
    token: str
    pid: int
    store: SqlStore
    sizes: tuple[int, int, int]
    project_ids: list[str]
    loop_ids: list[str]
    plan_ids: list[str]


@contextlib.contextmanager
def served_home(setting: Setting) -> Iterator[ServedHome]:
    yard = Yard(root=setting.folder / "api", jobs=()).make()
    yard.home.mkdir()
    database = yard.home / "loopwright.db"
    SqlStore.open(database).close_sync()
    sizes = (1_000, 10_000, 1_000_000) if not setting.quick else (200, 2_000, 100_000)
    with contextlib.closing(sqlite3.connect(database)) as link:
        ids = _fill(link, yard.repository, *sizes)
        link.commit()
    store = SqlStore.open(database)
    command = yard.command("serve", "--port", "0", "--json")
    daemon = subprocess.Popen(command, cwd=yard.repository, env=yard.env(), stdout=subprocess.PIPE, text=True)
    try:
        assert daemon.stdout is not None
        said: dict[str, Any] = next(
            document for line in daemon.stdout if (document := json.loads(line))["type"] == "listening"
        )
        yield ServedHome(
            port=int(said["url"].rpartition(":")[2]),
            token=Path(said["token_file"]).read_text().strip(),
            pid=daemon.pid,
            store=store,
            sizes=sizes,
            project_ids=ids[0],
            loop_ids=ids[1],
            plan_ids=ids[2],
        )
    finally:
        daemon.kill()
        daemon.wait()
        store.close_sync()
        yard.remove()


def _fill(
    link: sqlite3.Connection, repository: Path, loops: int, plans: int, events: int
) -> tuple[list[str], list[str], list[str]]:
    """Write the rows directly: the product would take hours."""
    chance = random.Random(7)
    link.execute("PRAGMA synchronous = OFF")

    def new_id(kind: Kind) -> str:
        return make(kind, UUID(int=chance.getrandbits(128), version=4))

    def insert(rows: Iterator[Any]) -> None:
        first = next(rows)
        names = ", ".join(f'"{name}"' for name in encode(first))
        marks = ", ".join("?" * len(encode(first)))
        statement = f"INSERT INTO {name_of(type(first))} ({names}) VALUES ({marks})"
        link.executemany(statement, (list(encode(row).values()) for row in itertools.chain([first], rows)))

    projects = [
        Project(id=new_id(Kind.PROJECT), name=f"project {n}", path=f"{repository}-{n}", created_at=AT)
        for n in range(PROJECTS)
    ]
    insert(iter(projects))
    loop_rows = [
        Loop(
            id=new_id(Kind.LOOP),
            project_id=projects[n % PROJECTS].id,
            name=f"loop {n}",
            source_kind="yaml",
            source_path=f"loop-{n}.yaml",
            state=(LoopState.STOPPED, LoopState.COMPLETED, LoopState.FAILED)[n % 3],
            created_at=AT + timedelta(minutes=n),
            updated_at=AT + timedelta(minutes=n),
        )
        for n in range(loops)
    ]
    policy = Policy()
    states = (PlanState.VERIFIED, PlanState.FAILED, PlanState.CANCELLED)
    plan_rows = []
    for n in range(plans):
        loop = loop_rows[n % loops]
        plan_rows.append(
            Plan(
                id=new_id(Kind.PLAN),
                project_id=loop.project_id,
                loop_id=loop.id,
                title=f"plan {n}",
                status=states[n % 3],
                source_sha256="0" * 64,
                base_ref="main",
                base_sha="1" * 40,
                branch=f"loopwright/{n}",
                policy=policy,
                created_at=AT + timedelta(seconds=n),
                updated_at=AT + timedelta(seconds=n),
            )
        )
    newest = {plan.loop_id: plan.id for plan in plan_rows}
    insert(replace(one, plan_id=newest[one.id]) for one in loop_rows)
    insert(iter(plan_rows))
    insert(
        Task(
            id=new_id(Kind.TASK),
            plan_id=plan.id,
            key=f"task-{n}",
            title=f"Task {n}",
            position=n,
            status=TaskState.COMPLETE,
            created_at=plan.created_at,
            updated_at=plan.created_at,
        )
        for plan in plan_rows
        for n in range(TASKS)
    )
    link.executemany(
        "INSERT INTO events (n, id, project, loop, plan, type, version, at, actor, importance, payload, prev_hash,"
        " hash) VALUES (?, ?, ?, ?, ?, ?, 1, ?, 'bench', 'normal', ?, '', '')",
        (
            (n, f"evt_{n}", plan.project_id, plan.loop_id, plan.id, kind, "2031-05-06T00:00:00.000000Z", text)
            for n in range(1, events + 1)
            for plan in (plan_rows[n * plans // (events + 1)],)
            for kind in (("run_started", "run_ended", "task_started")[n % 3],)
            for text in (f'{{"n":{n},"text":"{"x" * 150}"}}',)
        ),
    )
    link.execute("UPDATE counters SET n = ? WHERE id = 'events'", (events,))
    insert(iter([Cursor(id="state-files", n=events)]))
    return [one.id for one in projects], [one.id for one in loop_rows], [one.id for one in plan_rows]


# --- a client that costs next to nothing: the machine has few processors, and the server needs them -----------------


class _Connection:
    def __init__(
        self, served: ServedHome, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {served.token}\r\n\r\n"
        self.reader = reader
        self._writer = writer

    async def get(self, path: str) -> None:
        await self.send(path)
        head = await self.reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(f"{path}: {head.splitlines()[0].decode()}")
        length = next(line for line in head.lower().splitlines() if line.startswith(b"content-length:"))
        await self.reader.readexactly(int(length.partition(b":")[2]))

    async def send(self, path: str) -> None:
        self._writer.write(f"GET {path} HTTP/1.1\r\n{self._head}".encode())
        await self._writer.drain()

    def close(self) -> None:
        self._writer.close()


@contextlib.asynccontextmanager
async def _connected(served: ServedHome, count: int) -> AsyncIterator[list[_Connection]]:
    made = [
        _Connection(served, *await asyncio.open_connection("127.0.0.1", served.port, limit=1 << 22))
        for _ in range(count)
    ]
    try:
        yield made
    finally:
        for one in made:
            one.close()


def _requests(served: ServedHome) -> Iterator[tuple[str, str]]:
    chance = random.Random(11)
    while True:
        yield "list of 50 loops", "/api/loops?limit=50"
        yield "one plan", f"/api/plans/{chance.choice(served.plan_ids)}"
        yield "list of 50 plans", f"/api/projects/{chance.choice(served.project_ids)}/plans?limit=50"
        yield "one loop", f"/api/loops/{chance.choice(served.loop_ids)}"
        yield "one project", f"/api/projects/{chance.choice(served.project_ids)}"
        yield "page of 50 events", f"/api/events?limit=50&after={chance.randrange(served.sizes[2])}"


async def load(served: ServedHome, seconds: float, note: Callable[[str, float], None]) -> None:
    """Send requests at their times, whether or not the ones before were answered."""
    loop = asyncio.get_running_loop()
    async with _connected(served, CONNECTIONS) as connections:
        free: asyncio.Queue[_Connection] = asyncio.Queue()
        for one in connections:
            free.put_nowait(one)
        began = loop.time()
        going: set[asyncio.Task[None]] = set()

        async def ask(name: str, path: str, due: float) -> None:
            connection = await free.get()
            await connection.get(path)
            free.put_nowait(connection)
            note(name, (loop.time() - due) * 1000)

        for n, (name, path) in zip(range(int(seconds * PER_SECOND)), _requests(served), strict=False):
            due = began + n / PER_SECOND
            if (pause := due - loop.time()) > 0:
                await asyncio.sleep(pause)
            going.add(asyncio.create_task(ask(name, path, due)))
            for done in [one for one in going if one.done()]:
                going.discard(done)
                done.result()
        await asyncio.gather(*going)


async def _asked(served: ServedHome, seconds: float) -> tuple[dict[str, list[float]], list[float]]:
    """Return how long requests of each kind took, and events until streams had them, in milliseconds."""
    took: dict[str, list[float]] = {}
    delivered: list[float] = []
    await load(served, 2, lambda _name, _ms: None)  # the first of each kind loads what it needs
    async with _connected(served, STREAMS) as streams:
        for one in streams:
            await one.send("/api/events/stream")
            await one.reader.readuntil(b"retry: 1000\n\n")
        reading = [asyncio.create_task(_deliveries(one, delivered)) for one in streams]
        writing = asyncio.create_task(_append(served.store))
        await load(served, seconds, lambda name, ms: took.setdefault(name, []).append(ms))
        for task in (writing, *reading):
            task.cancel()
        await asyncio.wait({writing, *reading})
    return took, delivered


async def _append(store: SqlStore) -> None:
    while True:
        await asyncio.sleep(0.1)
        event = Event(type="run_started", actor="bench", payload={"sent": time.monotonic()})
        await asyncio.to_thread(store.transact_sync, "bench", lambda tx, event=event: tx.append(event))


async def _deliveries(stream: _Connection, delivered: list[float]) -> None:
    while True:
        line = await stream.reader.readuntil(b"\n")
        if line.startswith(b"data: "):
            sent = json.loads(line.removeprefix(b"data: "))["details"]["sent"]
            delivered.append((time.monotonic() - sent) * 1000)


def _quantile(found: list[float], part: float) -> float:
    ordered = sorted(found)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]
