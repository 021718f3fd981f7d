"""What rows ask for is carried out in the background, whatever happens to one of them or to the database."""

import asyncio
from collections.abc import Awaitable, Callable

from tests.contracts.store import rows
from tests.integration.server.api import Api, until

from loopwright.core.rows.model import Loop
from loopwright.core.values.errors import LoopwrightError, Refused, StoreUnavailable
from loopwright.ports import Tx
from loopwright.services.homes.session import Session
from loopwright.services.remote.requested import Requested

ASKED = "asked"
"""Marks the loops here: what asks for a start would be started by the server itself."""
Act = Callable[[Loop, int], Awaitable[None]]
"""Carries a loop out; gets how often that was tried."""


class Requests:
    """Loops that ask for something, and what came of each."""

    def __init__(self, api: Api, act: Act, names: tuple[str, ...] = ("first", "second")) -> None:
        self.api = api
        self.began: list[str] = []
        self.ended: list[str] = []
        self.broken = False
        self._act = act
        project = rows.project()
        api.write(lambda tx: tx.insert(project))
        for name in names:
            loop = rows.loop(project, name=name, source_path=name, source_kind=ASKED)
            api.write(lambda tx, one=loop: tx.insert(one))
        requested = Requested(
            api.at, find=self._find, carry_out=self._carry_out, give_up=self._give_up, again_s=0.01
        )
        self._running = api.run(lambda: _started(requested))

    def _find(self, tx: Tx) -> list[Loop]:
        if self.broken:
            raise ZeroDivisionError
        return tx.find(Loop, source_kind=ASKED)

    async def _carry_out(self, at: Session, loop: Loop) -> None:
        self.began.append(loop.name)
        try:
            await self._act(loop, self.began.count(loop.name))
        finally:
            self.ended.append(loop.name)
        await at.home.store.transact(
            "done", lambda tx: tx.update(Loop, loop.id, source_kind="done", reason="done")
        )

    @staticmethod
    def _give_up(tx: Tx, loop: Loop, why: LoopwrightError) -> None:
        tx.update(Loop, loop.id, source_kind="done", reason=f"{why.code}: {why}")

    def reasons(self) -> dict[str, str]:
        """Return what is said about each loop."""
        return {
            one.name: one.reason or "" for one in self.api.at.home.store.read_sync(lambda tx: tx.find(Loop))
        }

    def __enter__(self) -> "Requests":
        return self

    def __exit__(self, *_: object) -> None:
        async def end() -> None:
            self._running.cancel()
            await asyncio.wait({self._running})

        self.api.run(end)


async def _started(requested: Requested[Loop]) -> asyncio.Task[None]:
    return asyncio.create_task(requested.run())


def test_what_fails_is_given_up_with_its_reason_and_holds_up_no_other(api: Api) -> None:
    async def act(loop: Loop, _tried: int) -> None:
        if loop.name == "refused":
            raise Refused("no", code="loop_not_startable")
        if loop.name == "defect":
            raise ZeroDivisionError("by zero")

    with Requests(api, act, ("refused", "defect", "good")) as requests:
        said = {
            "refused": "loop_not_startable: no",
            "defect": "error: ZeroDivisionError: by zero",
            "good": "done",
        }
        until(lambda: requests.reasons() == said)
    assert sorted(requests.began) == ["defect", "good", "refused"], "each was tried once"


def test_a_database_that_is_away_gives_nothing_up(api: Api) -> None:
    async def act(loop: Loop, tried: int) -> None:
        if tried == 1:
            if loop.name == "first":
                raise StoreUnavailable("The database was away for a moment.")
            api.store.is_away = True
            raise Refused("it looked wrong", code="loop_not_startable")

    with Requests(api, act) as requests:
        until(lambda: api.store.is_away)
        reads = api.store.reads
        until(lambda: api.store.reads > reads + 2)
        api.store.is_away = False
        until(lambda: requests.reasons() == {"first": "done", "second": "done"})


def test_rows_that_cannot_be_read_are_looked_for_again(api: Api) -> None:
    async def act(_: Loop, _tried: int) -> None:
        return

    with Requests(api, act, ()) as requests:
        requests.broken = True
        reads = api.store.reads
        loop = rows.loop(api.family(name="late", path="/late")[0], name="late", source_kind=ASKED)
        api.write(lambda tx: tx.insert(loop))
        until(lambda: api.store.reads > reads + 2)
        assert requests.reasons()["late"] == ""
        requests.broken = False
        until(lambda: requests.reasons()["late"] == "done")


def test_what_is_withdrawn_is_called_off(api: Api) -> None:
    async def act(_: Loop, _tried: int) -> None:
        await asyncio.Event().wait()

    with Requests(api, act) as requests:
        until(lambda: len(requests.began) == 2)
        [first] = api.at.home.store.read_sync(lambda tx: tx.find(Loop, name="first"))
        api.write(lambda tx: tx.update(Loop, first.id, source_kind="done"))
        until(lambda: requests.ended == ["first"])
    assert requests.ended == ["first", "second"], "the end calls off the rest"
