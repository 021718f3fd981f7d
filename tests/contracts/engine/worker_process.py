"""A worker in a process of its own: `python -m tests.contracts.engine.worker_process URL ID SLOTS DIRECTORY VERSION`.

It writes what it does to `DIRECTORY/log`, one line each. A leg runs until `DIRECTORY/release-<subject>` exists;
the worker closes when `DIRECTORY/close-<ID>` does.
"""

import asyncio
import os
import sys
from pathlib import Path

from loopwright.adapters.dispatch.dbos import DbosEngine
from loopwright.core.rows.model import Leg


async def _see(path: Path) -> None:
    while not path.exists():
        await asyncio.sleep(0.02)


async def main(url: str, worker_id: str, slots: int, directory: Path, version: str) -> None:
    log = os.open(directory / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def say(what: str, leg: str = "-") -> None:
        os.write(log, f"{what} {worker_id} {leg}\n".encode())

    async def execute(leg: Leg) -> None:
        say("begun", leg.subject)
        try:
            await _see(directory / f"release-{leg.subject}")
        except asyncio.CancelledError:
            say("dropped", leg.subject)
            raise
        say("ended", leg.subject)

    def on_error(leg: Leg, error: BaseException) -> None:
        say(f"error:{type(error).__name__}", leg.subject)

    engine = DbosEngine(url, version=version, on_error=on_error, poll_s=0.03, watch_s=0.1)
    await engine.launch(execute, worker_id=worker_id, slots=slots)
    say("launched")
    await _see(directory / f"close-{worker_id}")
    await engine.close()
    say("closed")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]), sys.argv[5]))
