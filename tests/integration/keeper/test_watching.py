"""Waiting for what a keeper has to say."""

import asyncio
import socket
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from tests.integration.keeper.conftest import MakeSpec

from loopwright.adapters.processes.keeper_calls import Watch, short_path
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
    # An event loop closes its sockets in its next turns.
    for _ in range(3):
        await asyncio.sleep(0)
    assert psutil.Process().num_fds() == before


async def test_a_wait_that_is_cancelled_just_as_news_arrives_raises_nothing_in_the_event_loop(
    tmp_path: Path,
) -> None:
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX) as listening:
        with short_path(tmp_path) as path:
            listening.bind(path)
        listening.listen()
        async with Watch(tmp_path) as watch:
            keeper, _ = listening.accept()
            with keeper:
                waiting = asyncio.ensure_future(watch.changed())
                while not keeper.recv(100):
                    await asyncio.sleep(0)
                for _ in range(3):
                    await asyncio.sleep(0)
                keeper.send(b"x")
                # One turn of the loop now finds both: first the cancellation, then what can be read.
                loop.call_soon(waiting.cancel)
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                await asyncio.sleep(0)
