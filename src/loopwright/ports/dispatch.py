"""Deciding where a leg runs."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from loopwright.core.rows.model import Leg

Execute = Callable[[Leg], Awaitable[None]]
"""Runs one leg to its end; idempotent, because an engine may call it again."""


class Engine(Protocol):
    """Decides where a leg runs, and sees to it that it does."""

    async def launch(self, execute: Execute, *, worker_id: str, slots: int) -> None:
        """Begin taking legs for this worker."""

    async def start(self, leg: Leg) -> None:
        """See to it that the leg runs once on some worker; a second call with the same leg does nothing."""

    async def cancel(self, leg: Leg) -> None:
        """Stop driving the leg here or wherever it runs; its agent lives on until the rows say otherwise."""

    async def in_flight(self, owners: Sequence[str] | None = None) -> list[str]:
        """Return the ids of legs that are waiting or running, all or those owned by these workers."""

    async def owners(self) -> list[str]:
        """Return the workers that have legs; read the leases after this, so that one without is dead and not new."""

    async def recover(self, owners: Sequence[str]) -> list[str]:
        """Make legs of dead workers run again elsewhere; return their ids."""

    async def close(self) -> None:
        """Stop taking legs and drop those running in this process."""
