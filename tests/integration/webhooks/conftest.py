"""An open home that may send to loopback, and what sends from it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.contracts.store.rows import event

from loopwright.config.resolve import load
from loopwright.core.integrations.webhooks import Patience
from loopwright.core.rows.events import RecordedEvent
from loopwright.services.homes.session import Session, opened
from loopwright.services.webhooks.sending import Sender

QUICK = Patience(first_s=0.01, longest_s=0.05, away=10_000, refused=2)


def rendered(one: RecordedEvent) -> dict[str, Any]:
    """Return an event as the receivers of these tests get it."""
    return {"n": one.n, "details": dict(one.payload)}


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Session]:
    """An open home."""
    env = {
        "LOOPWRIGHT_HOME": str(tmp_path / "home"),
        "HOME": str(tmp_path),
        "LOOPWRIGHT_WEBHOOK_NETWORKS": "127.0.0.0/8",
    }
    async with opened(load(env, platform="linux")) as made:
        yield made


@asynccontextmanager
async def sending(at: Session, **more: Any) -> AsyncIterator[None]:
    """Send for the length of a block."""
    sender = Sender(at, rendered, **{"chance": lambda: 0.5, "patience": QUICK, "claim_s": 0.2} | more)
    async with anyio.create_task_group() as group:
        group.start_soon(sender.run)
        yield
        group.cancel_scope.cancel()


async def happen(at: Session, count: int, **changes: Any) -> None:
    """Record events."""

    def append(tx: Any) -> None:
        for _ in range(count):
            tx.append(event(**changes))

    await at.home.store.transact("test", append)
