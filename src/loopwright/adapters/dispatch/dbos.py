"""The engine for many machines: one DBOS workflow per leg, on a queue that all workers share in PostgreSQL.

DBOS is used for what it proves: a leg is claimed by exactly one worker, and stays recorded until it has ended.
It replays nothing, since a leg is one idempotent function, and it decides nothing.

Two event loops are involved. DBOS keeps its own in a thread, where a leg's workflow only waits; the leg itself
runs in the loop that called `launch`, where the worker's connections and sockets live.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeVar

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, WorkflowStatus

from loopwright.adapters.dispatch.legs import Endings, OnError, checked_slots, run_leg
from loopwright.core.rows.model import Leg
from loopwright.core.values.errors import BadConfig, StoreUnavailable
from loopwright.ports import Execute

SCHEMA: Final = "loopwright_dbos"
"""Where DBOS keeps its tables, apart from those of the home."""
APPLICATION: Final = "loopwright"
QUEUE: Final = "legs"
WORKFLOW: Final = "loopwright.leg"

POLL_S: Final = 0.2
"""How often a worker with a free slot looks for a leg: 0.1 s on average before it starts."""
OWN_POLL_S: Final = 1.0
"""How often it looks for a leg that only its own host can carry on."""
WATCH_S: Final = 1.0
"""How often a worker compares the legs that it runs with those recorded as its own."""

MISSED_S: Final = 2.0
"""How long a leg may be claimed before DBOS begins it; more, and it got lost on the way."""
IDLE_TRANSACTION_MS: Final = 60_000
REPEAT_S: Final = 60.0
SETTLE_S: Final = 5.0

T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launched:
    """What exists between `launch` and `close`."""

    execute: Execute
    worker_id: str
    slots: asyncio.Semaphore
    loop: asyncio.AbstractEventLoop
    threads: ThreadPoolExecutor
    pool: sa.QueuePool
    dbos: DBOS
    client: DBOSClient
    watcher: asyncio.Task[None]


class DbosEngine:
    """Shares legs among the workers of one PostgreSQL database. A process can have one at a time."""

    # DBOS is a singleton of the process: a second engine would silently join the first one's database.
    _holder: ClassVar["DbosEngine | None"] = None

    def __init__(
        self,
        url: str,
        *,
        version: str,
        on_error: OnError,
        host_id: str | None = None,
        poll_s: float = POLL_S,
        watch_s: float = WATCH_S,
    ) -> None:
        """Keep the settings; `version` names the pipeline, and only legs of the same version run here.

        With a `host_id` the worker also takes the legs that are tied to this host.
        """
        if not sa.make_url(url).drivername.startswith("postgres"):
            raise BadConfig(
                "sharing legs among machines needs a PostgreSQL database",
                code="dispatch_needs_postgresql",
                hint="set the database to a postgresql:// URL, or use the local engine",
            )
        self._url = sa.make_url(url).set(drivername="postgresql+psycopg")
        self._version = version
        self._on_error = on_error
        self._host_id = host_id
        self._poll_s = poll_s
        self._watch_s = watch_s
        self._now: _Launched | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._endings = Endings()
        self._ready: Future[_Launched] = Future()

    async def launch(self, execute: Execute, *, worker_id: str, slots: int) -> None:
        """Join the workers of this database; after `close` it may be launched again under a new worker id."""
        if DbosEngine._holder is not None:
            raise RuntimeError("this process has a launched DBOS engine already")
        checked_slots(slots)
        DbosEngine._holder = self
        self._ready = Future()
        threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="dispatch")
        loop = asyncio.get_running_loop()
        try:
            pool, dbos, client = await loop.run_in_executor(threads, self._open, worker_id, slots)
        except BaseException:
            threads.shutdown(wait=False)
            DbosEngine._holder = None
            raise
        self._now = _Launched(
            execute=execute,
            worker_id=worker_id,
            slots=asyncio.Semaphore(slots),
            loop=loop,
            threads=threads,
            pool=pool,
            dbos=dbos,
            client=client,
            watcher=asyncio.create_task(self._watch(), name="watch legs"),
        )
        try:
            await self._end_other_versions()
        except BaseException:
            await self.close()
            raise
        self._ready.set_result(self._now)

    async def start(self, leg: Leg) -> None:
        """Put the leg on the shared queue, or on that of the one host that can carry it on.

        Nothing happens when its id was ever there.
        """
        client = self._launched().client
        queue = QUEUE if leg.host_id is None else _queue_of(leg.host_id)
        await self._call(
            lambda: client.enqueue(
                {
                    "workflow_name": WORKFLOW,
                    "queue_name": queue,
                    "workflow_id": leg.id,
                    "app_version": self._version,
                },
                leg.subject,
                leg.n,
                leg.fence,
            )
        )

    async def cancel(self, leg: Leg) -> None:
        """End the leg for good; here it has cleaned up on return, another worker drops it within `watch_s`."""
        client = self._launched().client
        await self._call(lambda: client.cancel_workflow(leg.id))
        await self._drop(leg.id)

    async def in_flight(self, owners: Sequence[str] | None = None) -> list[str]:
        """Return the ids of all legs on the queue or running, or of those running on these workers."""
        if owners is None:
            return [status.workflow_id for status in await self._list(["ENQUEUED", "PENDING"])]
        return [
            status.workflow_id for status in await self._list(["PENDING"]) if status.executor_id in owners
        ]

    async def owners(self) -> list[str]:
        """Return the workers that have legs.

        Read the leases after this, not before: then a worker that is missing among them is a dead one, and not
        one that has just joined.
        """
        return sorted({status.executor_id for status in await self._list(["PENDING"]) if status.executor_id})

    async def recover(self, owners: Sequence[str]) -> list[str]:
        """Put the legs of dead workers back on the queue and return their ids.

        Called twice, even at once by two workers, it gives each leg back once. Legs of another version are
        ended instead. A worker's own legs are running, so its own id is passed over.
        """
        now = self._launched()
        dead = [owner for owner in owners if owner != now.worker_id]
        recovered = []
        for status in await self._list(["PENDING"]):
            theirs = status.executor_id in dead and status.app_version == self._version
            if theirs and await self._give_back(status.workflow_id, dead):
                recovered.append(status.workflow_id)
        await self._end_other_versions(dead)
        return recovered

    async def close(self) -> None:
        """Leave the workers and drop the legs running here; they stay recorded as this worker's."""
        now, self._now = self._now, None
        if now is None:
            return
        now.watcher.cancel()
        await asyncio.wait([now.watcher])
        try:
            # In this order: a leg that is claimed while DBOS's loop stops would be started nowhere.
            await now.loop.run_in_executor(now.threads, self._stop_claiming, now)
            await self._endings.end(self._tasks.values())
            await now.loop.run_in_executor(None, self._shut, now)
        finally:
            DbosEngine._holder = None

    # --- in the worker's loop ---------------------------------------------------------------------

    def _launched(self) -> _Launched:
        if self._now is None:
            raise RuntimeError("launch the engine first")
        return self._now

    async def _call(self, work: Callable[[], T]) -> T:
        now = self._launched()
        try:
            return await now.loop.run_in_executor(now.threads, work)
        except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.TimeoutError) as error:
            raise StoreUnavailable(f"the dispatch database cannot be reached: {error}") from error

    async def _list(self, states: list[str]) -> list[WorkflowStatus]:
        client = self._launched().client
        return await self._call(
            lambda: client.list_workflows(name=WORKFLOW, status=states, load_input=False, load_output=False)
        )

    async def _drive(self, now: _Launched, leg: Leg) -> None:
        task = asyncio.current_task()
        assert task is not None
        # Other workers may have thought this one dead and given the leg back, and it came here again.
        await self._drop(leg.id)
        if self._now is not now:
            raise asyncio.CancelledError
        self._tasks[leg.id] = task
        try:
            # DBOS counts a leg against `worker_concurrency` only once its workflow has begun, so under load
            # it can claim one too many; that one waits here.
            async with now.slots:
                await run_leg(now.execute, leg)
        finally:
            if self._tasks.get(leg.id) is task:
                del self._tasks[leg.id]

    async def _drop(self, leg_id: str) -> None:
        if (task := self._tasks.get(leg_id)) is not None:
            await self._endings.end([task])

    async def _watch(self) -> None:
        missed: dict[str, float] = {}
        while True:
            await asyncio.sleep(self._watch_s)
            try:
                missed = await self._look_after_own(missed)
            except StoreUnavailable as error:
                _log.warning("cannot look after this worker's legs, error=%s", error)

    async def _look_after_own(self, missed: Mapping[str, float]) -> dict[str, float]:
        """Make what runs here and what is recorded as running here the same.

        Legs that were cancelled elsewhere, or given to another worker while this one was away, are dropped.
        Legs that are recorded but do not run are given back after a while: the connection broke after DBOS
        claimed them, or before it recorded their end. `missed` says since when they do not run; return the same
        as it is now.
        """
        now = self._launched()
        running = dict(self._tasks)
        recorded = {s.workflow_id for s in await self._list(["PENDING"]) if s.executor_id == now.worker_id}
        for leg_id, task in running.items():
            if leg_id not in recorded and self._tasks.get(leg_id) is task:
                await self._drop(leg_id)
        # From before a leg begins until its end is recorded, however long that takes.
        active = {*now.dbos._active_workflows_set.activeList(), *running, *self._tasks}  # noqa: SLF001
        at = now.loop.time()
        missing = {leg_id: missed.get(leg_id, at) for leg_id in recorded - active}
        for leg_id in [leg_id for leg_id, since in missing.items() if at - since >= MISSED_S]:
            _log.warning("a leg was recorded as running here and did not run, leg=%s", leg_id)
            await self._give_back(leg_id, [now.worker_id])
            del missing[leg_id]
        return missing

    async def _give_back(self, leg_id: str, owners: list[str]) -> bool:
        """Put a leg of one of these workers on the queue again; return whether it was theirs."""
        # The public `resume_workflows` does not ask whose leg it is, so it could take a leg away from a live
        # worker that has just got it from another process's recovery.
        reenqueue = self._launched().client._sys_db.reenqueue_for_recovery  # noqa: SLF001
        return await self._call(lambda: reenqueue(leg_id, owners, QUEUE))

    async def _end_other_versions(self, dead: Sequence[str] = ()) -> None:
        """End legs that no worker of this version will take, so that reconcile starts the next ones."""
        client = self._launched().client
        ids = [
            status.workflow_id
            for status in await self._list(["ENQUEUED", "PENDING"])
            if status.app_version != self._version
            and (status.status == "ENQUEUED" or status.executor_id in dead)
        ]
        if ids:
            await self._call(lambda: client.cancel_workflows(ids))

    # --- in threads -------------------------------------------------------------------------------

    def _open(self, worker_id: str, slots: int) -> tuple[sa.QueuePool, DBOS, DBOSClient]:
        # With its own handler, DBOS does not print to the console: what it says goes to our log.
        logger = logging.getLogger("dbos")
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
        if not any(isinstance(known, _Sparing) for known in logger.filters):
            logger.addFilter(_Sparing())
        # One pool for both, so that its limits hold for the process.
        engine = sa.create_engine(
            self._url,
            pool_size=8,
            max_overflow=8 + slots,
            pool_pre_ping=True,
            connect_args={"application_name": "loopwright-dispatch", "connect_timeout": 10},
        )
        sa.event.listen(engine, "connect", _bound_transactions)
        try:
            with engine.connect():
                dbos = self._launch_dbos(engine, worker_id, slots)
            client = DBOSClient(
                system_database_engine=engine,
                dbos_system_schema=SCHEMA,
                serializer=DBOSPortableJSONSerializer(),
                application_name=APPLICATION,
                # An unreachable database is for the caller to hear of, not to wait for.
                retry_connection_errors=False,
            )
        except sa.exc.OperationalError as error:
            engine.dispose()
            raise StoreUnavailable(f"the dispatch database cannot be reached: {error}") from error
        assert isinstance(engine.pool, sa.QueuePool)
        return engine.pool, dbos, client

    def _launch_dbos(self, engine: sa.Engine, worker_id: str, slots: int) -> DBOS:
        config: DBOSConfig = {
            "name": APPLICATION,
            "system_database_engine": engine,
            "dbos_system_schema": SCHEMA,
            "application_version": self._version,
            "executor_id": worker_id,
            "log_level": "WARNING",
            "enable_otlp": False,
            # Nothing here sends messages to workflows; listening would cost a connection and wake up often.
            "use_listen_notify": False,
            # The thread that would listen then only sleeps, and `close` waits for it.
            "notification_listener_polling_interval_sec": 0.2,
        }
        dbos = DBOS(config=config)
        # How often a leg may be recovered is for the policy to say, not for DBOS.
        DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None)(self._workflow())
        # A queue made with the public `register_queue` is one row in the database: the last worker to register
        # it would set the slots of all.
        dbos._registry._register_internal_queue(  # noqa: SLF001
            QUEUE, worker_concurrency=slots, polling_interval_sec=self._poll_s
        )
        if self._host_id is not None:
            # Legs come here only when they continue after a wait or a crash: that may take a little longer.
            dbos._registry._register_internal_queue(  # noqa: SLF001
                _queue_of(self._host_id), worker_concurrency=slots, polling_interval_sec=OWN_POLL_S
            )
        try:
            DBOS.launch()
        except BaseException:
            DBOS.destroy(destroy_registry=True)
            raise
        return dbos

    def _stop_claiming(self, now: _Launched) -> None:
        for event in now.dbos.background_thread_stop_events:
            event.set()
        for thread in threading.enumerate():
            if thread.name.startswith(f"queue-worker-{QUEUE}") and thread.is_alive():
                thread.join(timeout=10.0)

    def _shut(self, now: _Launched) -> None:
        DBOS.destroy(destroy_registry=True)
        # A call whose caller was cancelled continues in its thread, here and in DBOS. A connection that comes
        # back to the pool after its end would stay open.
        now.threads.shutdown(wait=True)
        until = time.monotonic() + SETTLE_S
        while now.pool.checkedout() and time.monotonic() < until:
            time.sleep(0.01)
        now.client.destroy()
        now.pool.dispose()

    # --- in DBOS's loop ---------------------------------------------------------------------------

    def _workflow(self) -> Callable[[str, int, int], object]:
        async def leg(subject: str, n: int, fence: int) -> str:
            return await self._wait_for(Leg(subject=subject, n=n, fence=fence))

        return leg

    async def _wait_for(self, leg: Leg) -> str:
        """Have the leg driven in the worker's loop; return once it has ended, whether well or not."""
        # DBOS may claim a leg before `launch` has returned.
        now = await asyncio.wrap_future(self._ready)
        driven = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._drive(now, leg), now.loop))
        try:
            await asyncio.wait([driven])
        finally:
            driven.cancel()
        # A cancellation records no outcome with DBOS: the leg is another process's, or stays this worker's
        # until it is recovered.
        if driven.cancelled():
            raise asyncio.CancelledError
        error = driven.exception()
        if error is None:
            return ""
        now.loop.call_soon_threadsafe(self._on_error, leg, error)
        return f"{type(error).__name__}: {error}"


class _Sparing(logging.Filter):
    """Keeps DBOS from warning of what is meant to happen, and from repeating itself with each poll."""

    _EXPECTED: ClassVar = ("Asyncio task cancelled", "Workflow already exists in queue")

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, int], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Let a message of each kind through once a minute."""
        kind = (record.filename, record.lineno)
        if record.getMessage().startswith(self._EXPECTED):
            return False
        if record.created - self._said.get(kind, 0.0) < REPEAT_S:
            return False
        self._said[kind] = record.created
        return True


def _queue_of(host_id: str) -> str:
    return f"{QUEUE}@{host_id}"


def _bound_transactions(connection: Any, _record: object) -> None:
    """Have the server end transactions of a worker that froze: the rows it locked are needed elsewhere."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET idle_in_transaction_session_timeout = {IDLE_TRANSACTION_MS}")
    connection.commit()
