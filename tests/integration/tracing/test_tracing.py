"""A real collector gets one trace per plan, each span once, whatever process sends it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.store import rows
from tests.integration.tracing.collector import Collector, listening
from tests.waiting import eventually_async

from loopwright.config.resolve import load
from loopwright.core.integrations.webhooks import Patience
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Plan
from loopwright.core.rows.webhook_rows import Webhook
from loopwright.core.values.access import OWNER
from loopwright.services.homes.session import Session, opened
from loopwright.services.reports.alerts import alerts
from loopwright.services.tracing.sending import tracing
from loopwright.services.webhooks import receivers

QUICK = Patience(first_s=0.01, longest_s=0.05, away=1_000_000)


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector."""
    with listening() as made:
        yield made


@asynccontextmanager
async def home(tmp_path: Path, url: str) -> AsyncIterator[Session]:
    """An open home with a collector."""
    env = {
        "LOOPWRIGHT_HOME": str(tmp_path / "home"),
        "HOME": str(tmp_path),
        "LOOPWRIGHT_OTLP_ENDPOINT": url,
    }
    async with opened(load(env, platform="linux")) as at:
        yield Session(home=at.home, settings=at.settings, env=env)


async def end(at: Session, plan: Plan, type: str) -> None:
    """Record an end of a plan."""
    await at.home.store.transact("test", lambda tx: tx.append(happened(type, "machine", plan=plan)))


async def test_each_end_of_a_plan_is_sent_once_and_a_plan_that_continues_stays_in_its_trace(
    tmp_path: Path, collector: Collector
) -> None:
    async with home(tmp_path, collector.url) as at:
        plan: Any = await at.home.store.transact("test", rows.family)
        async with tracing(at, collector.url, patience=QUICK), tracing(at, collector.url, patience=QUICK):
            await end(at, plan, "plan_failed")
            await end(at, plan, "task_queued")
            await end(at, plan, "plan_verified")
    assert collector.paths == {"/v1/traces"}
    assert collector.asked == 2
    first, second = collector.spans
    assert (first.name, first.failed, first.parent) == ("plan", True, b"")
    assert (second.trace, second.parent, second.failed) == (first.trace, first.id, False)
    assert second.id != first.id
    assert first.resource["service.name"] == "loopwright"


async def test_what_a_collector_refused_is_an_alert_and_is_sent_by_the_next_process_once(
    tmp_path: Path, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    collector.refuses = 1_000_000
    async with home(tmp_path, collector.url) as at:
        plan: Any = await at.home.store.transact("test", rows.family)
        never = Patience(first_s=3600.0, longest_s=3600.0, away=1_000_000)
        async with tracing(at, collector.url, patience=never):
            await end(at, plan, "plan_verified")
            await eventually_async(lambda: collector.asked)
        assert "took nothing" in caplog.text
        [row] = await at.home.store.read(lambda tx: tx.find(Webhook))
        await at.home.store.transact("test", lambda tx: tx.update(Webhook, row.id, retry_at=None))
        async with tracing(at, collector.url, patience=QUICK):
            await eventually_async(lambda: collector.asked >= 6)
            [alert] = await alerts(at, OWNER)
            assert (alert.kind, "400" in alert.message) == ("otlp_endpoint_stuck", True)
            assert not await receivers.list_webhooks(at, OWNER)
            collector.refuses = 0
            await eventually_async(lambda: collector.spans)
    assert [one.name for one in collector.spans] == ["plan"]
