"""The three engines under one contract."""

from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import pytest
from sqlalchemy import make_url
from tests.contracts.engine.legs import Legs
from tests.fakes.seeded_engine import SeededEngine
from tests.postgres import new_database

from loopwright.adapters.dispatch.local import LocalEngine

VERSION = "pipeline-1"


@pytest.fixture
def legs() -> Legs:
    return Legs()


@pytest.fixture(scope="session")
def _dbos_template(postgres_server: str) -> Iterator[str]:
    """Have DBOS make its tables in an empty database once, and return the name of that database."""
    from loopwright.adapters.dispatch.dbos import DbosEngine

    async def launch_and_close(url: str) -> None:
        legs = Legs()
        engine = DbosEngine(url, version=VERSION, on_error=legs.on_error)
        await engine.launch(legs.execute, worker_id="first", slots=0)
        await engine.close()

    # In a thread of its own: whoever asks first may be in the middle of an event loop.
    with new_database(postgres_server) as url, ThreadPoolExecutor(1) as thread:
        thread.submit(anyio.run, launch_and_close, url).result()
        yield str(make_url(url).database)


@pytest.fixture
def postgres_url(postgres_server: str, _dbos_template: str) -> Iterator[str]:
    """Return the address of a database as DBOS makes it, copied because making it takes much longer."""
    with new_database(postgres_server, template=_dbos_template) as url:
        yield url


@pytest.fixture
def dbos_engine(legs: Legs, postgres_url: str) -> Callable[..., Any]:
    """Return a maker of DBOS engines that look often, so that tests are short."""
    from loopwright.adapters.dispatch.dbos import DbosEngine

    def make(*, version: str = VERSION, host_id: str | None = None) -> DbosEngine:
        return DbosEngine(
            postgres_url,
            version=version,
            on_error=legs.on_error,
            host_id=host_id,
            poll_s=0.03,
            watch_s=0.05,
        )

    return make


@pytest.fixture(params=["local", "seeded", "dbos"])
async def engine(request: pytest.FixtureRequest, legs: Legs) -> AsyncIterator[Any]:
    """Yield an engine that is not launched yet; it is closed afterwards."""
    if request.param == "local":
        local = LocalEngine(on_error=legs.on_error)
        yield local
        await local.close()
    elif request.param == "seeded":
        seeded = SeededEngine(20, on_error=legs.on_error)
        yield seeded
        await seeded.close()
    else:
        dbos = request.getfixturevalue("dbos_engine")()
        yield dbos
        await dbos.close()
