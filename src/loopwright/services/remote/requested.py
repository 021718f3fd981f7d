"""Carry out in the background what rows request; the next daemon continues what a killed one left."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

from loopwright.core.rows.model import Loop, Plan
from loopwright.core.values.errors import LoopwrightError, StoreUnavailable
from loopwright.ports import Tx
from loopwright.services.homes.session import Session

log = logging.getLogger(__name__)

_TICK_S: Final = 5.0
"""The longest wait if no process reports a commit."""
_AGAIN_S: Final = 1.0
"""The wait after a problem, for example with an unreachable database."""

Row = TypeVar("Row", bound=Loop | Plan)


class Requested(Generic[Row]):
    """Finds rows that request something, and carries each out in its own task."""

    def __init__(
        self,
        at: Session,
        *,
        find: Callable[[Tx], Sequence[Row]],
        carry_out: Callable[[Session, Row], Awaitable[None]],
        give_up: Callable[[Tx, Row, LoopwrightError], None],
        again_s: float = _AGAIN_S,
    ) -> None:
        """Carry out every row of `find`; `give_up` records why a row cannot be, so that it is not found again."""
        self._at = at
        self._find = find
        self._carry_out = carry_out
        self._give_up = give_up
        self._again_s = again_s
        self._going: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Carry out requests until this task is cancelled."""
        try:
            while True:
                try:
                    await self._look()
                    await self._at.home.store.changed(_TICK_S)
                except StoreUnavailable as away:
                    log.warning("nothing asked for can be carried out now: %s", away)
                    await asyncio.sleep(self._again_s)
                except Exception:  # the boundary: requests must not wait for a restart of the daemon
                    log.exception("requests cannot be read; trying again")
                    await asyncio.sleep(self._again_s)
        finally:
            for task in self._going.values():
                task.cancel()
            await asyncio.gather(*self._going.values(), return_exceptions=True)

    async def _look(self) -> None:
        wanted = await self._at.home.store.read(self._find)
        for key in self._going.keys() - {one.id for one in wanted}:
            if not self._going[key].cancelling():  # a second cancel would end what it still has to do
                self._going[key].cancel()  # it was withdrawn in the meantime
        self._going = {key: task for key, task in self._going.items() if not task.done()}
        for row in wanted:
            if row.id not in self._going:
                self._going[row.id] = asyncio.create_task(self._take(row), name=f"request {row.id}")

    async def _take(self, row: Row) -> None:
        try:
            try:
                await self._carry_out(self._at, row)
            except StoreUnavailable:
                raise
            except LoopwrightError as wrong:
                await self._end(row, wrong)
            except Exception as defect:  # the boundary: one request must not stop all others
                log.exception("request not carried out", extra={"row": row.id})
                await self._end(row, LoopwrightError(f"{type(defect).__name__}: {defect}"))
        except StoreUnavailable as away:
            log.warning("request not carried out yet: %s", away, extra={"row": row.id})
            await asyncio.sleep(self._again_s)

    async def _end(self, row: Row, why: LoopwrightError) -> None:
        await self._at.home.store.transact("request.given_up", lambda tx: self._give_up(tx, row, why))
