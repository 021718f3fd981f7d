"""Every stream and every long poll gets each event once, whatever happens in between."""

import asyncio
import socket
from pathlib import Path

import httpx
import pytest
from tests.integration.server.api import Api, numbers, serving, stream, until

from loopwright.core.values.access import Caller, Scope
from loopwright.server.context import Limits
from loopwright.server.feed import Feed
from loopwright.services.remote.events import Wanted

ALL = Wanted(caller=Caller(token_id="t", name="t", scope=Scope.READ))


async def test_a_stream_continues_where_another_daemon_ended_without_a_gap(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as first:
        first.append(3)
        async with stream(first, last=0) as reader:
            seen = numbers(await reader.next(2))
            first.append(2)
            seen += numbers(await reader.next(1))
    with serving(home) as second:
        second.append(4)
        async with stream(second, token=first.token, last=seen[-1]) as reader:
            seen += numbers(await reader.next(6))
    assert seen == list(range(1, 10))


async def test_two_hundred_idle_streams_cost_one_reader_of_the_database(api: Api) -> None:
    api.append(1)
    headers = {"Authorization": f"Bearer {api.token}"}
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=api.url, headers=headers, timeout=60, limits=limits) as client:
        answers = [
            await client.send(client.build_request("GET", "/api/events/stream?after=1"), stream=True)
            for _ in range(200)
        ]
        before = api.store.reads
        api.append(2)
        assert await asyncio.gather(*(_ids(answer, 2) for answer in answers)) == [[2, 3]] * 200
        assert api.store.reads - before < 10, "the database was read for each stream"
        for answer in answers:
            await answer.aclose()


async def _ids(answer: httpx.Response, count: int) -> list[int]:
    found: list[int] = []
    async for line in answer.aiter_lines():
        if line.startswith("id: "):
            found.append(int(line.removeprefix("id: ")))
        if len(found) == count:
            break
    return found


async def test_a_stream_that_is_far_behind_catches_up_from_the_database(api: Api) -> None:
    feed = Feed(api.at, lambda one: str(one.n), recent=10)
    await feed.open()
    api.append(95)
    await feed._read()
    found: list[int] = []
    async for batch in feed.follow(0, ALL, beat_s=0.01):
        found += [one.n for one in batch.events]
        if len(found) == 95:
            break
    assert found == list(range(1, 96))
    assert len(feed._recent) < 20


async def test_a_number_beyond_the_end_continues_with_the_next_event(api: Api) -> None:
    api.append(3)
    async with stream(api, last=10**9) as reader:
        api.append(1)
        assert numbers(await reader.next(1)) == [4]
    assert api.get("/api/events", after=10**9) == {"events": [], "last": 4, "hasMore": False}


def test_pages_and_filters_select_events(api: Api) -> None:
    project, loop, plan, _ = api.family()
    api.append(2)
    api.append(1, project=project.id, loop=loop.id, plan=plan.id, type="plan_created")
    api.append(1, project=project.id, loop=loop.id, type="loop_created")
    assert numbers(api.get("/api/events", plan=plan.id)["events"]) == [3]
    assert numbers(api.get("/api/events", loop=loop.id)["events"]) == [3, 4]
    assert numbers(api.get("/api/events", type="loop_created")["events"]) == [4]
    assert numbers(api.get("/api/events", type=["loop_created", "plan_created"])["events"]) == [3, 4]
    assert api.get("/api/events", type="nothing") == {"events": [], "last": 4, "hasMore": False}
    first = api.get("/api/events", limit=2)
    assert (numbers(first["events"]), first["last"], first["hasMore"]) == ([1, 2], 2, True)
    mine = api.make_token("mine", projects=(project.id,))
    assert numbers(api.get("/api/events", token=mine)["events"]) == [3, 4]
    # What lies further back is found in the database, with the same filters.
    feed = api.app.state.served.feed
    until(lambda: feed.last == 4)
    feed._recent, feed._before = [], 4
    assert numbers(api.get("/api/events", token=mine, type="plan_created")["events"]) == [3]
    assert api.get("/api/events", token=mine, project="proj_other")["events"] == []


def test_a_long_poll_sleeps_through_events_that_it_does_not_ask_for(api: Api) -> None:
    _, _, plan, _ = api.family()

    async def ask():
        headers = {"Authorization": f"Bearer {api.token}"}
        async with httpx.AsyncClient(base_url=api.url, headers=headers, timeout=60) as client:
            query = {"plan": plan.id, "wait": 30}
            asking = asyncio.create_task(client.get("/api/events", params=query))
            while not api.app.state.served.figures.open:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(api.append, 3)
            await asyncio.to_thread(api.append, 1, plan=plan.id)
            return (await asking).json()

    page = asyncio.run(ask())
    assert (numbers(page["events"]), page["last"]) == ([4], 4)


async def test_a_client_that_does_not_read_is_dropped_and_catches_up(tmp_path: Path) -> None:
    with serving(tmp_path / "home", limits=Limits(unread_s=0.2)) as api:
        figures = api.app.state.served.figures
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(("127.0.0.1", int(api.url.rpartition(":")[2])))
            head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {api.token}\r\n"
            slow.sendall(f"GET /api/events/stream?after=0 HTTP/1.1\r\n{head}\r\n".encode())
            until(lambda: figures.open)
            for _ in range(20):
                api.append(50, payload={"text": "x" * 20_000})
            until(lambda: not figures.open)
    with serving(tmp_path / "home") as api:
        async with stream(api, last=0) as reader:
            assert numbers(await reader.next(1000)) == list(range(1, 1001))


async def test_streams_continue_after_the_database_was_away(api: Api) -> None:
    async with stream(api, last=0) as reader:
        api.append(1)
        assert numbers(await reader.next(1)) == [1]
        api.store.is_away = True
        before = api.store.reads
        api.append(1)
        until(lambda: api.store.reads > before)
        with api.client() as client:
            away = client.get("/api/loops")
        assert (away.status_code, away.json()["code"]) == (503, "store_unavailable")
        assert away.headers["Retry-After"]
        api.store.is_away = False
        assert numbers(await reader.next(1)) == [2]


async def test_the_end_of_the_daemon_ends_streams_at_once(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as api:
        async with stream(api, last=0) as reader:
            await asyncio.to_thread(api.run, api.app.state.served.feed.close)
            with pytest.raises(StopAsyncIteration):
                await reader.next(1)
