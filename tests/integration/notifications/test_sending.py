"""Notices reach a target of the real Apprise: each once, in order, with its words, and without its secrets."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.store import rows
from tests.integration.notifications.sink import Sink, listening
from tests.waiting import eventually_async

from loopwright.config.resolve import load
from loopwright.core.integrations.webhooks import Patience
from loopwright.core.policy.budget import ASKED
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Plan
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.rows.webhook_rows import Webhook
from loopwright.core.values.access import OWNER
from loopwright.core.values.ids import Kind
from loopwright.services.homes.session import Session, opened
from loopwright.services.notifications.sending import notifying
from loopwright.services.reports.alerts import alerts
from loopwright.services.webhooks import receivers

pytestmark = pytest.mark.filterwarnings(
    "ignore:.imghdr. is deprecated:DeprecationWarning"
)  # Apprise imports it
QUICK = Patience(first_s=0.01, longest_s=0.05, away=1_000_000)
SECRET = "hunter2-" + "s3cret"


@pytest.fixture
def sink() -> Iterator[Sink]:
    """A receiver."""
    with listening() as made:
        yield made


@asynccontextmanager
async def home(tmp_path: Path, url: str, **flags: Any) -> AsyncIterator[Session]:
    """An open home with a target; the secret is in its environment."""
    env = {
        "LOOPWRIGHT_HOME": str(tmp_path / "home"),
        "HOME": str(tmp_path),
        "SINK_TOKEN": SECRET,
        **({} if flags else {"LOOPWRIGHT_NOTIFY": url}),
    }
    async with opened(load(env, platform="linux", flags=flags or None)) as at:
        yield Session(home=at.home, settings=at.settings, env=env)


async def plan_of(at: Session, **changes: Any) -> Plan:
    """Insert a plan."""

    def insert(tx: Any) -> Plan:
        made = rows.family(tx)
        return tx.update(Plan, made.id, title="Add login", **changes)

    return await at.home.store.transact("test", insert)


async def happen(at: Session, plan: Plan, type: str, **payload: Any) -> None:
    """Record an event of a plan."""
    await at.home.store.transact(
        "test", lambda tx: tx.append(happened(type, "machine", plan=plan, **payload))
    )


async def asked(at: Session, plan: Plan, kind: str, text: str) -> None:
    """Ask the person something."""
    question = Question(
        id=rows.new_id(Kind.QUESTION),
        project_id=plan.project_id,
        loop_id=plan.loop_id,
        plan_id=plan.id,
        task_id="",
        run_id="",
        kind=kind,
        key="k",
        text=text,
        options=("yes", "no"),
        created_at=rows.AT,
    )

    def ask(tx: Any) -> None:
        tx.insert(question)
        tx.append(happened("question_asked", "machine", plan=plan, question=question.id, text=text))

    await at.home.store.transact("test", ask)


async def test_done_needs_you_failed_budget_and_alerts_are_sent_in_order(tmp_path: Path, sink: Sink) -> None:
    async with home(tmp_path, sink.url("${SINK_TOKEN}")) as at:
        plan = await plan_of(at)
        async with notifying(at, patience=QUICK):
            await happen(at, plan, "plan_verified", commit="1" * 40)
            await asked(at, plan, "choice", "Which one?")
            await happen(at, plan, "plan_failed", reason="gate:all failed")
            await happen(
                at, plan, "budget_near", cap="max_cost", spent_micros=900_000, limit_micros=1_000_000
            )
            await asked(at, plan, ASKED, "The budget is used up.")
            await happen(at, plan, "trouble_found", kind="stuck", message="It is stuck.", hint="Look at it.")
            await happen(at, plan, "task_queued")
    assert [(one["title"], one["type"]) for one in sink.taken] == [
        ("Done: Add login", "success"),
        ("Needs you: Add login", "warning"),
        ("Failed: Add login", "failure"),
        ("Budget: Add login", "warning"),
        ("Budget: Add login", "warning"),
        ("Alert: Add login", "warning"),
    ]
    bodies = [one["message"] for one in sink.taken]
    assert "Which one? (yes, no)" in bodies[1]
    assert "$0.90 of $1.00 (max_cost)" in bodies[3]
    assert "Look at it." in bodies[5]
    assert sink.asked == 6
    stored = b"".join(one.read_bytes() for one in (tmp_path / "home").rglob("*") if one.is_file())
    assert SECRET.encode() not in stored


async def test_what_a_target_did_not_take_is_sent_again_by_the_next_process_and_once(
    tmp_path: Path, sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    sink.refuses = 1_000_000
    never = Patience(first_s=3600.0, longest_s=3600.0, away=1_000_000)
    url = sink.url("${SINK_TOKEN}")
    async with home(tmp_path, url) as at:
        plan = await plan_of(at)
        async with notifying(at, patience=never):
            await happen(at, plan, "plan_verified")
            await eventually_async(lambda: sink.asked)
        assert "took nothing" in caplog.text
        await happen(at, plan, "plan_failed", reason="later")
        [row] = await at.home.store.read(lambda tx: tx.find(Webhook))
        assert (row.failures, SECRET in row.error, SECRET in caplog.text) == (1, False, False)
        await at.home.store.transact("test", lambda tx: tx.update(Webhook, row.id, retry_at=None))
        async with notifying(at, patience=QUICK):
            await eventually_async(lambda: sink.asked >= 6)
            [alert] = await alerts(at, OWNER)
            assert (alert.kind, SECRET in alert.message) == ("notify_stuck", False)
            assert not await receivers.list_webhooks(at, OWNER)
            sink.refuses = 0
            await eventually_async(lambda: len(sink.taken) == 2)
        async with notifying(at, patience=QUICK), notifying(at, patience=QUICK):
            await happen(at, plan, "plan_verified")
    assert sink.titles == ["Done: Add login", "Failed: Add login", "Done: Add login"]


async def test_a_target_given_as_a_flag_gets_the_notices_of_its_loop_only(tmp_path: Path, sink: Sink) -> None:
    async with home(tmp_path, "", notify=[sink.url()]) as at:
        mine, other = await plan_of(at), await plan_of(at)
        async with notifying(at, mine.loop_id, patience=QUICK):
            await happen(at, other, "plan_failed", reason="not mine")
            await happen(at, mine, "plan_verified")
    assert sink.titles == ["Done: Add login"]


async def test_a_target_that_cannot_be_used_is_a_warning_and_the_others_get_everything(
    tmp_path: Path, sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    urls = [f"nosuchservice://{SECRET}/x", "json://localhost/${NOT_SET}", sink.url()]
    async with home(tmp_path, "", notify=urls) as at:
        plan = await plan_of(at)
        async with notifying(at, plan.loop_id, patience=QUICK):
            await happen(at, plan, "plan_verified")
    assert sink.titles == ["Done: Add login"]
    assert ("NOT_SET" in caplog.text, SECRET in caplog.text) == (True, False)
