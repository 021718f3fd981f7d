"""The HTTP application on a real socket in this process, over a real home in which no worker runs."""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import httpx
import uvicorn
from tests.contracts.store import rows
from tests.waiting import eventually

from loopwright.adapters.store.sql import SqlStore
from loopwright.config.resolve import load
from loopwright.core.rows.events import Event
from loopwright.core.rows.model import Loop, Plan, Project, Task
from loopwright.core.values.access import Scope
from loopwright.core.values.errors import StoreUnavailable
from loopwright.ports import Tx
from loopwright.server.asgi import make_app
from loopwright.server.connections import Connection
from loopwright.server.context import Limits
from loopwright.server.guard import LARGEST_HEAD
from loopwright.services.access import tokens
from loopwright.services.homes.session import Session, opened

T = TypeVar("T")


class Watched:
    """A store that counts reads, and that can be away."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self.reads = 0
        self.is_away = False
        self.fails = ""
        """The transaction that it does not take."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def read(self, work: Callable[[Tx], T]) -> T:
        """Read, unless it is away."""
        self.reads += 1
        self._check()
        return await self._store.read(work)

    async def transact(self, name: str, work: Callable[[Tx], T]) -> T:
        """Write, unless it is away, or away for this."""
        self._check()
        if name == self.fails:
            raise StoreUnavailable("The database is away.")
        return await self._store.transact(name, work)

    def _check(self) -> None:
        if self.is_away:
            raise StoreUnavailable("The database is away.")


class Api:
    """A served home."""

    def __init__(
        self,
        home: Path,
        *,
        connection: type[Connection] = Connection,
        limits: Limits | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.home = home
        self._env = {"LOOPWRIGHT_HOME": str(home), "HOME": str(home), **(env or {})}
        self._limits = limits or Limits()
        self._connection = connection
        self._loop = asyncio.new_event_loop()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._up = threading.Event()
        self.at: Session
        self.app: Any
        self._server: uvicorn.Server
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()))
        self._thread.start()
        assert self._up.wait(60)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.token = self.run(lambda: tokens.first_token(self.at)).read_text().strip()

    async def _serve(self) -> None:
        settings = load(self._env, platform="linux")
        async with opened(settings) as real:
            self.store = Watched(real.home.store)
            self.at = replace(real, home=replace(real.home, store=self.store))
            self.app = make_app(self.at, hosts={"127.0.0.1"}, limits=self._limits)
            config = uvicorn.Config(
                self.app,
                log_config=None,
                http=self._connection,
                h11_max_incomplete_event_size=LARGEST_HEAD,
                timeout_graceful_shutdown=1,
            )
            self._server = uvicorn.Server(config)
            self._server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
            serving = asyncio.create_task(self._server._serve([self._listener]))
            while not self._server.started and not serving.done():
                await asyncio.sleep(0.005)
            self._up.set()
            await serving

    def close(self) -> None:
        """End it."""
        self.run(self.app.state.served.feed.close)
        self._server.should_exit = True
        self._thread.join()
        self._loop.close()
        self._listener.close()

    def run(self, work: Callable[[], Any]) -> Any:
        """Await something in the server's loop."""

        async def call() -> Any:
            return await work()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(60)

    def make_token(self, name: str, *, scope: Scope = Scope.READ, projects: tuple[str, ...] = ()) -> str:
        """Make a token and return it."""
        return str(self.run(lambda: tokens.create_token(self.at, name, scope=scope, projects=projects)).text)

    def write(self, work: Callable[[Tx], T]) -> T:
        """Change rows."""
        return self.at.home.store.transact_sync("test", work)

    def client(self, token: str | None = None, **more: Any) -> httpx.Client:
        """Return a client with a token, the owner's unless another is given."""
        headers = {"Authorization": f"Bearer {token or self.token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, **more)

    def get(self, path: str, *, token: str | None = None, **query: Any) -> Any:
        """Return a document."""
        with self.client(token) as client:
            answer = client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def page(self, path: str, *, token: str | None = None) -> str:
        """Return a page as a browser gets it."""
        with self.client(token) as client:
            answer = client.get(path, headers={"Accept": "text/html"})
        assert answer.status_code == 200, answer.text
        return answer.text

    def family(self, **changes: Any) -> tuple[Project, Loop, Plan, Task]:
        """Insert a project with a loop, a plan and a task."""
        project = rows.project(**changes)
        loop = rows.loop(project)
        plan = rows.plan(loop)
        task = rows.task(plan)

        def insert(tx: Tx) -> None:
            for row in (project, loop, plan, task):
                tx.insert(row)
            tx.update(Loop, loop.id, plan_id=plan.id)

        self.write(insert)
        return project, loop, plan, task

    def append(self, count: int, **changes: Any) -> None:
        """Record events."""

        def insert(tx: Tx) -> None:
            for n in range(count):
                tx.append(Event(**{"type": "task_queued", "actor": "test", "payload": {"n": n}} | changes))

        self.write(insert)


@contextmanager
def serving(home: Path, **more: Any) -> Iterator[Api]:
    """Serve a home for the length of a block."""
    api = Api(home, **more)
    try:
        yield api
    finally:
        api.close()


@asynccontextmanager
async def stream(api: Api, *, last: int, token: str | None = None, **query: Any) -> AsyncIterator["Reader"]:
    """Open a stream of events after a number."""
    headers = {"Authorization": f"Bearer {token or api.token}", "Last-Event-ID": str(last)}
    async with (
        httpx.AsyncClient(base_url=api.url, headers=headers, timeout=60) as client,
        client.stream("GET", "/api/events/stream", params=query) as answer,
    ):
        assert answer.status_code == 200
        yield Reader(answer)


class Reader:
    """Reads a stream of events."""

    def __init__(self, answer: httpx.Response) -> None:
        self._lines = answer.aiter_lines()

    async def next(self, count: int) -> list[Mapping[str, Any]]:
        """Return so many events."""
        found: list[Mapping[str, Any]] = []
        while len(found) < count:
            line = await anext(self._lines)
            if line.startswith("data: "):
                found.append(json.loads(line.removeprefix("data: ")))
        return found


def numbers(found: list[Mapping[str, Any]]) -> list[int]:
    """Return the numbers of events."""
    return [one["n"] for one in found]


def until(pred: Callable[[], T]) -> T:
    """Wait for something."""
    return eventually(pred, timeout=60)
