"""MCP over streamable HTTP, at `/mcp` of the daemon."""

import asyncio
from collections.abc import Collection
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

import httpx
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from loopwright.server.mcp import not_installed

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH: Final = "/mcp"
_request: ContextVar[Scope] = ContextVar("the request")


class Endpoint:
    """Answers each request on its own; the SDK is loaded for the first."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        """Send the requests of tools to this application, under a name that it answers to."""
        self._app = app
        self._url = (
            f"http://{next((one for one in sorted(hosts) if one != '*' and ':' not in one), 'localhost')}"
        )
        self._wanted, self._settled = asyncio.Event(), asyncio.Event()
        self._manager: StreamableHTTPSessionManager | None = None

    async def run(self) -> None:
        """Serve until this task is cancelled."""
        await self._wanted.wait()
        try:
            # It is an extra, and takes long to load: other requests are answered in the meantime.
            manager = await asyncio.to_thread(self._make)
        except ImportError:
            self._settled.set()
            return
        except BaseException:
            self._settled.set()  # requests are refused instead of waiting for ever
            raise
        async with manager.run():
            self._manager = manager
            self._settled.set()
            await asyncio.Event().wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; the guard has checked its token."""
        self._wanted.set()
        await self._settled.wait()
        if self._manager is None:
            raise not_installed()
        _request.set(scope)
        await self._manager.handle_request(scope, receive, send)

    def _make(self) -> "StreamableHTTPSessionManager":
        # The same.
        from mcp.server.transport_security import TransportSecuritySettings

        # The same.
        from loopwright.server.mcp.client import Connection, Daemon

        # The same.
        from loopwright.server.mcp.tools import make_server

        def find() -> Connection:
            scope = _request.get()
            headers = Headers(scope=scope)
            bounds = scope["state"]["caller"].bounds
            return Connection(
                url=self._url,
                token=headers.get("authorization", "").partition(" ")[2].strip(),
                run_id=bounds.run_id if bounds is not None else None,
                transport=httpx.ASGITransport(app=self._app),
            )

        server = make_server(Daemon(find), can_change=True)
        # The guard checks hosts and origins.
        unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        server.streamable_http_app(stateless_http=True, transport_security=unchecked)
        return server.session_manager
