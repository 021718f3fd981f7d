"""What the folders around a plan show, which its next steps depend on."""

from pathlib import Path

from loopwright.engine.views.next_steps import Known, planned_file
from loopwright.engine.views.views import PlanView
from loopwright.services.homes.read_only_home import project_here
from loopwright.services.homes.repository import has_branch


def known_about(view: PlanView, *, is_worked_on: bool = False) -> Known:
    """Look at the plan's repository, and at the current folder."""
    ended = view.status in ("VERIFIED", "FAILED")
    file = planned_file(view)
    return Known(
        is_worked_on=is_worked_on,
        has_branch=ended and has_branch(Path(view.path), view.branch),
        is_elsewhere=view.path not in (project_here() or ()),
        has_plan_file=bool(file) and (Path(view.path) / file).exists(),
    )
