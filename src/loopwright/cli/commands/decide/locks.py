"""`locks`: files and named locks that loops hold, so that they take turns."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from cyclopts import App
from rich.markup import escape

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import columns
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.ids import short_id
from loopwright.core.values.wording import listed
from loopwright.services.control import locks as service
from loopwright.services.control.locks import HoldView

if TYPE_CHECKING:
    from loopwright.services.homes.session import Session

app = App(
    name="locks",
    help="List files and locks that loops hold or wait for, take a lock, or release something.",
    help_format="plaintext",
)


@app.default
def locks(*, all: bool = False, json: bool = False) -> int:
    """List what the loops of this repository hold and wait for (outside of one, of all).

    Parameters
    ----------
    all
        List those of every repository.
    json
        Print them as JSON.
    """
    found = service.list_holds(everything=all)
    if json:
        print_json({"locks": found})
        return ExitCode.VERIFIED
    if not found:
        console().print("no loop holds files or a lock")
    for line in columns(list(map(_line, found)), indent=""):
        console().print(escape(line))
    return ExitCode.VERIFIED


@app.command
def take(lock: str, plan: str, /) -> int:
    """Give a plan a named lock. Another plan of the project that takes it waits until this one ends.

    Parameters
    ----------
    lock
        The name of the lock.
    plan
        The plan: its id, or the beginning of it.
    """
    return asyncio.run(_send(lambda at: service.take(at, lock, plan)))


@app.command
def release(hold: str, /) -> int:
    """Take files or a lock from a loop. A loop that waits for them continues without them.

    Parameters
    ----------
    hold
        Which: its id, the beginning of it, or the name of a lock.
    """
    return asyncio.run(_send(lambda at: service.release(at, hold)))


async def _send(work: "Callable[[Session], Awaitable[str]]") -> int:
    # Listing them loads neither the settings nor a worker's parts.
    from loopwright.services.homes.session import session

    async with session() as at:
        console().print(escape(await work(at)))
    return ExitCode.VERIFIED


def _line(one: HoldView) -> tuple[str, ...]:
    what = f"lock {one.lock}" if one.lock else listed(one.paths, 3)
    return (short_id(one.id), one.state.lower(), one.loop, what, one.reason)
