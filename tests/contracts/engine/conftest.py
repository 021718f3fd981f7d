"""The three engines under one contract."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.contracts.engine.legs import Legs

from loopwright.adapters.dispatch.local import LocalEngine
from loopwright.testing.seeded_engine import SeededEngine

VERSION = "pipeline-1"


@pytest.fixture
def legs() -> Legs:
    return Legs()


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
