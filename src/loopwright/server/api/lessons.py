"""Lessons for the agents of a project."""

from datetime import datetime
from http import HTTPStatus

from fastapi import APIRouter
from pydantic import BaseModel, Field

from loopwright.server.context import Admin, Home, Operator, Reader
from loopwright.server.shapes import SnakeRequest
from loopwright.services.remote import lessons
from loopwright.services.remote.lessons import LessonState, LessonView

router = APIRouter(prefix="/api", tags=["lessons"])


class LessonDocument(BaseModel):
    """A lesson, with how often the first attempt passed with it and without."""

    id: str
    project_id: str
    state: LessonState
    text: str
    version: int
    signature: str
    files: list[str]
    task_type: str
    evidence: list[str]
    learned_from: str = Field(description="The lesson of another project that it was copied from.")
    reason: str
    proposed_by: str
    decided_by: str
    created_at: datetime
    expires_at: datetime | None
    with_passed: int
    with_all: int
    without_passed: int
    without_all: int
    lift: float | None = Field(description="By how much more often attempts pass with it.")
    margin: float | None = Field(description="By how much the lift may be wrong.")
    confidence: float = Field(description="How certain it is that the lesson helps, from 0 to 1.")
    other_projects: int = Field(description="How many other projects had the same failure.")
    diff: str = Field(
        description="What approving it adds to the prompts of agents; empty unless it is PROPOSED."
    )


class LessonList(BaseModel):
    """Some lessons."""

    lessons: list[LessonDocument]


class NewLesson(SnakeRequest):
    """A lesson to add."""

    text: str = Field(min_length=1, max_length=2000)
    files: list[str] = Field(default_factory=list, max_length=20)
    task_type: str = Field(default="", max_length=100)


class ApproveLesson(SnakeRequest):
    """How to approve it."""

    text: str | None = Field(default=None, min_length=1, max_length=2000, description="The new text.")


class PromoteLesson(SnakeRequest):
    """The project to copy it to."""

    project_id: str = Field(max_length=100)


@router.get("/lessons")
async def list_lessons(
    home: Home, caller: Reader, project: str | None = None, everything: bool = False
) -> LessonList:
    """List lessons, the newest first; removed ones only with `everything`."""
    return _list(await lessons.list_lessons(home.at, caller, project, everything=everything))


@router.post("/projects/{project_id}/lessons", status_code=HTTPStatus.CREATED)
async def add_lesson(project_id: str, wanted: NewLesson, home: Home, caller: Admin) -> LessonDocument:
    """Add a lesson, which is on trial at once."""
    return _document(
        await lessons.add_lesson(
            home.at, caller, project_id, wanted.text, files=wanted.files, task_type=wanted.task_type
        )
    )


@router.post("/projects/{project_id}/lessons/propose")
async def propose_lessons(project_id: str, home: Home, caller: Operator) -> LessonList:
    """Draft a lesson for each failure that several tasks had in common."""
    return _list(await lessons.propose_lessons(home.at, caller, project_id))


@router.post("/lessons/{lesson_id}/approve")
async def approve_lesson(
    lesson_id: str, home: Home, caller: Admin, how: ApproveLesson | None = None
) -> LessonDocument:
    """Put a proposed lesson on trial: half of the tasks that it is meant for get it."""
    return _document(await lessons.approve_lesson(home.at, caller, lesson_id, how.text if how else None))


@router.post("/lessons/{lesson_id}/promote", status_code=HTTPStatus.CREATED)
async def promote_lesson(lesson_id: str, where: PromoteLesson, home: Home, caller: Admin) -> LessonDocument:
    """Put a lesson of one project on trial in another one."""
    return _document(await lessons.promote_lesson(home.at, caller, lesson_id, where.project_id))


@router.post("/lessons/{lesson_id}/remove")
async def remove_lesson(lesson_id: str, home: Home, caller: Admin) -> LessonDocument:
    """Remove a lesson from all prompts; a proposed lesson is rejected."""
    return _document(await lessons.remove_lesson(home.at, caller, lesson_id))


def _list(found: tuple[LessonView, ...]) -> LessonList:
    return LessonList(lessons=list(map(_document, found)))


def _document(view: LessonView) -> LessonDocument:
    one, found = view.lesson, view.measured
    return LessonDocument(
        id=one.id,
        project_id=one.project_id,
        state=one.state,
        text=one.text,
        version=one.version,
        signature=one.signature,
        files=list(one.files),
        task_type=one.task_type,
        evidence=list(one.evidence),
        learned_from=one.learned_from,
        reason=one.reason,
        proposed_by=one.proposed_by,
        decided_by=one.decided_by,
        created_at=one.created_at,
        expires_at=one.expires_at,
        with_passed=found.with_passed,
        with_all=found.with_all,
        without_passed=found.without_passed,
        without_all=found.without_all,
        lift=found.lift,
        margin=found.margin,
        confidence=found.confidence,
        other_projects=view.elsewhere,
        diff=view.diff,
    )
