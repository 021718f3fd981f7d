"""How long one look at a whole plan takes, in a process of its own: `python -m bench.looked HOME PLAN`.

As `loopwright status` looks: a process that looks twice knows most texts of a small plan by then, and few of a large
one.
"""

import asyncio
import sys
import time
from pathlib import Path

from loopwright.adapters.store.sql import SqlStore
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.views.views import plan_view


async def main(home: Path, plan_id: str) -> None:
    """Print the milliseconds."""
    store = SqlStore.open(home / "loopwright.db")
    began = time.monotonic()
    store.read_sync(lambda tx: plan_view(tx, plan_id, HomePaths(root=home)))
    sys.stdout.write(f"{(time.monotonic() - began) * 1000}\n")
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
