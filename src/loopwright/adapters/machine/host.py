"""What this machine is: its lasting id, this boot, and real time."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

from loopwright.core.values.ids import Kind, make


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        """Return the present moment, aware UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that count on while the machine sleeps, where the system has such a clock."""
        clock = getattr(time, "CLOCK_BOOTTIME", None)
        return time.clock_gettime(clock) if clock is not None else time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        import asyncio  # what only looks has no use for it, and it is slow to load

        await asyncio.sleep(seconds)


def new_id(kind: str) -> str:
    """Draw a new id."""
    return make(Kind(kind), uuid4())


def host_id(home: Path) -> str:
    """Return the id of this machine's share of a home, drawn once and kept beside the run files it guards."""
    path = home / "host-id"
    home.mkdir(parents=True, exist_ok=True)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        text = path.read_text().strip()
        if text:
            return str(UUID(text))
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)  # a kill came between creating and writing
    drawn = str(uuid4())
    with os.fdopen(fd, "w") as file:
        file.write(drawn + "\n")
        file.flush()
        os.fsync(file.fileno())
    return drawn


def boot_id() -> str:
    """Identify this boot, so that a process of an earlier one is never taken for alive."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return f"booted-{int(time.time() - time.monotonic())}"
