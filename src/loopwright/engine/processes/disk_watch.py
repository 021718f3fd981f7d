"""Sees to it that nobody takes all of the disk: agents, gates and setup commands alike are measured while they run."""

import asyncio
from pathlib import Path
from typing import Final

from loopwright.engine.rows.world import World

_FIRST_S: Final = 1.0
_LAST_S: Final = 30.0
_REST: Final = 50
"""The folders of a run are measured sooner at first, then at this pace, and never for more than a fiftieth of the
time: counting a large workspace takes a while."""


class RoomWatch:
    """Looks from time to time how much the folders of a run take."""

    def __init__(self, world: World, *folders: Path) -> None:
        self._room = world.room
        self._clock = world.clock
        self._folders = folders
        self.why = ""
        """Why the run has to stop; empty while it may go on."""

    async def until_over(self) -> None:
        """Wait until the run has taken more room than it may."""
        pace = _FIRST_S
        if not self._room.is_limited:
            await asyncio.Event().wait()
        while not self.why:
            await self._clock.sleep(pace)
            began = self._clock.monotonic()
            self.why = await asyncio.to_thread(self._room.excess, *self._folders)
            took = self._clock.monotonic() - began
            pace = max(min(2 * pace, _LAST_S), took * _REST)
