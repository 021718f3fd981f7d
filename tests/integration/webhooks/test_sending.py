"""Events reach receivers in their order and once, whoever is killed in between."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook as Verifier
from tests.contracts.store import rows
from tests.integration.webhooks.conftest import QUICK, happen, rendered, sending
from tests.waiting import eventually_async

from loopwright.core.integrations.webhooks import Delivery, Patience, Reply
from loopwright.core.rows.webhook_rows import Webhook
from loopwright.core.values.access import OWNER
from loopwright.services.homes.session import Session
from loopwright.services.reports.alerts import alerts
from loopwright.services.webhooks import receivers
from loopwright.services.webhooks.sending import LARGEST, Sender

PROGRAM = Path(__file__).with_name("receiver.py")


class Receiver:
    """A receiver that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None

    async def start(self, *more: int) -> None:
        """Start it, on the port that it had before."""
        note = self.folder / "port"
        note.unlink(missing_ok=True)
        words = [sys.executable, str(PROGRAM), str(self.port), str(self.folder), *map(str, more)]
        self.process = subprocess.Popen(words)
        self.port = int(await eventually_async(lambda: note.exists() and note.read_text()))

    def ended(self) -> bool:
        """Return whether it stopped by itself."""
        return self.process is not None and self.process.poll() is not None

    def kill(self) -> None:
        """End it hard."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def read(self, name: str = "messages") -> list[Any]:
        """Return what it got."""
        file = self.folder / name
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def numbers(self) -> list[int]:
        """Return the numbers of the events that it got, in its order."""
        return [json.loads(one["body"])["data"]["n"] for one in self.read()]


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    """A receiver that is not started yet."""
    folder = tmp_path / "receiver"
    folder.mkdir()
    made = Receiver(folder)
    yield made
    made.kill()


async def test_a_killed_receiver_and_a_killed_sender_lose_no_event_and_get_none_twice(
    at: Session, receiver: Receiver
) -> None:
    await receiver.start(5)
    await happen(at, 3)
    made = await receivers.create_webhook(at, OWNER, f"http://127.0.0.1:{receiver.port}/hook")
    first = await at.home.store.read(lambda tx: tx.last_event()) + 1
    await happen(at, 12)
    async with sending(at):
        await eventually_async(receiver.ended)  # it wrote the fifth, and its answer was lost
        await happen(at, 8)
        await receiver.start()
        await eventually_async(lambda: len(receiver.numbers()) >= 9)
        receiver.kill()
    await happen(at, 4)
    async with sending(at), sending(at):  # two daemons, none of them the one before
        await receiver.start()
        await eventually_async(lambda: len(receiver.numbers()) >= 24)
        [view] = await receivers.list_webhooks(at, OWNER)
        await eventually_async(lambda: _is_done(at, view.id))
    assert receiver.numbers() == list(range(first, first + 24))
    assert receiver.read("repeats"), "the answer that was lost made a repeat, which its id tells apart"
    for one in receiver.read():
        said = Verifier(made.secret).verify(one["body"], one["headers"])
        assert said["data"]["n"] in receiver.numbers()


async def _is_done(at: Session, hook_id: str) -> bool:
    found = await at.home.store.read(lambda tx: tx.get(Webhook, hook_id))
    return found is not None and found.cursor == await at.home.store.read(lambda tx: tx.last_event())


class Scripted:
    """Takes messages, unless it is told to answer otherwise."""

    def __init__(self, answer: Callable[[int], Reply] = lambda _: Reply.TAKEN) -> None:
        self.answer = answer
        self.taken: list[int] = []
        self.asked = 0

    async def __call__(self, hook: Webhook, body: bytes, headers: Mapping[str, str]) -> Delivery:
        """Answer."""
        self.asked += 1
        n = json.loads(body)["data"]["n"]
        reply = self.answer(n)
        if reply is Reply.TAKEN:
            self.taken.append(n)
        return Delivery(reply=reply, detail="because")


URL = "http://127.0.0.1:9/hook"


async def test_refused_events_become_dead_letters_that_are_replayed_in_order(at: Session) -> None:
    made = await receivers.create_webhook(at, OWNER, URL)
    first = made.view.row.cursor + 1
    await happen(at, 6)
    scripted = Scripted(lambda n: Reply.REFUSED if n - first in (1, 3) else Reply.TAKEN)
    async with sending(at, send=scripted):
        await eventually_async(lambda: len(scripted.taken) == 4)
        letters = await receivers.dead_letters(at, OWNER, made.view.id)
        assert [(one.n - first, one.failures, one.error) for one in letters] == [
            (1, 2, "because"),
            (3, 2, "because"),
        ]
        [alert] = await alerts(at, OWNER)
        assert (alert.kind, "refused" in alert.message) == ("webhook_stuck", True)
        scripted.answer = lambda n: Reply.REFUSED if n - first == 3 else Reply.TAKEN
        await receivers.replay(at, OWNER, made.view.id)
        await happen(at, 1)
        await eventually_async(lambda: len(scripted.taken) == 6)
        [left] = await receivers.dead_letters(at, OWNER, made.view.id)
        assert (left.n - first, left.replay_at) == (3, None)
        scripted.answer = lambda _: Reply.TAKEN
        await receivers.replay(at, OWNER, made.view.id)
        await eventually_async(lambda: len(scripted.taken) == 7)
        assert not await receivers.dead_letters(at, OWNER, made.view.id)
    assert [n - first for n in scripted.taken] == [0, 2, 4, 5, 1, 6, 3]


@pytest.mark.parametrize("reply", [Reply.AWAY, pytest.param(Reply.GONE, marks=pytest.mark.more)])
async def test_a_receiver_that_is_off_gets_everything_in_order_after_a_replay(
    at: Session, reply: Reply
) -> None:
    made = await receivers.create_webhook(at, OWNER, URL)
    await happen(at, 3)
    scripted = Scripted(lambda _: reply)
    few = Patience(first_s=0.01, longest_s=0.01, away=3)
    async with sending(at, send=scripted, patience=few):
        await eventually_async(lambda: _is_off(at, made.view.id))
        [alert] = await alerts(at, OWNER)
        assert (alert.kind, made.view.id in alert.hint) == ("webhook_stuck", True)
        assert scripted.asked == (3 if reply is Reply.AWAY else 1)
        scripted.answer = lambda _: Reply.TAKEN
        await receivers.replay(at, OWNER, made.view.id)
        await happen(at, 2)
        await eventually_async(lambda: len(scripted.taken) == 5)
    assert scripted.taken == sorted(set(scripted.taken))


async def _is_off(at: Session, hook_id: str) -> bool:
    return (await receivers.get_webhook(at, OWNER, hook_id)).status == "off"


async def test_a_webhook_gets_the_events_of_its_project_loop_and_types_only(at: Session) -> None:
    project = rows.project()
    loop = rows.loop(project)
    await at.home.store.transact("test", lambda tx: (tx.insert(project), tx.insert(loop)))
    await receivers.create_webhook(
        at, OWNER, URL, projects=(project.id,), loop=loop.id, types=("plan_verified", "plan_failed")
    )
    scripted = Scripted()
    await happen(at, 2, project=project.id, loop=loop.id, type="task_queued")
    await happen(at, 1, project=project.id, loop="loop_other", type="plan_failed")
    await happen(at, 1, project="proj_other", loop=loop.id, type="plan_failed")
    await happen(at, 1, project=project.id, loop=loop.id, type="plan_verified")
    wanted = await at.home.store.read(lambda tx: tx.last_event())
    await happen(at, 30)
    async with sending(at, send=scripted):
        await eventually_async(lambda: scripted.taken)
        await happen(at, 1, project=project.id, loop=loop.id, type="plan_failed")
        await eventually_async(lambda: len(scripted.taken) == 2)
    assert scripted.taken == [wanted, wanted + 31]


async def test_two_daemons_send_every_event_once(at: Session) -> None:
    made = await receivers.create_webhook(at, OWNER, URL)
    scripted = Scripted()
    async with sending(at, send=scripted, claim_s=60), sending(at, send=scripted, claim_s=60):
        for _ in range(4):
            await happen(at, 5)
        await eventually_async(lambda: _is_done(at, made.view.id))
    assert scripted.taken == sorted(set(scripted.taken))
    assert scripted.asked == 20


async def test_a_removed_webhook_gets_nothing_more(at: Session) -> None:
    made = await receivers.create_webhook(at, OWNER, URL)
    other = await receivers.create_webhook(at, OWNER, URL)
    scripted = Scripted()
    async with sending(at, send=scripted):
        await receivers.remove_webhook(at, OWNER, made.view.id)
        await happen(at, 3)
        await eventually_async(lambda: _is_done(at, other.view.id))
    assert len(scripted.taken) == 3


async def test_a_message_that_is_too_large_goes_without_its_details(at: Session) -> None:
    await happen(at, 1, payload={"text": "x" * LARGEST})
    [large] = await at.home.store.read(lambda tx: tx.events(limit=1, newest=True))
    body = Sender(at, rendered, patience=QUICK)._body(large)
    assert json.loads(body)["data"] == {"n": large.n, "details": {}, "truncated": True}
