"""Streams of server-sent events. A client that does not read is dropped: it connects again and reads on."""

import asyncio
import logging
from collections.abc import AsyncIterator

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from loopwright.server.connections import ABORT

log = logging.getLogger(__name__)


class Stream(Response):
    """A response whose parts are sent as they come."""

    media_type = "text/event-stream"

    def __init__(self, parts: AsyncIterator[str], *, unread_s: float) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._parts = parts
        self._unread_s = unread_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the parts end, or the client leaves or does not read."""
        sending = asyncio.create_task(self._send(scope, send), name="stream")
        leaving = asyncio.create_task(_until_left(receive), name="stream reader")
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.wait({sending, leaving})
        if not sending.cancelled():
            sending.result()

    async def _send(self, scope: Scope, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for part in self._parts:
            try:
                async with asyncio.timeout(self._unread_s):
                    await send({"type": "http.response.body", "body": part.encode(), "more_body": True})
            except TimeoutError:
                log.info("dropped a stream that its client does not read")
                if abort := scope.get(ABORT):
                    abort()
                return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
