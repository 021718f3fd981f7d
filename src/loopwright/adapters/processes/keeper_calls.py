"""Talking to a keeper over its Unix socket.

With the streams of asyncio: those of anyio raise in the event loop when a wait is cancelled just as data arrives.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio

from loopwright.keeper import places

ANSWER_S = 30.0
_MOST = 1 << 24
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class NoAnswer(Exception):
    """The keeper is gone, or going."""


async def call(directory: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Ask a keeper for something and return its answer; raise `NoAnswer` when there is none."""
    try:
        with anyio.fail_after(ANSWER_S):
            async with connected(directory) as (reader, writer):
                writer.write(json.dumps(request).encode() + b"\n")
                await writer.drain()
                received = await reader.readuntil(b"\n")
    except (OSError, asyncio.IncompleteReadError) as problem:
        raise NoAnswer(f"no keeper answers in {directory}") from problem
    answer: dict[str, Any] = json.loads(received)
    return answer


class Watch:
    """Wakes up when a keeper has something new, at the latest after a while: the net below the socket."""

    SLOW_S = 30.0
    """Far apart: a keeper that ends, or is killed, closes its end of the socket, which is heard at once."""
    UNCONNECTED_S = 0.25

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._stream: Stream | None = None

    async def __aenter__(self) -> Self:
        try:
            self._stream = await _connect(self._directory)
            self._stream[1].write(b'{"op": "watch"}\n')
            await self._stream[1].drain()
        except OSError:
            self._let_go()
        except BaseException:
            # A task that is cancelled here never reaches the end of the block.
            self._let_go()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._let_go()

    async def changed(self) -> None:
        """Wait for a nudge."""
        if self._stream is None:
            await anyio.sleep(self.UNCONNECTED_S)
            return
        with anyio.move_on_after(self.SLOW_S):
            try:
                news = await self._stream[0].read(_MOST)
            except OSError:
                news = b""
            if not news:
                self._let_go()

    def _let_go(self) -> None:
        if self._stream is not None:
            stream, self._stream = self._stream, None
            stream[1].transport.abort()


@asynccontextmanager
async def connected(directory: Path) -> AsyncIterator[Stream]:
    """Open a connection to the keeper for a while."""
    stream = await _connect(directory)
    try:
        yield stream
    finally:
        stream[1].transport.abort()


async def _connect(directory: Path) -> Stream:
    with short_path(directory) as path:
        return await asyncio.open_unix_connection(path, limit=_MOST)


@contextmanager
def short_path(directory: Path) -> Iterator[str]:
    """Give the socket a path of at most about 100 bytes, which is all that a Unix address holds."""
    path = str(directory / places.SOCKET)
    if len(os.fsencode(path)) <= places.SOCKET_PATH_LIMIT:
        yield path
    elif Path("/proc/self/fd").is_dir():
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield f"/proc/self/fd/{fd}/{places.SOCKET}"
        finally:
            os.close(fd)
    else:
        with tempfile.TemporaryDirectory(prefix="lw") as folder:
            link = Path(folder) / "r"
            link.symlink_to(directory)
            yield str(link / places.SOCKET)
