"""Lessons as rows: given to attempts, measured by their results, and removed if they do not help."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any, Final

from loopwright.core.healing import lessons as policy
from loopwright.core.healing.lessons import Judgement
from loopwright.core.rows.events import happened
from loopwright.core.rows.healing_rows import AttemptFailure
from loopwright.core.rows.lesson_rows import Lesson, LessonUse
from loopwright.core.rows.model import Attempt, Plan, Task
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import LESSON, AttemptState, LessonState, step
from loopwright.ports import Ids, Tx

MACHINE: Final = "loopwright"
LASTS: Final = timedelta(days=90)
"""How long a lesson is used before the user has to add it again."""
EXPIRED: Final = f"it ended after {LASTS.days} days; add it again if it is still true"
_TOLD: Final = (LessonState.TRIED, LessonState.KEPT)
_MOST: Final = 1_000
"""The most failures of a project that are compared."""


def meant_for(tx: Tx, plan: Plan, task: Task, attempt: Attempt) -> list[tuple[Lesson, LessonUse | None]]:
    """Return the lessons that match an attempt, each with its use in this task."""
    return _meant_for(tx, _lessons(tx, plan.project_id), task, attempt)


def _lessons(tx: Tx, project_id: str) -> list[Lesson]:
    return tx.find(Lesson, project_id=project_id, state=_TOLD, order_by=("created_at",))


def _meant_for(
    tx: Tx, lessons: Sequence[Lesson], task: Task, attempt: Attempt
) -> list[tuple[Lesson, LessonUse | None]]:
    if not lessons:
        return []
    before = tx.find(AttemptFailure, task_id=task.id, order_by=("-n",), limit=1) if attempt.n > 1 else []
    signature = before[0].signature if before else ""
    found: list[tuple[Lesson, LessonUse | None]] = []
    for one in lessons:
        if one.expires_at is not None and one.expires_at <= tx.now():
            continue
        uses = tx.find(LessonUse, lesson_id=one.id, version=one.version, task_id=task.id)
        if uses or policy.matches(one, task, signature):
            found.append((one, uses[0] if uses else None))
    return found


def told(tx: Tx, plan: Plan, task: Task, attempt: Attempt) -> tuple[str, ...]:
    """Return the texts of an attempt's lessons, without those that it does not get for comparison."""
    meant = meant_for(tx, plan, task, attempt)
    given = [one for one, use in meant if (use.given if use else not policy.goes_without(one, task.id))]
    return tuple(one.text for one in policy.told(given))


def note_uses(tx: Tx, ids: Ids, plan: Plan, task: Task, attempt: Attempt) -> None:
    """Record which lessons an attempt counts for, once for each task."""
    lessons = _lessons(tx, plan.project_id)
    for one in lessons:
        if one.expires_at is not None and one.expires_at <= tx.now():
            move(tx, one, LessonState.REMOVED, EXPIRED)
    meant = _meant_for(tx, lessons, task, attempt)
    given = {
        one.id for one in policy.told([one for one, _ in meant if not policy.goes_without(one, task.id)])
    }
    for lesson, use in meant:
        without = policy.goes_without(lesson, task.id)
        # A lesson without space in the prompt is neither given nor compared.
        if use is None and (without or lesson.id in given):
            tx.insert(
                LessonUse(
                    id=ids(Kind.LESSON_USE),
                    lesson_id=lesson.id,
                    version=lesson.version,
                    project_id=plan.project_id,
                    plan_id=plan.id,
                    task_id=task.id,
                    attempt_id=attempt.id,
                    given=not without,
                    created_at=tx.now(),
                )
            )


def told_now(tx: Tx, project_id: str) -> tuple[str, ...]:
    """Return the lessons that agents of a project may get now."""
    return tuple(
        one.text for one in _lessons(tx, project_id) if one.expires_at is None or one.expires_at > tx.now()
    )


def failed_elsewhere(tx: Tx, found: Collection[Lesson]) -> dict[str, int]:
    """Return in how many other projects the failure of each lesson happened: only this number leaves a project."""
    signatures = sorted({one.signature for one in found if one.signature})
    where: dict[str, set[str]] = {}
    for one in tx.find(AttemptFailure, signature=signatures) if signatures else ():
        where.setdefault(one.signature, set()).add(one.project_id)
    return {one.id: len(where.get(one.signature, set()) - {one.project_id}) for one in found}


def settle(tx: Tx, attempt: Attempt) -> None:
    """Record the result of an attempt, and remove or keep the lessons that its measurement decides."""
    for use in tx.find(LessonUse, attempt_id=attempt.id, passed=None):
        if attempt.state not in (AttemptState.LANDED, AttemptState.REJECTED):
            tx.delete(LessonUse, use.id)  # it was never judged, so the task's next attempt counts
            continue
        tx.update(LessonUse, use.id, passed=attempt.state is AttemptState.LANDED)
        lesson = tx.get(Lesson, use.lesson_id)
        if lesson is None or lesson.version != use.version:
            continue
        found = measure(tx, lesson)
        match policy.judge(lesson, found):
            case Judgement.KEEP:
                move(tx, lesson, LessonState.KEPT, f"measured on {found.judged} tasks: {_lift(found)}")
            case Judgement.REMOVE:
                why = f"it did not help on {found.judged} tasks: {_lift(found)}"
                move(tx, lesson, LessonState.REMOVED, why)
            case Judgement.CONTINUE:
                pass


def measure(tx: Tx, lesson: Lesson) -> policy.Measured:
    """Return the measurement of a lesson's current version."""
    return policy.measured(tx.find(LessonUse, lesson_id=lesson.id, version=lesson.version))


def _lift(found: policy.Measured) -> str:
    return (
        f"{found.with_passed} of {found.with_all} passed with it, "
        f"{found.without_passed} of {found.without_all} without"
    )


def move(
    tx: Tx, lesson: Lesson, target: LessonState, reason: str, actor: str = MACHINE, **changes: Any
) -> Lesson:
    """Move a lesson to another state, and record it."""
    step("lesson", LESSON, lesson.id, lesson.state, target)
    moved = tx.update(
        Lesson,
        lesson.id,
        expect={"state": lesson.state},
        state=target,
        reason=reason,
        decided_by=actor,
        **changes,
    )
    tell(tx, moved, f"lesson_{target.value.lower()}", actor)
    return moved


def tell(tx: Tx, lesson: Lesson, event: str, actor: str) -> None:
    """Record an event of a lesson."""
    about = lesson.project_id
    tx.append(
        happened(event, actor, project_id=about, lesson=lesson.id, text=lesson.text, reason=lesson.reason)
    )


def propose(tx: Tx, ids: Ids, project_id: str, **which: str) -> list[Lesson]:
    """Propose a lesson for each failure that several tasks of a project had in common, or for `which` of them."""
    newest = {"order_by": ("-created_at",), "limit": _MOST}
    found = tx.find(AttemptFailure, project_id=project_id, **which, **newest)  # type: ignore[arg-type]
    known = {one.signature for one in tx.find(Lesson, project_id=project_id) if one.signature}
    tasks = {one.task_id for one in found}
    passed = {one.task_id: one for one in tx.find(Attempt, task_id=tasks, state=AttemptState.LANDED)}
    made = []
    for draft in policy.drafts(list(reversed(found)), passed, known):
        lesson = Lesson(
            id=ids(Kind.LESSON),
            project_id=project_id,
            state=LessonState.PROPOSED,
            text=draft.text,
            signature=draft.signature,
            files=draft.files,
            evidence=draft.evidence,
            proposed_by=MACHINE,
            created_at=tx.now(),
        )
        tx.insert(lesson)
        tell(tx, lesson, "lesson_proposed", MACHINE)
        made.append(lesson)
    return made
