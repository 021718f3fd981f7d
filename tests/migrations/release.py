"""Keep a database of the present schema for ever: `python -m tests.migrations.release`, once per released schema.

The file holds what the upgrade tests look for: one project with a loop, a plan and a task, and three events.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.contracts.store.rows import event, family, task

from loopwright.adapters.store.sql import SqlStore
from loopwright.adapters.store.tables import HEAD


def _fill(tx: Any) -> None:
    plan = family(tx)
    tx.insert(task(plan))
    for name in ("PlanCreated", "TaskCreated", "PlanDispatched"):
        tx.append(event(type=name, plan=plan.id))


def main() -> None:
    """Write the dump."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "loopwright.db"
        store = SqlStore.open(path)
        store.transact_sync("fill", _fill)
        store.close_sync()
        with closing(sqlite3.connect(path)) as raw:
            lines = "\n".join(raw.iterdump()) + "\n"
    target = Path(__file__).parent / "released" / f"{HEAD}.sql"
    target.parent.mkdir(exist_ok=True)
    target.write_text(lines)


if __name__ == "__main__":
    main()
