"""Lessons in the rows: who gets them, what becomes of these attempts, and what follows from that."""

from typing import Any

import pytest
from tests.doubles import Home, planned

from loopwright.core.healing.lessons import EVERY, LEAST
from loopwright.core.rows.lesson_rows import Lesson, LessonUse
from loopwright.core.rows.model import Leg
from loopwright.core.values.failures import Failure
from loopwright.core.values.ids import Kind
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import LessonState
from loopwright.engine.rows import lessons
from loopwright.ports import Tx


def add(home: Home, **changes: Any) -> Lesson:
    """Put a lesson on trial."""

    def insert(tx: Tx) -> Lesson:
        values = {"state": LessonState.TRIED, "text": "Read README first.", "proposed_by": "me"} | changes
        row = Lesson(id=home.ids(Kind.LESSON), project_id=home.project().id, created_at=tx.now(), **values)
        tx.insert(row)
        return row

    return home.store.transact_sync("add", insert)


def begin(home: Home, leg: Leg) -> tuple[str, ...]:
    """Let an attempt begin as its run does; return what it is told."""
    attempt = home.hand.work(leg)
    task = home.task(next(one.key for one in home.all(type(home.task("t0"))) if one.id == attempt.task_id))

    def admit(tx: Tx) -> tuple[str, ...]:
        said = lessons.told(tx, home.plan(), task, attempt)
        lessons.note_uses(tx, home.ids, home.plan(), task, attempt)
        return said

    return home.store.transact_sync("admit", admit)


async def work(home: Home, count: int, passes: Any) -> None:
    """Let so many tasks be tried once; `passes` says by what each was told whether it passes."""
    await home.launch()
    done = 0
    while done < count:
        for leg in await home.turn():
            said = begin(home, leg)
            if passes(said):
                home.hand.land(leg)
            else:
                home.hand.fail(leg, Failure.GATE, f"no {done}")
            await home.ended(leg)
            done += 1


def many(count: int) -> list[Any]:
    return [planned(f"t{n}") for n in range(count)]


async def test_a_harmful_lesson_removes_itself_and_a_share_of_tasks_went_without_it() -> None:
    home = Home()
    home.submit(*many(2 * LEAST), policy=Policy(max_attempts=1, on_task_error="hold"))
    lesson = add(home)
    await work(home, 2 * LEAST, lambda said: not said)
    uses = home.all(LessonUse)
    assert {one.given for one in uses} == {True, False}
    assert len(uses) == LEAST, "no task is meant for it once it is removed"
    now = home.get(Lesson, lesson.id)
    assert (now.state, "did not help on 50 tasks" in now.reason) == (LessonState.REMOVED, True)
    (event,) = home.events("lesson_removed")
    assert event.payload["lesson"] == lesson.id


async def test_a_lesson_that_helps_is_kept() -> None:
    home = Home()
    home.submit(*many(3 * EVERY), policy=Policy(max_attempts=1))
    lesson = add(home)
    await work(home, 3 * EVERY, bool)
    assert home.get(Lesson, lesson.id).state is LessonState.KEPT


async def test_what_was_never_judged_does_not_count_and_the_next_attempt_does() -> None:
    home = await Home().launch()
    home.submit(planned("t0"))
    add(home)
    (leg,) = await home.turn()
    begin(home, leg)
    home.hand.fail(leg, Failure.CRASH)
    await home.ended(leg)
    assert home.all(LessonUse) == []
    home.clock.advance(3600)
    (again,) = await home.turn()
    begin(home, again)
    home.hand.land(again)
    (use,) = home.all(LessonUse)
    assert (use.passed, use.attempt_id) == (True, home.attempt("t0").id)


async def test_an_old_lesson_is_told_no_more_and_ends_with_the_reason() -> None:
    home = await Home().launch()
    home.submit(planned("t0"))
    lesson = add(home, state=LessonState.KEPT, expires_at=home.clock.now())
    (leg,) = await home.turn()
    assert begin(home, leg) == ()
    assert home.all(LessonUse) == []
    now = home.get(Lesson, lesson.id)
    assert (now.state, now.reason, now.decided_by) == (LessonState.REMOVED, lessons.EXPIRED, "loopwright")


@pytest.mark.capability("C093")
async def test_with_auto_refine_two_tasks_that_fail_alike_propose_one_lesson() -> None:
    home = await Home().launch()
    home.submit(planned("t0"), planned("t1"), policy=Policy(auto_refine=True))
    for leg in await home.turn():
        home.hand.fail(leg, Failure.GATE, "calc.py:7: TypeError: 3")
        await home.ended(leg)
    (lesson,) = home.all(Lesson)
    assert (lesson.state, lesson.files) == (LessonState.PROPOSED, ("calc.py",))
    (event,) = home.events("lesson_proposed")
    assert event.payload["text"] == lesson.text


async def test_a_lesson_about_a_failure_is_told_to_the_attempt_after_it() -> None:
    home = await Home().launch()
    home.submit(planned("t0"), policy=Policy(auto_refine=True))
    (leg,) = await home.turn()
    task = home.hand.fail(leg, Failure.GATE, "calc.py:7: TypeError: 3")
    await home.ended(leg)
    failure = home.store.read_sync(lambda tx: tx.find(lessons.AttemptFailure, task_id=task.id))[0]
    add(home, signature=failure.signature)
    home.clock.advance(3600)
    (again,) = await home.turn()
    begin(home, again)
    assert len(home.all(LessonUse)) == 1
