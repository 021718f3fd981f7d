"""A project with a daemon that answers requests."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import Background


class Served(Workshop):
    """A project whose home has a daemon."""

    def serve(self, *flags: str) -> Background:
        """Start a daemon on a free port and wait until it listens."""
        daemon = self.start("serve", "--port", "0", "--json", *flags)
        said = daemon.until('"listening"')
        self.listening: dict[str, Any] = next(
            json.loads(line) for line in said.splitlines() if '"listening"' in line
        )
        return daemon

    @property
    def pid(self) -> int:
        """The process of the daemon."""
        pid: int = self.listening["pid"]
        return pid

    @property
    def token(self) -> str:
        """The owner's token."""
        return Path(self.listening["token_file"]).read_text().strip()

    def client(self, token: str | None = None) -> httpx.Client:
        """Return a client with a token, the owner's unless another is given."""
        headers = {"Authorization": f"Bearer {self.token if token is None else token}"}
        return httpx.Client(base_url=self.listening["url"], headers=headers, timeout=60)

    def get(self, path: str, **query: Any) -> Any:
        """Return a document."""
        with self.client() as client:
            answer = client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any = None) -> httpx.Response:
        """Ask for something."""
        return self.ask("POST", path, json={} if body is None else body)

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Send one request with the owner's token."""
        with self.client() as client:
            return client.request(method, path, **more)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A project where nothing has run yet; nothing of it is left running afterwards."""
    shop = Served(tmp_path)
    yield shop
    shop.clean_up()


@pytest.fixture(scope="module")
def served_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A daemon that several tests only ask."""
    shop = Served(tmp_path_factory.mktemp("served"))
    shop.serve()
    yield shop
    shop.clean_up()
