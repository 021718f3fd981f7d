"""What changed in the user's own checkout while agents ran, with the commands that undo it, for the screen."""

from dataclasses import dataclass

from loopwright.core.receipts.events import CHECKOUT_CHANGED, WHOSE
from loopwright.ports import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class StrayView:
    """One look at the checkout that found it changed."""

    run: str
    whose: str
    """One of `core.receipts.events.WHOSE`."""
    changes: tuple[str, ...]
    undo: tuple[str, ...]
    """Commands of a shell, or comments where only a person can tell what to undo."""

    @property
    def by_whom(self) -> str:
        """What is known about who made the changes."""
        return WHOSE[self.whose]


def stray_views(tx: Tx, plan_id: str, task_id: str | None = None) -> tuple[StrayView, ...]:
    """Return what was noticed during a plan, or during one of its tasks, in order."""
    events = tx.events(plan=plan_id, task=task_id, types=(CHECKOUT_CHANGED,))
    return tuple(
        StrayView(
            run=one.run or "",
            whose=one.payload["whose"],
            changes=tuple(one.payload["changes"]),
            undo=tuple(one.payload["undo"]),
        )
        for one in events
    )
