"""Find what a user names, and return it as a view: an overview for a plan, else a task or a run."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from loopwright.core.rows.model import Plan, Run, Task
from loopwright.engine.views.overview import RunView, run_view
from loopwright.services.homes.read_only_home import Look, find_target, glancing, wanted
from loopwright.services.views.plans import Overview, overview

if TYPE_CHECKING:
    from loopwright.services.views.tasks import TaskSeen

__all__ = ["RunView", "look_up", "look_up_obvious"]


def look_up(target: str | None = None, *, everywhere: bool = False) -> "Overview | TaskSeen | RunView":
    """Return the plan, task or run that `target` names; without a name, an overview.

    `everywhere` lists the plans of every repository in an overview.
    """
    with glancing() as look:
        row = None if target is None else look.store.read_sync(lambda tx: find_target(tx, target))
        return _seen(look, row, everywhere=everywhere)


def look_up_obvious(target: str | None, *, tell: Callable[[str], None]) -> "Overview | TaskSeen | RunView":
    """Return what `target` names; without a name, what most needs a look, and `tell` what that is."""
    with glancing() as look:
        return _seen(look, look.store.read_sync(lambda tx: wanted(tx, target, tell=tell)))


def _seen(
    look: Look[Any], row: Plan | Task | Run | None, *, everywhere: bool = False
) -> "Overview | TaskSeen | RunView":
    if isinstance(row, Run):
        view: RunView = look.store.read_sync(lambda tx: run_view(tx, row, look.paths))
        return view
    if isinstance(row, Task):
        # An overview is shown in a moment, and does not need what a task's details need.
        from loopwright.services.views.tasks import task_seen

        seen: TaskSeen = look.store.read_sync(lambda tx: task_seen(tx, look, row))
        return seen
    return overview(look, row, everywhere=everywhere)
