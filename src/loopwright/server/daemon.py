"""`serve`: one process with the worker for all projects and the HTTP interface."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loopwright import __version__
from loopwright.core.values.errors import UserError
from loopwright.services.access.tokens import first_token
from loopwright.services.daemon.note import PORT, DaemonNote, born, refuse_second, remove_note, write_note
from loopwright.services.driving.worker import Ended, Interrupted, StandingBy, WorkerNews, keep_working_in
from loopwright.services.homes.log import log_daemon_to
from loopwright.services.homes.session import Session, opened

if TYPE_CHECKING:
    import uvicorn

log = logging.getLogger(__name__)

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_SWITCH_S: Final = 0.0005
"""How long a thread that decodes rows may hold up the event loop. With Python's 5 ms, which the loop waits after each
call to the system, a request takes several times as long while others are read."""
_CLOSE_S: Final = 5.0
"""How long open requests and streams may take to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where the daemon listens."""

    address: str = "127.0.0.1"
    port: int = PORT
    names: tuple[str, ...] = ()
    """Host names that clients use for it, besides the address."""
    certificate: Path | None = None
    key: Path | None = None
    proxy: bool = False
    """A proxy that you run terminates TLS."""

    def check(self) -> None:
        """Refuse to listen beyond this machine without TLS."""
        if self.address in LOOPBACK or self.proxy or (self.certificate and self.key):
            return
        raise UserError(
            f"listening on {self.address} without TLS would send tokens in clear text",
            code="tls_missing",
            hint="add --certificate FILE --key FILE, or --behind-proxy if a proxy terminates TLS",
        )

    def url(self, port: int) -> str:
        """Return the address that clients use."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{'https' if self.certificate else 'http'}://{host}:{port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A daemon that answers requests."""

    url: str
    home: Path
    token_file: Path
    pid: int


Tell = Callable[[str], None]


async def serve(
    settings: Any,
    listening: Listening,
    *,
    slots: int | None = None,
    arguments: tuple[str, ...] = (),
    started: Callable[[Started], None],
    tell: Tell,
) -> None:
    """Run the daemon of a home until a signal ends it."""
    listening.check()
    refuse_second(settings.home)
    sys.setswitchinterval(_SWITCH_S)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    with _bound(listening) as listener:
        port = listener.getsockname()[1]
        async with opened(settings) as at:
            log_daemon_to(at.home.root, "uvicorn")
            token_file = await first_token(at)
            working = asyncio.create_task(_work(at, stop, slots, tell), name="worker")
            try:
                # The worker schedules while the HTTP stack, which takes a while, is imported.
                await asyncio.sleep(0)
                http = await asyncio.to_thread(_http, at, listening)
                gc.freeze()  # what was loaded stays: looking through it for garbage would hold up requests
                note = DaemonNote(
                    pid=os.getpid(),
                    born=born(),
                    url=listening.url(port),
                    version=__version__,
                    started_at=datetime.now(UTC).isoformat(),
                    arguments=arguments,
                )
                write_note(at.home.root, note)
                async with _answering(http, listener):
                    started(Started(url=note.url, home=at.home.root, token_file=token_file, pid=os.getpid()))
                    stopping = asyncio.create_task(stop.wait())
                    await asyncio.wait({stopping, working}, return_when=asyncio.FIRST_COMPLETED)
                    stopping.cancel()
            finally:
                stop.set()
                remove_note(at.home.root)
                await working


async def _work(at: Session, stop: asyncio.Event, slots: int | None, tell: Tell) -> None:
    def told(news: WorkerNews | Interrupted) -> None:
        if isinstance(news, StandingBy):
            tell(f"process {news.pid} works in this home; the daemon takes over when it ends")
        elif isinstance(news, Ended):
            tell(f"process {news.pid} made no progress and was ended; the daemon takes over")
        elif isinstance(news, Interrupted):
            log.warning("work cannot start now: %s", news.why)
            tell(f"work cannot start until the database answers again: {news.why}")

    await keep_working_in(at, slots=slots, stop=stop, tell=told)


def _http(at: Session, listening: Listening) -> "uvicorn.Server":
    # The HTTP stack takes long to load, and the worker schedules in the meantime.
    import uvicorn

    # They load the same stack.
    from loopwright.server.asgi import make_app
    from loopwright.server.connections import Connection
    from loopwright.server.guard import LARGEST_HEAD

    names = {listening.address, *listening.names, *(LOOPBACK if listening.address in LOOPBACK else ())}
    config = uvicorn.Config(
        make_app(at, hosts=names),
        log_config=None,
        access_log=False,
        lifespan="on",
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
        proxy_headers=listening.proxy,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=int(_CLOSE_S),
        http=Connection,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        limit_concurrency=2_000,
    )
    return _server(config)


@contextlib.asynccontextmanager
async def _answering(http: "uvicorn.Server", listener: socket.socket) -> AsyncIterator[None]:
    answering = asyncio.create_task(http.serve(sockets=[listener]), name="http")
    while not http.started and not answering.done():
        await asyncio.sleep(0.01)
    try:
        yield
    finally:
        app: Any = http.config.app
        await app.state.served.feed.close()  # streams would hold the end up
        http.should_exit = True
        await answering


def _server(config: "uvicorn.Config") -> "uvicorn.Server":
    # The HTTP stack takes long to load, and the worker schedules in the meantime.
    import uvicorn

    class Quiet(uvicorn.Server):
        """A server that leaves signals to the daemon."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    return Quiet(config)


@contextlib.contextmanager
def _bound(listening: Listening) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in listening.address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((listening.address, listening.port))
            listener.listen(512)
        except OSError as taken:
            raise UserError(
                f"cannot listen on {listening.address}:{listening.port}: {taken.strerror}",
                code="port_taken",
                hint="choose another port with --port, or 0 for any free one",
            ) from taken
        listener.setblocking(False)
        yield listener
