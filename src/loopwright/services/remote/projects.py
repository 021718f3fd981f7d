"""Projects: list and look at them."""

from dataclasses import dataclass

from loopwright.core.rows.model import Loop, Plan, Project
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.access import Caller
from loopwright.core.values.states import LoopState, QuestionState
from loopwright.ports import Tx
from loopwright.services.homes.session import Session
from loopwright.services.remote.seen import seen_project


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectView:
    """A project with counts of its loops, plans and questions."""

    project: Project
    loops: int
    running: int
    plans: int
    open_questions: int


async def list_projects(at: Session, caller: Caller) -> tuple[ProjectView, ...]:
    """Return the projects that the caller may see, by name."""

    def load(tx: Tx) -> tuple[ProjectView, ...]:
        rows = [one for one in tx.find(Project, order_by=("name",)) if caller.sees(one.id)]
        return tuple(_view(tx, one) for one in rows)

    return await at.home.store.read(load)


async def get_project(at: Session, caller: Caller, project_id: str) -> ProjectView:
    """Return one project."""
    return await at.home.store.read(lambda tx: _view(tx, seen_project(tx, caller, project_id)))


def _view(tx: Tx, project: Project) -> ProjectView:
    return ProjectView(
        project=project,
        loops=tx.count(Loop, project_id=project.id),
        running=tx.count(Loop, project_id=project.id, state=LoopState.RUNNING),
        plans=tx.count(Plan, project_id=project.id),
        open_questions=tx.count(Question, project_id=project.id, state=QuestionState.OPEN),
    )
