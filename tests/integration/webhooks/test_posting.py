"""A message goes to the address that was checked, and to no other."""

import asyncio
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from tests.cases import each_case

from loopwright.adapters.webhooks.posting import Resolve, Target, check_url, checked_addresses, post
from loopwright.core.integrations.webhooks import Reply
from loopwright.core.values.errors import UserError

LOOPBACK = ("127.0.0.0/8",)


def names(*found: str) -> Resolve:
    """Return a resolver that knows these addresses for every name."""

    async def find(host: str, port: int) -> Sequence[str]:
        return found

    return find


@each_case(
    "url",
    [
        "ftp://example.com/",
        "file:///etc/passwd",
        "https://",
        "https://user:pass@example.com/",
        "https://token@example.com/",
        "https://example.com/#fragment",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://[::1/",
        "https://example.com/a b",
        "https://example.com/\r\nX-Header: 1",
        "https://example.com/" + "x" * 2000,
        "gopher://127.0.0.1/",
    ],
)
def test_what_is_not_the_address_of_a_receiver_is_refused(url: str) -> None:
    with pytest.raises(UserError) as refused:
        check_url(url)
    assert refused.value.code == "webhook_url_wrong"


@each_case(
    "url, found, allowed",
    [
        ("https://example.com/", ("127.0.0.1",), ()),
        ("https://example.com/", ("169.254.169.254",), LOOPBACK),
        ("https://example.com/", ("93.184.216.34", "10.0.0.1"), ()),
        ("https://example.com/", ("::ffff:192.168.0.1",), ()),
        ("http://example.com/", ("93.184.216.34",), ()),
        ("http://example.com/", ("93.184.216.34",), LOOPBACK),
    ],
)
async def test_a_name_with_an_address_that_is_not_allowed_is_refused(
    url: str, found: tuple[str, ...], allowed: tuple[str, ...]
) -> None:
    with pytest.raises(Target):
        await checked_addresses(url, allowed, find=names(*found))


@each_case(
    "host", ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0"]
)
async def test_loopback_in_another_spelling_is_loopback(host: str) -> None:
    delivery = await post(f"https://{host}/", b"", {}, allowed=())
    assert delivery.reply is Reply.AWAY
    assert any(said in delivery.detail for said in ("not public", "cannot be resolved")), delivery.detail


Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(handle: Handle, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Answer on a port of loopback, and end every conversation before the test ends."""
    conversations: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        conversations.add(task)
        try:
            await handle(reader, writer)
        except ConnectionError:
            pass  # the client had enough
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*conversations)


async def test_the_name_is_resolved_once_and_the_checked_address_is_used() -> None:
    heads: list[bytes] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    asked: list[str] = []

    async def rebinding(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ("127.0.0.1",) if len(asked) == 1 else ("10.0.0.1",)

    async with listening(take) as port:
        delivery = await post(
            f"http://hooks.test:{port}/a?b=1", b"{}", {"webhook-id": "x"}, allowed=LOOPBACK, find=rebinding
        )
    assert (delivery.reply, asked) == (Reply.TAKEN, ["hooks.test"])
    assert heads[0].startswith(b"POST /a?b=1 HTTP/1.1\r\n")
    assert f"\r\nHost: hooks.test:{port}\r\n".encode() in heads[0]


async def test_the_next_address_of_a_name_is_tried() -> None:
    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async with listening(take) as port:
        both = names("127.0.0.77", "127.0.0.1")
        delivery = await post(f"http://hooks.test:{port}/", b"", {}, allowed=LOOPBACK, find=both)
    assert delivery.reply is Reply.TAKEN


async def test_a_redirect_is_not_followed() -> None:
    reached = []

    async def inside(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(1)

    async with listening(inside) as secret:

        async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(
                f"HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:{secret}/\r\nContent-Length: 0\r\n\r\n".encode()
            )

        async with listening(redirect) as port:
            delivery = await post(f"http://127.0.0.1:{port}/", b"{}", {}, allowed=LOOPBACK)
    assert (delivery.reply, reached) == (Reply.AWAY, [])


async def test_an_answer_without_an_end_and_one_that_never_comes_hold_up_nothing() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(endless) as port:
        delivery = await post(f"http://127.0.0.1:{port}/", b"", {}, allowed=LOOPBACK)
        assert delivery.reply is Reply.TAKEN
    async with listening(silent) as port:
        delivery = await post(f"http://127.0.0.1:{port}/", b"", {}, allowed=LOOPBACK, limit_s=0.2)
        assert (delivery.reply, delivery.detail) == (Reply.AWAY, "no answer within 0.2 s")


async def test_a_receiver_says_when_to_come_back() -> None:
    async def busy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 429 Busy\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n")

    async with listening(busy) as port:
        delivery = await post(f"http://127.0.0.1:{port}/", b"", {}, allowed=LOOPBACK)
    assert delivery.reply is Reply.AWAY
    assert delivery.retry_after is not None
    assert delivery.retry_after.total_seconds() == 30


async def test_a_certificate_must_be_one_for_the_name(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    more = ["-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=hooks.test"]
    subprocess.run([*words, *more], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    asked: list[str | None] = []
    tls.sni_callback = lambda _, name, __: asked.append(name)

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async with listening(take, tls) as port:
        delivery = await post(
            f"https://hooks.test:{port}/", b"", {}, allowed=LOOPBACK, find=names("127.0.0.1")
        )
    assert (delivery.reply, asked) == (Reply.AWAY, ["hooks.test"])
    assert "certificate" in delivery.detail.lower()


async def test_a_receiver_that_is_not_there_is_away() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    delivery = await post(f"http://127.0.0.1:{port}/", b"", {}, allowed=LOOPBACK)
    assert (delivery.reply, bool(delivery.detail)) == (Reply.AWAY, True)
