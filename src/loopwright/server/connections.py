"""Connections with limits: the head of a request arrives in time, and an application can drop a connection."""

import asyncio
from typing import Any, Final

import h11
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S: Final = 15.0
"""How long a client may take to send the head of a request."""
ABORT: Final = "loopwright.abort"
"""The place in a scope of the function that drops its connection at once."""


class Connection(H11Protocol):
    """One connection of a client."""

    head_s = HEAD_S
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Begin to wait for the first request."""
        super().connection_made(transport)
        app: Any = self.app

        async def droppable(scope: Scope, receive: Receive, send: Send) -> None:
            scope[ABORT] = transport.abort
            await app(scope, receive, send)

        self.app = droppable
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        """Read bytes from the client."""
        super().data_received(data)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)

    def _watch_head(self) -> None:
        is_incomplete = self.conn.their_state is h11.IDLE
        if is_incomplete and self._waiting is None:
            self._waiting = self.loop.call_later(self.head_s, self.transport.abort)
        elif not is_incomplete and self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
