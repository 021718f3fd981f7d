"""Lessons for the agents of a project: list, add, draft, approve and remove them, and copy them to another project."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loopwright.adapters.machine.host import new_id
from loopwright.adapters.processes.redaction import redacted
from loopwright.core.healing import lessons as policy
from loopwright.core.healing.lessons import Measured
from loopwright.core.rows.lesson_rows import Lesson
from loopwright.core.values.access import Caller, Scope
from loopwright.core.values.errors import IllegalTransition, NotAllowed, NotFound, Refused, UserError
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import LessonState
from loopwright.engine.rows import lessons as rows
from loopwright.ports import Tx
from loopwright.services.homes.session import Session
from loopwright.services.remote.seen import seen_project, seen_where

__all__ = ["LessonState", "LessonView"]

_MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonView:
    """A lesson, with its measurement."""

    lesson: Lesson
    measured: Measured
    elsewhere: int
    """In how many other projects its failure happened."""
    diff: str
    """What it would add to prompts; empty if it is no longer proposed."""


async def list_lessons(
    at: Session, caller: Caller, project_id: str | None = None, *, everything: bool = False
) -> tuple[LessonView, ...]:
    """Return the lessons of a project, or of all: the newest first; removed ones only with `everything`."""

    def load(tx: Tx) -> tuple[LessonView, ...]:
        where: Mapping[str, Any] = seen_where(tx, caller, project_id)
        shown = [one for one in LessonState if everything or one is not LessonState.REMOVED]
        found = tx.find(Lesson, state=shown, order_by=("-created_at",), limit=_MOST, **where)
        return _views(tx, found)

    return await at.home.store.read(load)


async def add_lesson(
    at: Session,
    caller: Caller,
    project_id: str,
    text: str,
    *,
    files: Collection[str] = (),
    task_type: str = "",
) -> LessonView:
    """Add your own lesson: it is on trial at once."""
    _check(caller)
    said = _text(text)

    def insert(tx: Tx) -> LessonView:
        project = seen_project(tx, caller, project_id)
        lesson = Lesson(
            id=new_id(Kind.LESSON),
            project_id=project.id,
            state=LessonState.PROPOSED,
            text=said,
            files=tuple(files),
            task_type=task_type,
            proposed_by=caller.actor,
            created_at=tx.now(),
        )
        tx.insert(lesson)
        rows.tell(tx, lesson, "lesson_proposed", caller.actor)
        return _view(tx, _approved(tx, lesson, caller))

    return await at.home.store.transact("lesson.add", insert)


async def propose_lessons(at: Session, caller: Caller, project_id: str) -> tuple[LessonView, ...]:
    """Draft a lesson for each failure that several tasks of a project had in common."""
    _check(caller, Scope.OPERATE)

    def draft(tx: Tx) -> tuple[LessonView, ...]:
        project = seen_project(tx, caller, project_id)
        return _views(tx, rows.propose(tx, new_id, project.id))

    return await at.home.store.transact("lesson.propose", draft)


async def approve_lesson(at: Session, caller: Caller, lesson_id: str, text: str | None = None) -> LessonView:
    """Put a proposed lesson on trial, with its own text or with this one."""
    _check(caller)

    def approve(tx: Tx) -> LessonView:
        lesson = _seen(tx, caller, lesson_id)
        if text is not None and (said := _text(text)) != lesson.text:
            lesson = tx.update(Lesson, lesson.id, text=said, version=lesson.version + 1)
        return _view(tx, _approved(tx, lesson, caller))

    return await at.home.store.transact("lesson.approve", approve)


async def diff_lesson(at: Session, caller: Caller, lesson_id: str, text: str | None = None) -> str:
    """Return as a diff what approving a lesson adds to prompts, with its own text or with this one."""

    def load(tx: Tx) -> str:
        lesson = _seen(tx, caller, lesson_id)
        if lesson.state is not LessonState.PROPOSED:
            raise _in_another_state(lesson)
        return policy.proposal(rows.told_now(tx, lesson.project_id), _text(text or lesson.text))

    return await at.home.store.read(load)


async def promote_lesson(at: Session, caller: Caller, lesson_id: str, project_id: str) -> LessonView:
    """Put a lesson of one project on trial in another one, where its measurement begins again."""
    _check(caller)

    def promote(tx: Tx) -> LessonView:
        known, project = _seen(tx, caller, lesson_id), seen_project(tx, caller, project_id)
        if known.state not in (LessonState.TRIED, LessonState.KEPT):
            raise _in_another_state(known)
        there = tx.find(Lesson, project_id=project.id)
        if any(_is_same(known, one) for one in there if one.state is not LessonState.REMOVED):
            raise Refused(
                f"the project {project.name} has this lesson already",
                code="lesson_known",
                hint="`loopwright lessons` lists the lessons of a project",
            )
        lesson = Lesson(
            id=new_id(Kind.LESSON),
            project_id=project.id,
            state=LessonState.PROPOSED,
            text=known.text,
            signature=known.signature,
            files=known.files,
            task_type=known.task_type,
            learned_from=known.id,
            proposed_by=caller.actor,
            created_at=tx.now(),
        )
        tx.insert(lesson)
        rows.tell(tx, lesson, "lesson_proposed", caller.actor)
        return _view(tx, _approved(tx, lesson, caller))

    return await at.home.store.transact("lesson.promote", promote)


def _is_same(known: Lesson, other: Lesson) -> bool:
    return other.id == known.id or other.learned_from == known.id or other.text == known.text


async def remove_lesson(at: Session, caller: Caller, lesson_id: str, reason: str = "") -> LessonView:
    """Remove a lesson from prompts; a proposed one is rejected."""
    _check(caller)

    def remove(tx: Tx) -> LessonView:
        lesson = _seen(tx, caller, lesson_id)
        return _view(tx, _moved(tx, lesson, LessonState.REMOVED, reason or "you removed it", caller))

    return await at.home.store.transact("lesson.remove", remove)


def _approved(tx: Tx, lesson: Lesson, caller: Caller) -> Lesson:
    now = tx.now()
    changes = {"tried_since": now, "expires_at": now + rows.LASTS}
    return _moved(tx, lesson, LessonState.TRIED, "on trial", caller, **changes)


def _moved(
    tx: Tx, lesson: Lesson, target: LessonState, reason: str, caller: Caller, **changes: Any
) -> Lesson:
    try:
        return rows.move(tx, lesson, target, reason, caller.actor, **changes)
    except IllegalTransition as no:
        raise _in_another_state(lesson) from no


def _in_another_state(lesson: Lesson) -> Refused:
    return Refused(
        f"the lesson is {lesson.state.value}",
        code="lesson_state_wrong",
        hint="`loopwright lessons --all` shows the state of each lesson, and what can be done with it",
    )


def _text(said: str) -> str:
    """Return a text as it is in prompts: bounded, and without secrets."""
    if clean := policy.cleaned(redacted(said, ())):
        return clean
    raise UserError("a lesson needs a text", code="lesson_empty", hint="say what agents should know")


def _check(caller: Caller, scope: Scope = Scope.ADMIN) -> None:
    """Refuse what would let an agent write its own instructions."""
    if not caller.may(scope):
        raise NotAllowed(
            f"a token with the scope `{scope.value}` is needed to change what agents read",
            code="lessons_need_admin",
        )


def _seen(tx: Tx, caller: Caller, lesson_id: str) -> Lesson:
    found = tx.get(Lesson, lesson_id)
    if found is None or not caller.sees(found.project_id):
        raise NotFound(f"there is no lesson {lesson_id}", code="lesson_not_found")
    return found


def _view(tx: Tx, lesson: Lesson) -> LessonView:
    (view,) = _views(tx, [lesson])
    return view


def _views(tx: Tx, found: Sequence[Lesson]) -> tuple[LessonView, ...]:
    proposed = {one.project_id for one in found if one.state is LessonState.PROPOSED}
    told = {project: rows.told_now(tx, project) for project in proposed}
    elsewhere = rows.failed_elsewhere(tx, found)
    return tuple(
        LessonView(
            lesson=one,
            measured=rows.measure(tx, one),
            elsewhere=elsewhere[one.id],
            diff=policy.proposal(told[one.project_id], one.text) if one.state is LessonState.PROPOSED else "",
        )
        for one in found
    )
