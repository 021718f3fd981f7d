"""Send the requests of tools to the daemon."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import httpx
from mcp.server.mcpserver.exceptions import ToolError

from loopwright.core.values.errors import UserError
from loopwright.server.guard import RUN_HEADER

_PATIENCE_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Where the daemon answers, and the token to send."""

    url: str
    token: str
    run_id: str | None = None
    """The run that the requests come from, if there is one."""
    transport: httpx.AsyncBaseTransport | None = None
    """The transport to use instead of the network."""


class Daemon:
    """Sends requests to the daemon, which may restart in between."""

    def __init__(self, find: Callable[[], Connection]) -> None:
        self._find = find

    async def get(self, path: str, **query: Any) -> Any:
        """Return a document."""
        wanted = {name: value for name, value in query.items() if value not in (None, "")}
        return await self._ask("GET", path, params=wanted)

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Request a change and return the document of the reply."""
        # A lost reply must not repeat the change.
        again = {"Idempotency-Key": str(uuid4())}
        return await self._ask("POST", path, json=dict(body or {}), headers=again)

    async def _ask(self, method: str, path: str, **more: Any) -> Any:
        try:
            to = self._find()
            owner = {"Authorization": f"Bearer {to.token}"}
            if to.run_id is not None:
                owner[RUN_HEADER] = to.run_id
            async with httpx.AsyncClient(
                base_url=to.url, headers=owner, timeout=_PATIENCE_S, transport=to.transport
            ) as client:
                try:
                    reply = await client.request(method, path, **more)
                except httpx.TransportError:
                    reply = await client.request(method, path, **more)
        except UserError as wrong:
            raise ToolError(_sentence(wrong.code, str(wrong), wrong.hint)) from wrong
        except httpx.HTTPError as away:
            why = f"the daemon does not answer: {away or type(away).__name__}"
            raise ToolError(_sentence("daemon_away", why, "`loopwright restart` starts it again")) from away
        if reply.is_error:
            raise ToolError(_refusal(reply))
        return reply.json()


def _refusal(reply: httpx.Response) -> str:
    try:
        said = reply.json()
        wrong = "; ".join(str(one.get("message", one)) for one in said.get("errors", ()))
        detail = f"{said['detail']} ({wrong})" if wrong else said["detail"]
        return _sentence(said["code"], detail, said.get("hint"))[:_LONGEST]
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"the daemon answered {reply.status_code}"


_LONGEST: Final = 1000


def _sentence(code: str, why: str, hint: str | None) -> str:
    return f"{code}: {why}" + (f". To do: {hint}" if hint else "")
