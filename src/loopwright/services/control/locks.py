"""What loops of a project hold, so that they take turns: list it, take a lock, release something."""

from typing import TYPE_CHECKING

from loopwright.engine.people.locks import HoldView, find_hold
from loopwright.engine.people.locks import list_holds as _list
from loopwright.services.homes.read_only_home import find_plan, glancing, project_here

if TYPE_CHECKING:  # to list them needs neither an open home nor its settings
    from loopwright.services.homes.session import Session

__all__ = ["HoldView", "list_holds", "release", "take"]


def list_holds(*, everything: bool = False) -> tuple[HoldView, ...]:
    """Return what the loops of this repository hold and wait for; `everything` adds other repositories."""
    project = None if everything else project_here()
    with glancing() as look:
        return tuple(look.store.read_sync(lambda tx: _list(tx, project_path=project)))


async def take(at: "Session", lock: str, plan: str) -> str:
    """Ask for a named lock for a plan; return the result."""
    # To list what is held needs no open home.
    from loopwright.services.control.sending import send

    plan_id = await at.home.store.read(lambda tx: find_plan(tx, plan).id)
    return (await send(at, "take_lock", plan_id, {"lock": lock})).result


async def release(at: "Session", hold: str) -> str:
    """Take files or a lock from a loop, or let a waiting one continue; return the result."""
    # As in `take`.
    from loopwright.services.control.sending import send

    found = await at.home.store.read(lambda tx: find_hold(tx, hold))
    return (await send(at, "release_hold", found.plan_id, {"hold": found.id})).result
