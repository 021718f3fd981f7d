"""Which lessons an attempt gets, how they are drafted from failures, and when they are removed.

A lesson on trial is given to half of the tasks that it matches. Whether the first attempt passes its checks
is compared between the two halves at fixed moments, so that the chance to keep a useless lesson is at most
`ERROR` (Hoeffding's inequality, divided among the moments). A lesson without a shown benefit after `MOST`
tasks is removed.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from enum import StrEnum
from hashlib import sha256
from math import exp, log, sqrt
from typing import Final

from loopwright.core.rows.healing_rows import AttemptFailure
from loopwright.core.rows.lesson_rows import Lesson, LessonUse
from loopwright.core.rows.model import Attempt, Task
from loopwright.core.values.globs import any_covers
from loopwright.core.values.states import LessonState
from loopwright.core.values.wording import counted, listed, one_line, shortened, visible

EVERY: Final = 25
"""A lesson is judged again after this many judged tasks."""
MOST: Final = 200
"""The most tasks on which a lesson is tried before it must show a benefit."""
ERROR: Final = 0.1
"""The chance to keep a useless lesson."""
LEAST: Final = 50
"""From this many judged tasks on, a lesson without an apparent benefit is removed."""
KEPT_SHARE: Final = 10
"""Percent of tasks that do not get a proven lesson, so that its measurement continues."""
TRIAL_SHARE: Final = 50
LONGEST: Final = 600
"""The most characters of one lesson."""
BUDGET: Final = 1_500
"""The most characters of all lessons in one prompt."""
_LOOKS: Final = MOST // EVERY
TASKS: Final = 2
"""How many tasks must fail in the same way before a lesson is proposed."""
_FILES: Final = 5
_TOLD: Final = frozenset({LessonState.TRIED, LessonState.KEPT})


class Judgement(StrEnum):
    """The conclusion about a lesson."""

    CONTINUE = "continue"
    KEEP = "keep"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How often the first attempt passed, with and without a lesson."""

    with_passed: int = 0
    with_all: int = 0
    without_passed: int = 0
    without_all: int = 0

    @property
    def judged(self) -> int:
        """How many tasks were judged."""
        return self.with_all + self.without_all

    @property
    def lift(self) -> float | None:
        """How much more often attempts pass with the lesson; None while one side has none."""
        if not (self.with_all and self.without_all):
            return None
        return self.with_passed / self.with_all - self.without_passed / self.without_all

    @property
    def margin(self) -> float | None:
        """The possible error of the lift, at the error rate of this module."""
        if not (self.with_all and self.without_all):
            return None
        return sqrt(log(_LOOKS / ERROR) / 2 * (1 / self.with_all + 1 / self.without_all))

    @property
    def confidence(self) -> float:
        """How certain it is that the lesson helps, from 0 to 1; only judged tasks change it.

        It is above 1 - `ERROR` exactly if the lift is larger than the margin.
        """
        if self.lift is None or self.lift <= 0:
            return 0.0
        by_chance = _LOOKS * exp(-2 * self.lift**2 / (1 / self.with_all + 1 / self.without_all))
        return max(0.0, 1 - by_chance)


def measured(uses: Iterable[LessonUse]) -> Measured:
    """Count the results of the tasks that a lesson matches."""
    judged = [one for one in uses if one.passed is not None]
    given = [one for one in judged if one.given]
    without = [one for one in judged if not one.given]
    return Measured(
        with_passed=sum(one.passed is True for one in given),
        with_all=len(given),
        without_passed=sum(one.passed is True for one in without),
        without_all=len(without),
    )


def judge(lesson: Lesson, found: Measured) -> Judgement:
    """Return what follows from a lesson's measurement; nothing does between two of its fixed moments."""
    lift, margin = found.lift, found.margin
    if lesson.state not in _TOLD or lift is None or margin is None or found.judged % EVERY:
        return Judgement.CONTINUE
    if lesson.state is LessonState.TRIED and lift > margin and found.judged <= MOST:
        return Judgement.KEEP
    if found.judged >= LEAST and lift <= 0:
        return Judgement.REMOVE
    if lesson.state is LessonState.TRIED and found.judged >= MOST:
        return Judgement.REMOVE
    return Judgement.CONTINUE


def goes_without(lesson: Lesson, task_id: str) -> bool:
    """Return whether a task does not get a lesson: the answer is the same every time."""
    share = TRIAL_SHARE if lesson.state is LessonState.TRIED else KEPT_SHARE
    digest = sha256(f"{lesson.id} {lesson.version} {task_id}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % 100 < share


def matches(lesson: Lesson, task: Task, before: str) -> bool:
    """Return whether a lesson matches a task whose last attempt failed with the signature `before`, if it did.

    A lesson without a trigger matches every task.
    """
    if lesson.state not in _TOLD:
        return False
    if not (lesson.signature or lesson.files or lesson.task_type):
        return True
    if lesson.signature and lesson.signature == before:
        return True
    if lesson.task_type and lesson.task_type == task.type:
        return True
    about = {*task.scope, *task.touched, *_words(task)}
    return any(any_covers(lesson.files, path.strip("/")) for path in about)


def _words(task: Task) -> list[str]:
    text = " ".join((task.title, task.description, *task.criteria))
    return [word.strip(".,;:()'\"`") for word in text.split()]


def told(lessons: Sequence[Lesson]) -> tuple[Lesson, ...]:
    """Return the lessons that fit into one prompt: proven ones first, then the older ones."""
    ranked = sorted(lessons, key=lambda one: (one.state is not LessonState.KEPT, one.created_at, one.id))
    found, left = [], BUDGET
    for one in ranked:
        if len(one.text) <= left:
            found.append(one)
            left -= len(one.text)
    return tuple(found)


def in_words(texts: Sequence[str]) -> str:
    """Return lessons as text for a prompt."""
    return "\n".join(f"- {one_line(text, LONGEST)}" for text in texts)


def proposal(told_now: Sequence[str], text: str) -> str:
    """Return as a diff what a lesson would add to the current lessons in prompts."""
    return as_diff("lessons", _lines(told_now), _lines([*told_now, text]))


def _lines(texts: Sequence[str]) -> str:
    return f"{in_words(texts)}\n" if texts else ""


def as_diff(name: str, before: str, after: str) -> str:
    """Return a unified diff of a text, in git's format; empty if nothing differs."""
    changed = unified_diff(
        before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", lineterm="", n=3
    )
    lines = list(changed)
    return "\n".join([f"diff --git a/{name} b/{name}", *lines]) + "\n" if lines else ""


def cleaned(text: str) -> str:
    """Return the text of a lesson as it is stored: visible characters, bounded."""
    return shortened(visible(text.strip()), LONGEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A lesson to propose."""

    signature: str
    files: tuple[str, ...]
    text: str
    evidence: tuple[str, ...]


def drafts(
    failures: Sequence[AttemptFailure], passed: Mapping[str, Attempt], known: Collection[str]
) -> list[Draft]:
    """Draft a lesson for each failure that several tasks had in common; `passed` has the solution, by task.

    `known` are the signatures that already have a lesson.
    """
    alike: dict[str, list[AttemptFailure]] = defaultdict(list)
    for one in failures:
        if one.signature not in known:
            alike[one.signature].append(one)
    return [_draft(group, passed) for group in alike.values() if len({one.task_id for one in group}) >= TASKS]


def _draft(group: Sequence[AttemptFailure], passed: Mapping[str, Attempt]) -> Draft:
    last = group[-1]
    where = ", ".join(part for part in (last.test or last.step, last.file) if part)
    tasks = {one.task_id for one in group}
    lines = [
        f"{counted(len(group), 'attempt')} at {counted(len(tasks), 'task')} failed at {where}: {last.error}",
        "Check that before you finish.",
    ]
    cures = [passed[one] for one in sorted(tasks) if one in passed]
    touched = sorted({path for attempt in cures for path in attempt.touched})
    if touched:
        lines.append(f"Attempts that then passed changed {listed(touched, _FILES)}.")
    evidence = (*(one.attempt_id for one in group), *(one.id for one in cures))
    return Draft(
        signature=last.signature,
        files=(last.file,) if last.file else (),
        text=cleaned(" ".join(lines)),
        evidence=tuple(dict.fromkeys(evidence)),
    )
