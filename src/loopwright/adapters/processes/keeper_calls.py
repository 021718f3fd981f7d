"""Talking to a keeper over its Unix socket."""

import json
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.abc import SocketStream

from loopwright.keeper import places

ANSWER_S = 30.0


class NoAnswer(Exception):
    """The keeper is gone, or going."""


async def call(directory: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Ask a keeper for something and return its answer; raise `NoAnswer` when there is none."""
    received = b""
    try:
        with anyio.fail_after(ANSWER_S):
            async with connected(directory) as stream:
                await stream.send(json.dumps(request).encode() + b"\n")
                while not received.endswith(b"\n"):
                    received += await stream.receive()
    except (OSError, anyio.EndOfStream, anyio.BrokenResourceError) as problem:
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
        self._stream: SocketStream | None = None

    async def __aenter__(self) -> Self:
        try:
            self._stream = await _connect(self._directory)
            await self._stream.send(b'{"op": "watch"}\n')
        except (OSError, anyio.BrokenResourceError):
            await self._let_go()
        except BaseException:
            # A task that is cancelled here never reaches the end of the block.
            await self._let_go()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._let_go()

    async def changed(self) -> None:
        """Wait for a nudge."""
        if self._stream is None:
            await anyio.sleep(self.UNCONNECTED_S)
            return
        with anyio.move_on_after(self.SLOW_S):
            try:
                await self._stream.receive()
            except (OSError, anyio.EndOfStream, anyio.BrokenResourceError):
                await self._let_go()

    async def _let_go(self) -> None:
        if self._stream is not None:
            stream, self._stream = self._stream, None
            await anyio.aclose_forcefully(stream)


@asynccontextmanager
async def connected(directory: Path) -> AsyncIterator[SocketStream]:
    """Open a connection to the keeper for a while."""
    stream = await _connect(directory)
    try:
        yield stream
    finally:
        await anyio.aclose_forcefully(stream)


async def _connect(directory: Path) -> SocketStream:
    with short_path(directory) as path:
        return await anyio.connect_unix(path)


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
