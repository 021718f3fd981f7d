"""Watch live stages: a stage whose observations stay the same is in trouble, and its agent is left running.

An observation is the last activity that the keeper saw: output, processor time, or a changed file.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from loopwright.core.orchestrator.ladder import Watched, watched
from loopwright.core.rows.model import Run
from loopwright.core.values.states import RunState
from loopwright.engine.rows.world import HomePaths
from loopwright.ports import Tx
from loopwright.services.driving.driver import world_of
from loopwright.services.orchestrator.delegation import Begun, Desk

_EVERY_S: Final = 600.0
"""How often to observe if no agent is ended for being idle."""
_SHARE: Final = 5
"""How many observations fit into the time after which a silent agent is ended: three of them come before that."""

Lost = Callable[[Begun, str], Awaitable[None]]
"""The action for a stage that is not observable, with its description."""


@asynccontextmanager
async def watching(desk: Desk, begun: Sequence[Begun], lost: Lost) -> AsyncIterator[None]:
    """Observe stages while the body drives them; each is reported once for each time that it falls silent."""
    watch = asyncio.create_task(_watch(desk, begun, lost), name="observe stages")
    try:
        yield
    finally:
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch


async def _watch(desk: Desk, begun: Sequence[Begun], lost: Lost) -> None:
    idle = desk.settings.values.limits.idle
    every = idle / _SHARE if idle else _EVERY_S
    seen: dict[str, Watched | None] = {}
    while True:
        for one in begun:
            plan = one.submitted.plan.id
            before, sign = seen.get(plan), await _sign(desk, plan)
            seen[plan] = now = watched(before, sign)
            if now is not None and now.is_lost and not (before and before.is_lost):
                why = (
                    f"{now.unchanged} observations, each after {every:g} s, show no sign of life of its agent"
                )
                await lost(one, f"{one.assignment.stage} is not observable: {why}")
        await asyncio.sleep(every)


async def _sign(desk: Desk, plan_id: str) -> str:
    """Return the newest activity of a plan's agents; empty if none works."""
    home = desk.at.home

    def load(tx: Tx) -> list[str]:
        return [run.id for run in tx.find(Run, plan_id=plan_id, state=RunState.RUNNING)]

    paths, keepers = HomePaths(root=home.root), world_of(desk.at).keepers
    sights = {one: keepers.look(paths.run(one)) for one in await home.store.read(load)}
    return " ".join(
        f"{one} {sight.last_sign_at}" for one, sight in sorted(sights.items()) if sight.state == "alive"
    )
