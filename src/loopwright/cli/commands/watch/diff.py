"""`diff`: what a plan, a task or a run changed."""

import asyncio
import os
from pathlib import Path
from typing import Any

from loopwright.cli.screens.changes import Changes, task_span
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console
from loopwright.core.rows.model import Plan, Project, Run, Task
from loopwright.core.values.errors import NotFound
from loopwright.core.values.ids import short_id
from loopwright.core.values.shell_hints import to_type
from loopwright.engine.rows.moves import need
from loopwright.engine.views.overview import run_view
from loopwright.engine.views.views import task_detail
from loopwright.ports import Tx
from loopwright.services.homes.read_only_home import Look, glancing, wanted


def diff(target: str | None = None, /) -> int:
    """Show what a plan or a task changed, as git does.

    Parameters
    ----------
    target
        A plan, a task or a run: an id, the beginning of one, a name, or PLAN/TASK (default: the task that needs you,
        else the one that is running, else the newest plan). Of a task, what landed; before that, its newest attempt.
    """
    with glancing() as look:
        row = look.store.read_sync(lambda tx: wanted(tx, target, verb="diff"))
        path, name, old, new = look.store.read_sync(lambda tx: _span(tx, look, row))
    if old is None or new is None:
        raise NotFound(
            f"{name} has changed nothing yet",
            code="no_changes",
            hint=f"`{to_type('status', name)}` shows how it is going",
        )
    out = console()
    color = out.is_terminal and not os.environ.get("NO_COLOR")
    asyncio.run(Changes(Path(path)).print_diff(old, new, color=color))
    return ExitCode.VERIFIED


def _span(tx: Tx, look: Look[Any], row: Plan | Task | Run) -> tuple[str, str, str | None, str | None]:
    """Return the repository, the name, and the two commits to compare."""
    plan = row if isinstance(row, Plan) else need(tx.get(Plan, row.plan_id), "the plan")
    path = need(tx.get(Project, plan.project_id), "the project").path
    if isinstance(row, Task):
        return path, row.key, *task_span(task_detail(tx, row.id, look.paths))
    if isinstance(row, Run):
        view = run_view(tx, row, look.paths)
        return path, short_id(row.id), view.base_sha, view.tip_sha
    return path, short_id(row.id), row.base_sha, row.result_sha or f"refs/heads/{row.branch}"
