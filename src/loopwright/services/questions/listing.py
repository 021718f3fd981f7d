"""List the questions that wait for an answer, or show one."""

from loopwright.engine.views.question_views import QuestionView, find_question, question_view
from loopwright.engine.views.question_views import list_questions as _list
from loopwright.services.homes.read_only_home import glancing, project_here

__all__ = ["QuestionView", "list_questions", "show_question"]


def list_questions(*, everything: bool = False) -> tuple[QuestionView, ...]:
    """Return the open questions of this repository; `everything` adds other repositories and settled ones."""
    project = None if everything else project_here()
    with glancing() as look:
        return tuple(look.store.read_sync(lambda tx: _list(tx, project_path=project, closed=everything)))


def show_question(question: str) -> QuestionView:
    """Return one question; an id or the beginning of one names it."""
    with glancing() as look:
        return look.store.read_sync(lambda tx: question_view(tx, find_question(tx, question)))
