"""The lessons of a simulated project: drafted, given, measured and removed by the product's own rules.

A person approves every draft, which is the worst case for a useless one.
"""

from collections import defaultdict
from dataclasses import dataclass, field, replace

from bench.worth.rows import AT
from loopwright.core.healing import lessons
from loopwright.core.healing.diagnosis import Seen, signature, vote
from loopwright.core.healing.lessons import Judgement
from loopwright.core.rows.healing_rows import AttemptFailure
from loopwright.core.rows.lesson_rows import Lesson, LessonUse
from loopwright.core.rows.model import Attempt, Task
from loopwright.core.values.states import LessonState

_MOST = 200
"""So many of the newest failures are looked at for what they have in common."""


@dataclass
class Lessons:
    """What one project has learned so far."""

    lessons: dict[str, Lesson] = field(default_factory=dict)
    uses: dict[str, dict[str, LessonUse]] = field(default_factory=lambda: defaultdict(dict))
    """Of each lesson, by task."""
    failures: list[AttemptFailure] = field(default_factory=list)
    passed: dict[str, Attempt] = field(default_factory=dict)
    _before: dict[str, str] = field(default_factory=dict)
    """How each task failed last."""

    def told(self, task: Task, attempt: Attempt) -> tuple[Lesson, ...]:
        """Return the lessons that an attempt is told, and count it for each that is meant for it."""
        given = []
        for one in self.lessons.values():
            use = self.uses[one.id].get(task.id)
            if use is None and lessons.matches(one, task, self._before.get(task.id, "")):
                use = self._use(one, task, attempt)
            if use is not None and use.given and one.state is not LessonState.REMOVED:
                given.append(one)
        return lessons.told(given)

    def _use(self, lesson: Lesson, task: Task, attempt: Attempt) -> LessonUse:
        use = LessonUse(
            id=f"{lesson.id} {task.id}",
            lesson_id=lesson.id,
            version=lesson.version,
            project_id=lesson.project_id,
            plan_id=task.plan_id,
            task_id=task.id,
            attempt_id=attempt.id,
            given=not lessons.goes_without(lesson, task.id),
            created_at=AT,
        )
        self.uses[lesson.id][task.id] = use
        return use

    def landed(self, attempt: Attempt) -> None:
        """Note an attempt that passed."""
        self.passed[attempt.task_id] = attempt
        self._settle(attempt, passed=True)

    def failed(self, attempt: Attempt, seen: Seen) -> None:
        """Note an attempt that failed, and draft lessons."""
        signed = signature(seen)
        self.failures.append(
            AttemptFailure(
                id=attempt.id,
                project_id="project",
                plan_id=attempt.plan_id,
                task_id=attempt.task_id,
                attempt_id=attempt.id,
                n=attempt.n,
                failure=seen.tried.failure,
                cause=vote(seen),
                signature=signed.id,
                step=signed.step,
                test=signed.test,
                file=signed.file,
                error=signed.error,
                created_at=AT,
            )
        )
        self._before[attempt.task_id] = signed.id
        self._settle(attempt, passed=False)
        known = {one.signature for one in self.lessons.values()}
        if signed.id in known:
            return
        for draft in lessons.drafts(self.failures[-_MOST:], self.passed, known):
            lesson = Lesson(
                id=f"lesson_{len(self.lessons)}_{attempt.id}",
                project_id="project",
                state=LessonState.TRIED,
                text=draft.text,
                signature=draft.signature,
                files=draft.files,
                evidence=draft.evidence,
                proposed_by="loopwright",
                created_at=AT,
            )
            self.lessons[lesson.id] = lesson

    def _settle(self, attempt: Attempt, *, passed: bool) -> None:
        for lesson_id, uses in self.uses.items():
            use = uses.get(attempt.task_id)
            if use is not None and use.attempt_id == attempt.id:
                uses[attempt.task_id] = replace(use, passed=passed)
                self._judge(lesson_id)

    def _judge(self, lesson_id: str) -> None:
        lesson = self.lessons[lesson_id]
        match lessons.judge(lesson, lessons.measured(self.uses[lesson_id].values())):
            case Judgement.KEEP:
                self.lessons[lesson_id] = replace(lesson, state=LessonState.KEPT)
            case Judgement.REMOVE:
                self.lessons[lesson_id] = replace(lesson, state=LessonState.REMOVED)
            case Judgement.CONTINUE:
                pass
