"""A process that writes into a home: `writer.py ADDRESS NAME`, then on stdin how many transactions to make."""

import sys
from typing import Any

from loopwright.adapters.store.sql import SqlStore
from loopwright.core.rows.events import Event
from loopwright.core.rows.model import Cursor


def count_up(tx: Any) -> int:
    """Raise a shared number by one: loses counts unless transactions are truly one after another."""
    cursor = tx.get(Cursor, "shared")
    if cursor is None:
        tx.insert(Cursor(id="shared", n=1))
        return 1
    return int(tx.update(Cursor, "shared", n=cursor.n + 1).n)


def main(address: str, name: str) -> None:
    store = SqlStore.open(address)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        for n in range(int(line)):

            def write(tx: Any, n: int = n) -> None:
                count_up(tx)
                for part in range(1 + n % 3):
                    tx.append(
                        Event(type="Written", actor=name, plan=f"plan{n % 2}", payload={"n": n, "part": part})
                    )

            store.transact_sync("write", write)
        sys.stdout.write("done\n")
        sys.stdout.flush()
    store.close_sync()


if __name__ == "__main__":
    main(*sys.argv[1:])
