"""Post one message to a receiver. Its name is resolved once, and only the address that was checked is used."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

import httpx

from loopwright import __version__
from loopwright.core.integrations.webhooks import Delivery, Reply, may_send_to, reply_of
from loopwright.core.values.errors import UserError

LONGEST_URL: Final = 2000
_TIME_LIMIT_S: Final = 10.0
"""For everything together: the name, the connection, the message and the head of the answer."""
_ADDRESSES: Final = 2
"""How many addresses of a name are tried."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(one[4][0]) for one in found]


def check_url(url: str) -> None:
    """Refuse what cannot be the address of a receiver."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _wrong(url, "it cannot be read") from None
    if len(url) > LONGEST_URL or not url.isprintable() or " " in url:
        raise _wrong(url[:100], f"it may have at most {LONGEST_URL} printable characters")
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise _wrong(url, "it must begin with https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise _wrong(parts.hostname, "it may have no user and no password: the signature proves the sender")
    if parts.fragment or port == 0:
        raise _wrong(url, "it may have no fragment, and no port 0")


def _wrong(url: str, why: str) -> UserError:
    return UserError(
        f"{url!r} cannot be the address of a webhook: {why}",
        code="webhook_url_wrong",
        hint="use an address such as https://example.com/hooks/loopwright",
    )


class Target(Exception):
    """The target is one to which nothing may be sent."""


async def checked_addresses(
    url: str, allowed: Collection[str], *, find: Resolve = resolve
) -> tuple[str, ...]:
    """Return the addresses of a target; raise `Target` if a message may not go to one of them."""
    parts = urlsplit(url)
    host, port = _place(parts)
    try:
        found = await find(host, port)
    except (OSError, UnicodeError) as error:
        raise Target(f"the name {host} cannot be resolved: {error}") from error
    # All of them: a name with one public address must not reach a private one at the next look.
    for address in found:
        if not may_send_to(address, allowed):
            raise Target(f"{host} is {address}, an address that is not public and not in `webhook_networks`")
        if parts.scheme == "http" and may_send_to(address, ()):
            raise Target(f"{host} is a public address, so the webhook needs https")
    return tuple(dict.fromkeys(found))[:_ADDRESSES]


async def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    allowed: Collection[str],
    find: Resolve = resolve,
    limit_s: float = _TIME_LIMIT_S,
) -> Delivery:
    """Send a message once and return what became of it; nothing is followed and no proxy is used."""
    try:
        async with asyncio.timeout(limit_s):
            addresses = await checked_addresses(url, allowed, find=find)
            return await _post(urlsplit(url), addresses, body, headers)
    except TimeoutError:
        return Delivery(reply=Reply.AWAY, detail=f"no answer within {limit_s:g} s")
    except (Target, httpx.HTTPError, httpx.InvalidURL) as failed:
        return Delivery(reply=Reply.AWAY, detail=f"{failed or type(failed).__name__}"[:300])


async def _post(
    parts: SplitResult, addresses: Sequence[str], body: bytes, headers: Mapping[str, str]
) -> Delivery:
    host, port = _place(parts)
    named = {
        **headers,
        "Host": parts.netloc,
        "Content-Type": "application/json",
        "User-Agent": f"loopwright/{__version__}",
    }
    async with httpx.AsyncClient(follow_redirects=False, trust_env=False, timeout=_TIME_LIMIT_S) as client:
        for n, address in enumerate(addresses, 1):
            place = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
            checked = urlunsplit((parts.scheme, place, parts.path or "/", parts.query, ""))
            # The certificate must be one for the name, not for the address.
            request = client.build_request(
                "POST", checked, content=body, headers=named, extensions={"sni_hostname": host}
            )
            try:
                answer = await client.send(request, stream=True)
            except httpx.ConnectError:
                if n == len(addresses):
                    raise
                continue
            # Only the head is read: the body could have no end.
            await answer.aclose()
            return _delivery(answer)
    raise Target(f"{host} has no address")


def _delivery(answer: httpx.Response) -> Delivery:
    status = answer.status_code
    reply = reply_of(status)
    if reply is Reply.TAKEN:
        return Delivery(reply=reply)
    more = ", and redirects are not followed" if answer.is_redirect else ""
    asked = answer.headers.get("Retry-After", "")
    pause = timedelta(seconds=int(asked)) if asked.isdecimal() and len(asked) < 9 else None
    return Delivery(reply=reply, detail=f"it answered {status}{more}", retry_after=pause)


def _place(parts: SplitResult) -> tuple[str, int]:
    assert parts.hostname is not None, "addresses are checked when a webhook is made"
    return parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
