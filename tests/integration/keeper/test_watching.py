"""Waiting for what a keeper has to say."""

import asyncio
from contextlib import suppress

import psutil
import pytest
from tests.integration.keeper.conftest import MakeSpec

from loopwright.adapters.processes.keeper_calls import Watch
from loopwright.adapters.processes.keepers import ProcessKeepers


@pytest.mark.parametrize("steps", range(8))
async def test_whoever_is_called_off_while_it_begins_to_watch_leaves_no_socket_open(
    keepers: ProcessKeepers, make_spec: MakeSpec, steps: int
) -> None:
    spec = make_spec(sh="sleep 300")
    await keepers.start(spec)

    async def watch() -> None:
        async with Watch(spec.directory):
            pass

    before = psutil.Process().num_fds()
    watching = asyncio.ensure_future(watch())
    for _ in range(steps):
        await asyncio.sleep(0)
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    assert psutil.Process().num_fds() == before
