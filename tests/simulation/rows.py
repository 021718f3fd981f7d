"""The database that all workers share, and each worker's uncertain connection to it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from tests.fakes.world import WatchfulStore
from tests.simulation.trouble import Trouble, effect

from loopwright.core.values.errors import StoreUnavailable
from loopwright.ports import Clock, Tx
from loopwright.testing.memory_store import MemoryTx

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A row before and after a transaction."""

    kind: type[Any]
    id: str
    before: Any
    after: Any


class Database(WatchfulStore):
    """The store in memory, which tells of every commit, and of every move that its table does not have."""

    def __init__(
        self,
        clock: Clock,
        told: Callable[[str, tuple[Change, ...]], None],
        wrong: Callable[[str, AssertionError], None],
    ) -> None:
        super().__init__(clock)
        self._told = told
        self._wrong = wrong

    def transact_sync(self, name: str, work: Callable[[Tx], T]) -> T:
        changes: list[Change] = []

        def watched(tx: Tx) -> T:
            result = work(tx)
            assert isinstance(tx, MemoryTx)
            for kind, rows in tx.changed.items():
                for row_id, after in rows.items():
                    before = self._rows[kind].get(row_id)
                    if before != after:
                        changes.append(Change(kind=kind, id=row_id, before=before, after=after))
            return result

        try:
            result = super().transact_sync(name, watched)
        except AssertionError as wrong:
            self._wrong(name, wrong)
            raise
        self._told(name, tuple(changes))
        return result

    def all(self, kind: type[T]) -> Mapping[str, T]:
        """Return all rows of a kind, by id."""
        return self._rows[kind]


class Connection:
    """The Store port of one worker: calls take time, fail, and lose their answers."""

    def __init__(self, database: Database, clock: Clock, trouble: Trouble, read: Callable[[], None]) -> None:
        self._database = database
        self._clock = clock
        self._trouble = trouble
        self._read = read

    async def transact(self, name: str, work: Callable[[Tx], T]) -> T:
        self._database._signal.mark()
        await self._call(name)
        await effect(self._trouble, f"store.{name}.before")
        result = self._database.transact_sync(name, work)
        await effect(self._trouble, f"store.{name}.after")
        if self._trouble.strikes("lost_answer", self._trouble.rarely, name):
            raise StoreUnavailable("the connection broke")
        await self._trouble.delay("store")
        return result

    async def read(self, work: Callable[[Tx], T]) -> T:
        self._database._signal.mark()
        await self._call("read")
        self._read()
        return self._database.read_sync(work)

    async def back_up(self, now: datetime) -> None:
        await self._call("back_up")
        await self._database.back_up(now)

    async def _call(self, name: str) -> None:
        if self._trouble.over:
            raise StoreUnavailable("there is nothing any more")
        await self._trouble.delay("store")
        if self._trouble.strikes("store_away", self._trouble.rarely / 4, name):
            raise StoreUnavailable("the database does not answer")

    async def changed(self, timeout: float, *, ignoring: Collection[str] = ()) -> bool:
        return await self._database._signal.wait(timeout, self._clock.sleep, ignoring=ignoring)

    async def close(self) -> None:
        pass
