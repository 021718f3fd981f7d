"""Several worker processes on one PostgreSQL: shared work, a killed worker, a frozen one, another version."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.contracts.engine.conftest import VERSION
from tests.contracts.engine.legs import Legs
from tests.refusals import raises_code
from tests.waiting import eventually_async

from loopwright.core.rows.model import Leg
from loopwright.core.values.errors import StoreUnavailable

# To load it takes a second: not for every process that only collects.
pytestmark = pytest.mark.skipif(find_spec("dbos") is None, reason="no DBOS")

# A worker process imports for about a second before it does anything.
SOON = 30.0
ROOT = Path(__file__).parents[3]


class Workers:
    """Worker processes, and what they did."""

    def __init__(self, url: str, directory: Path) -> None:
        self.url = url
        self.directory = directory
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def spawn(self, worker_id: str, *, slots: int, version: str = VERSION) -> None:
        arguments = [self.url, worker_id, str(slots), str(self.directory), version]
        program = [sys.executable, "-W", "error", "-m", "tests.contracts.engine.worker_process", *arguments]
        with (self.directory / f"{worker_id}.out").open("wb") as out:
            process = subprocess.Popen(program, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)
        self.processes[worker_id] = process

    def lines(self, what: str) -> list[tuple[str, str]]:
        """Return who did it to which leg, in order."""
        log = self.directory / "log"
        rows = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        return [(who, leg) for did, who, leg in rows if did == what]

    def owner(self, leg: Leg) -> str:
        return [who for who, subject in self.lines("begun") if subject == leg.subject][-1]

    async def see(self, what: str, count: int) -> list[tuple[str, str]]:
        await eventually_async(lambda: len(self.lines(what)) >= count, SOON)
        return self.lines(what)

    def release(self, *legs: Leg) -> None:
        for leg in legs:
            (self.directory / f"release-{leg.subject}").touch()

    def kill(self, worker_id: str) -> None:
        self.processes[worker_id].kill()
        self.processes[worker_id].wait()

    def close(self, worker_id: str) -> int:
        (self.directory / f"close-{worker_id}").touch()
        return self.processes[worker_id].wait(timeout=SOON)


@pytest.fixture
def workers(postgres_url: str, tmp_path: Path) -> Iterator[Workers]:
    workers = Workers(postgres_url, tmp_path)
    yield workers
    for process in workers.processes.values():
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.fixture
async def controller(dbos_engine: Callable[..., Any], legs: Legs) -> Any:
    """Yield an engine in this process that takes no legs itself."""
    engine = dbos_engine()
    await engine.launch(legs.execute, worker_id="controller", slots=0)
    yield engine
    await engine.close()


@pytest.mark.capability("C074")
async def test_workers_share_the_work_and_each_keeps_to_its_own_slots(
    controller: Any, workers: Workers, legs: Legs
) -> None:
    workers.spawn("small", slots=1)
    workers.spawn("large", slots=3)
    await workers.see("launched", 2)
    many = [legs.new() for _ in range(7)]
    for leg in many:
        await controller.start(leg)

    begun = await workers.see("begun", 4)
    assert sorted(who for who, _ in begun) == ["large", "large", "large", "small"]
    assert len(await controller.in_flight()) == 7
    assert await controller.owners() == ["large", "small"]
    assert len(await controller.in_flight(["large"])) == 3
    assert [leg for who, leg in begun if who == "small"] == [
        leg_id.rpartition("/")[0] for leg_id in await controller.in_flight(["small"])
    ]

    workers.release(*many)
    ended = await workers.see("ended", 7)
    assert sorted(leg for _, leg in ended) == sorted(leg.subject for leg in many)
    assert len(workers.lines("begun")) == 7
    assert legs.begun == []
    assert workers.close("small") == workers.close("large") == 0


@pytest.mark.capability("C056")
async def test_the_legs_of_a_killed_worker_run_again_on_another_once_recovered(
    controller: Any, workers: Workers, legs: Legs
) -> None:
    workers.spawn("first", slots=2)
    await workers.see("launched", 1)
    a, b, waiting = legs.new(), legs.new(), legs.new()
    for leg in (a, b, waiting):
        await controller.start(leg)
    await workers.see("begun", 2)
    workers.kill("first")
    # A killed worker still owns its legs, and no live one: that is how reconcile finds it.
    assert await controller.owners() == ["first"]

    workers.spawn("second", slots=3)
    assert (await workers.see("begun", 3))[2] == ("second", waiting.subject)
    assert sorted(await controller.recover(["first"])) == sorted([a.id, b.id])
    assert await controller.recover(["first"]) == []
    again = await workers.see("begun", 5)
    assert sorted(again[3:]) == sorted([("second", a.subject), ("second", b.subject)])
    workers.release(a, b, waiting)
    await workers.see("ended", 3)
    assert {who for who, _ in workers.lines("ended")} == {"second"}
    await eventually_async(lambda: _empty(controller))


async def _empty(engine: Any) -> bool:
    return await engine.in_flight() == []


@pytest.mark.more
async def test_a_worker_that_froze_drops_what_was_given_to_another(
    controller: Any, workers: Workers, legs: Legs
) -> None:
    workers.spawn("frozen", slots=1)
    await workers.see("launched", 1)
    leg = legs.new()
    await controller.start(leg)
    await workers.see("begun", 1)
    workers.processes["frozen"].send_signal(signal.SIGSTOP)
    assert await controller.recover(["frozen"]) == [leg.id]
    workers.spawn("other", slots=1)
    await workers.see("begun", 2)
    workers.processes["frozen"].send_signal(signal.SIGCONT)
    assert await workers.see("dropped", 1) == [("frozen", leg.subject)]
    workers.release(leg)
    await workers.see("ended", 1)
    assert workers.close("frozen") == workers.close("other") == 0
    assert workers.lines("ended") == [("other", leg.subject)]


@pytest.mark.more
async def test_a_worker_that_took_its_own_leg_back_runs_it_once_at_a_time(
    controller: Any, workers: Workers, legs: Legs
) -> None:
    workers.spawn("slow", slots=2)
    await workers.see("launched", 1)
    leg = legs.new()
    await controller.start(leg)
    await workers.see("begun", 1)
    assert await controller.recover(["slow"]) == [leg.id]
    await workers.see("begun", 2)
    assert workers.lines("dropped") == [("slow", leg.subject)]
    workers.release(leg)
    await workers.see("ended", 1)
    await eventually_async(lambda: _empty(controller))
    assert workers.close("slow") == 0
    assert workers.lines("ended") == [("slow", leg.subject)]


@pytest.mark.more
async def test_cancelling_reaches_the_worker_that_runs_the_leg(
    controller: Any, workers: Workers, legs: Legs
) -> None:
    workers.spawn("far", slots=1)
    await workers.see("launched", 1)
    cancelled, next_one = legs.new(), legs.new()
    await controller.start(cancelled)
    await workers.see("begun", 1)
    await controller.start(next_one)
    await controller.cancel(cancelled)
    assert await controller.in_flight() == [next_one.id]
    assert await workers.see("dropped", 1) == [("far", cancelled.subject)]
    assert (await workers.see("begun", 2))[1] == ("far", next_one.subject)
    workers.release(next_one)
    await workers.see("ended", 1)


@pytest.mark.more
async def test_a_worker_with_full_slots_leaves_what_it_starts_to_another(
    dbos_engine: Callable[..., Any], workers: Workers, legs: Legs
) -> None:
    engine = dbos_engine()
    await engine.launch(legs.execute, worker_id="here", slots=1)
    try:
        mine, theirs = legs.new(held=True), legs.new()
        await engine.start(mine)
        await legs.see_begun(mine)
        workers.spawn("there", slots=1)
        await engine.start(theirs)
        assert await workers.see("begun", 1) == [("there", theirs.subject)]
        assert legs.begun == [mine.id]
    finally:
        await engine.close()


@pytest.mark.more
async def test_a_worker_that_leaves_lets_others_recover_its_legs(
    controller: Any, workers: Workers, legs: Legs
) -> None:
    workers.spawn("leaving", slots=1)
    await workers.see("launched", 1)
    leg = legs.new()
    await controller.start(leg)
    await workers.see("begun", 1)
    assert workers.close("leaving") == 0
    assert workers.lines("dropped") == [("leaving", leg.subject)]
    assert await controller.owners() == ["leaving"]
    assert await controller.recover(["leaving"]) == [leg.id]
    assert (workers.directory / "leaving.out").read_text() == ""


async def test_a_leg_that_was_claimed_and_then_lost_on_the_way_runs_after_all(
    dbos_engine: Callable[..., Any], legs: Legs, postgres_url: str
) -> None:
    engine = dbos_engine()
    await engine.launch(legs.execute, worker_id="here", slots=1)
    try:
        first, lost = legs.new(held=True), legs.new()
        await engine.start(first)
        await legs.see_begun(first)
        await engine.start(lost)
        with psycopg.connect(postgres_url) as connection:
            connection.execute(
                "UPDATE loopwright_dbos.workflow_status SET status = 'PENDING', executor_id = 'here'"
                " WHERE workflow_uuid = %s",
                [lost.id],
            )
        legs.release(first)
        await legs.see_ended(lost)
        await eventually_async(lambda: _empty(engine))
        assert legs.begun == [first.id, lost.id]
    finally:
        await engine.close()


async def test_an_outage_of_the_database_loses_no_leg(
    dbos_engine: Callable[..., Any], legs: Legs, postgres_server: str, postgres_url: str
) -> None:
    engine = dbos_engine()
    await engine.launch(legs.execute, worker_id="here", slots=1)
    database = postgres_url.rpartition("/")[2].partition("?")[0]
    try:
        running, refused = legs.new(held=True), legs.new()
        await engine.start(running)
        await legs.see_begun(running)
        with psycopg.connect(postgres_server, autocommit=True) as admin:
            admin.execute(f"ALTER DATABASE {database} ALLOW_CONNECTIONS false")
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [database]
            )
            with pytest.raises(StoreUnavailable):
                await engine.start(refused)
            legs.release(running)
            await legs.see_ended(running)
            with pytest.raises(StoreUnavailable):
                await engine.in_flight()
            admin.execute(f"ALTER DATABASE {database} ALLOW_CONNECTIONS true")
        await engine.start(refused)
        await legs.see_ended(refused)
        await eventually_async(lambda: _empty(engine), SOON)
        assert legs.errors == []
    finally:
        await engine.close()


@pytest.mark.more
async def test_legs_of_another_version_are_ended_and_never_run(
    dbos_engine: Callable[..., Any], workers: Workers, legs: Legs
) -> None:
    old = dbos_engine(version="pipeline-0")
    await old.launch(legs.execute, worker_id="old", slots=0)
    workers.spawn("old_worker", slots=1, version="pipeline-0")
    await workers.see("launched", 1)
    running, waiting = legs.new(), legs.new()
    await old.start(running)
    await workers.see("begun", 1)
    await old.start(waiting)
    workers.kill("old_worker")
    await old.close()

    new = dbos_engine()
    await new.launch(legs.execute, worker_id="new", slots=2)
    try:
        assert await new.in_flight() == [running.id]
        assert await new.recover(["old_worker"]) == []
        assert await new.in_flight() == []
        current = legs.new()
        await new.start(current)
        await legs.see_ended(current)
        assert legs.begun == [current.id]
    finally:
        await new.close()


async def test_dbos_keeps_to_a_schema_of_its_own_and_stores_plain_json(
    controller: Any, legs: Legs, postgres_url: str
) -> None:
    leg = legs.new()
    await controller.start(leg)
    with psycopg.connect(postgres_url) as connection:
        schemas = connection.execute(
            "SELECT DISTINCT schemaname FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        [(inputs,)] = connection.execute("SELECT inputs FROM loopwright_dbos.workflow_input").fetchall()
    assert schemas == [("loopwright_dbos",)]
    assert inputs == f'{{"namedArgs":{{}},"positionalArgs":["{leg.subject}",1,7]}}'


async def test_a_process_has_one_dbos_engine_at_a_time(
    controller: Any, dbos_engine: Callable[..., Any], legs: Legs
) -> None:
    with pytest.raises(RuntimeError, match="already"):
        await dbos_engine().launch(legs.execute, worker_id="second", slots=1)


async def test_an_unreachable_database_is_said_to_be_one(
    dbos_engine: Callable[..., Any], legs: Legs, postgres_url: str
) -> None:
    from loopwright.adapters.dispatch.dbos import DbosEngine

    lost = DbosEngine("postgresql://nobody@127.0.0.1:1/none", version=VERSION, on_error=legs.on_error)
    with raises_code("store_unavailable"):
        await lost.launch(legs.execute, worker_id="w", slots=1)
    with raises_code("dispatch_needs_postgresql"):
        DbosEngine("sqlite:///home.db", version=VERSION, on_error=legs.on_error)
    # Nothing of the failed launch is in the way of the next.
    engine = dbos_engine()
    await engine.launch(legs.execute, worker_id="w", slots=1)
    await engine.close()


def test_the_dbos_engine_is_loaded_only_when_it_is_asked_for() -> None:
    program = (
        "import sys, loopwright.adapters.dispatch.local; "
        "assert not {'dbos', 'sqlalchemy', 'psycopg'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


async def test_a_leg_that_is_tied_to_a_host_runs_there_and_nowhere_else(
    dbos_engine: Callable[..., Any], legs: Legs
) -> None:
    engine = dbos_engine(host_id="here")
    await engine.launch(legs.execute, worker_id="w", slots=2)
    try:
        elsewhere = replace(legs.new(), host_id="elsewhere")
        mine = replace(legs.new(), host_id="here")
        await engine.start(elsewhere)
        await engine.start(mine)
        await eventually_async(lambda: mine.id in legs.ended, SOON)
        assert elsewhere.id not in legs.begun

        async def only_that_is_left() -> bool:
            return await engine.in_flight() == [elsewhere.id]

        await eventually_async(only_that_is_left, SOON)
    finally:
        await engine.close()
