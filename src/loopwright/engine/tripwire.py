"""Notices when the user's own checkout changed while an agent ran, and keeps the evidence."""

import logging

from loopwright.core.events import happened
from loopwright.core.model import Attempt, Plan, Run
from loopwright.engine.moves import MACHINE
from loopwright.engine.world import World
from loopwright.ports import Repository, Tripwire, Tx

log = logging.getLogger(__name__)


async def look_again(
    world: World, repository: Repository, before: Tripwire, *, plan: Plan, attempt: Attempt, run: Run
) -> tuple[str, ...]:
    """Compare the checkout with how it was; record and return what differs.

    A person may well edit their own checkout meanwhile, so a difference is reported, not punished.
    """
    strays = repository.stray(before, await repository.tripwire())
    if not strays:
        return ()
    patch = world.paths.kept_patches() / f"{run.id}.patch"
    kept = await repository.stray_patch(patch)
    why = "; ".join(strays[:5]) + (" …" if len(strays) > 5 else "") + (f" (kept in {patch})" if kept else "")
    log.warning("your checkout changed while an agent was running", extra={"why": why})

    def record(tx: Tx) -> None:
        tx.append(
            happened(
                "checkout_changed",
                MACHINE,
                plan=plan,
                attempt=attempt,
                run=run,
                changes=list(strays[:50]),
                patch=str(patch.relative_to(world.paths.root)) if kept else None,
            )
        )

    await world.store.transact("checkout.changed", record)
    return strays
