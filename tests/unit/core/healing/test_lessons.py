"""Which lessons an attempt is told, and when their own measurement removes them."""

import random
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.cases import each_case
from tests.contracts.store import rows

from loopwright.core.healing import lessons
from loopwright.core.healing.lessons import (
    Judgement,
    Measured,
    drafts,
    goes_without,
    judge,
    matches,
    measured,
    told,
)
from loopwright.core.rows.healing_rows import AttemptFailure
from loopwright.core.rows.lesson_rows import Lesson, LessonUse
from loopwright.core.rows.model import Task
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import AttemptState, LessonState, TaskState

AT = datetime(2030, 1, 1, tzinfo=UTC)
LESSON = Lesson(
    id="lesson_1",
    project_id="proj_1",
    state=LessonState.TRIED,
    text="Run the linter.",
    proposed_by="me",
    created_at=AT,
)
TASK = Task(
    id="task_1",
    plan_id="plan_1",
    key="a",
    title="Change the parser",
    description="In `src/parser.py`, read tabs.",
    status=TaskState.QUEUED,
    created_at=AT,
    updated_at=AT,
)


def use(*, given: bool, passed: bool | None) -> LessonUse:
    return LessonUse(
        id="use",
        lesson_id="lesson_1",
        version=1,
        project_id="proj_1",
        plan_id="plan_1",
        task_id="task_1",
        attempt_id="att_1",
        given=given,
        passed=passed,
        created_at=AT,
    )


def failure(task: str, n: int = 1, **changes: object) -> AttemptFailure:
    values = {
        "id": f"fail_{task}_{n}",
        "project_id": "proj_1",
        "plan_id": "plan_1",
        "task_id": task,
        "attempt_id": f"att_{task}_{n}",
        "n": n,
        "failure": Failure.GATE,
        "signature": "sig",
        "step": "tests",
        "test": "test_tabs",
        "file": "tests/test_parser.py",
        "error": "typeerror: <n>",
        "created_at": AT,
    }
    return AttemptFailure(**{**values, **changes})  # type: ignore[arg-type]


def test_the_lift_is_the_difference_of_two_rates_and_unknown_while_one_side_has_none() -> None:
    found = measured([use(given=True, passed=True), use(given=True, passed=None)])
    assert (found.with_passed, found.with_all, found.lift, found.margin) == (1, 1, None, None)
    more = measured(
        [use(given=True, passed=True), use(given=False, passed=False), use(given=False, passed=True)]
    )
    assert (more.lift, more.judged) == (0.5, 3)


def test_nothing_follows_between_two_fixed_moments_or_for_a_lesson_that_is_not_told() -> None:
    bad = Measured(with_passed=0, with_all=25, without_passed=25, without_all=25)
    assert judge(LESSON, bad) is Judgement.REMOVE
    assert judge(LESSON, replace(bad, with_all=26)) is Judgement.CONTINUE
    assert judge(replace(LESSON, state=LessonState.PROPOSED), bad) is Judgement.CONTINUE
    assert judge(LESSON, Measured(with_all=25)) is Judgement.CONTINUE


def test_a_lesson_is_kept_when_its_lift_is_beyond_what_chance_explains() -> None:
    great = Measured(with_passed=49, with_all=50, without_passed=10, without_all=50)
    assert judge(LESSON, great) is Judgement.KEEP
    fair = Measured(with_passed=30, with_all=50, without_passed=25, without_all=50)
    assert judge(LESSON, fair) is Judgement.CONTINUE
    late = Measured(with_passed=60, with_all=100, without_passed=50, without_all=100)
    assert judge(LESSON, late) is Judgement.REMOVE


def test_a_kept_lesson_is_removed_when_it_no_longer_seems_to_help() -> None:
    kept = replace(LESSON, state=LessonState.KEPT)
    assert (
        judge(kept, Measured(with_passed=100, with_all=200, without_passed=20, without_all=25))
        is Judgement.REMOVE
    )
    assert (
        judge(kept, Measured(with_passed=150, with_all=200, without_passed=10, without_all=25))
        is Judgement.CONTINUE
    )


@pytest.mark.capability("C094")
@pytest.mark.parametrize(
    ("rate_with", "lift"), [(0.6, 0.0), (0.3, -0.3), (0.9, 0.3)], ids=["useless", "harmful", "useful"]
)
def test_what_does_not_help_is_switched_off_within_the_stated_number_of_tasks(
    rate_with: float, lift: float
) -> None:
    kept, tasks, trials = 0, [], 200
    for seed in range(trials):
        chance, found = random.Random(seed), Measured()
        while True:
            given = chance.random() < 0.5
            passed = chance.random() < (rate_with if given else 0.6)
            if given:
                found = replace(found, with_all=found.with_all + 1, with_passed=found.with_passed + passed)
            else:
                found = replace(
                    found, without_all=found.without_all + 1, without_passed=found.without_passed + passed
                )
            answer = judge(LESSON, found)
            if answer is not Judgement.CONTINUE:
                break
        assert found.judged <= lessons.MOST
        tasks.append(found.judged)
        kept += answer is Judgement.KEEP
    if lift <= 0:
        assert kept <= lessons.ERROR * trials
        assert sum(tasks) / trials <= 120
    else:
        assert kept >= trials * 0.6


@each_case(
    ("found", "confidence"),
    [
        (Measured(), 0.0),
        (Measured(with_passed=5, with_all=10, without_passed=5, without_all=10), 0.0),
        (Measured(with_passed=2, with_all=2, without_passed=0, without_all=2), 0.0),
        (Measured(with_passed=90, with_all=90, without_passed=9, without_all=90), 1.0),
    ],
    ids=["nothing judged", "no lift", "too few tasks", "many tasks"],
)
def test_confidence_moves_only_with_judged_tasks(found: Measured, confidence: float) -> None:
    assert round(found.confidence, 6) == confidence


@pytest.mark.capability("C094")
def test_a_lesson_is_kept_exactly_when_the_confidence_is_beyond_the_stated_error() -> None:
    for passed in range(50, 101):
        found = Measured(with_passed=passed, with_all=100, without_passed=50, without_all=100)
        assert (judge(LESSON, found) is Judgement.KEEP) is (found.confidence > 1 - lessons.ERROR)


def test_a_proposal_is_a_diff_of_what_agents_are_told() -> None:
    assert lessons.proposal([], "Run make proto.") == (
        "diff --git a/lessons b/lessons\n--- a/lessons\n+++ b/lessons\n@@ -0,0 +1 @@\n+- Run make proto.\n"
    )
    assert lessons.proposal(["Read README."], "Run\nmake.").endswith(" - Read README.\n+- Run make.\n")
    assert lessons.as_diff("lessons", "same\n", "same\n") == ""


def test_a_task_goes_without_a_lesson_or_not_every_time_it_is_asked() -> None:
    without = [one for one in range(1000) if goes_without(LESSON, f"task_{one}")]
    assert 400 < len(without) < 600
    assert without == [one for one in range(1000) if goes_without(LESSON, f"task_{one}")]
    kept = replace(LESSON, state=LessonState.KEPT)
    assert 50 < sum(goes_without(kept, f"task_{one}") for one in range(1000)) < 150


def test_a_lesson_is_meant_for_the_tasks_that_its_trigger_names() -> None:
    assert matches(LESSON, TASK, "")
    assert not matches(replace(LESSON, state=LessonState.REMOVED), TASK, "")
    by_failure = replace(LESSON, signature="sig")
    assert (matches(by_failure, TASK, "sig"), matches(by_failure, TASK, "")) == (True, False)
    by_type = replace(LESSON, task_type="fix")
    assert (matches(by_type, replace(TASK, type="fix"), ""), matches(by_type, TASK, "")) == (True, False)
    by_file = replace(LESSON, files=("src/**",))
    assert matches(by_file, TASK, "")
    assert not matches(by_file, replace(TASK, description="In docs."), "")
    assert matches(by_file, replace(TASK, description="", scope=("src/a.py",)), "")


def test_only_as_many_lessons_are_told_as_fit_and_proven_ones_first() -> None:
    long = [replace(LESSON, id=f"lesson_{n}", text="x" * 500) for n in range(4)]
    kept = replace(LESSON, id="lesson_9", state=LessonState.KEPT, text="y" * 500)
    assert [one.id for one in told([*long, kept])] == ["lesson_9", "lesson_0", "lesson_1"]
    assert lessons.in_words(["a\nb", "c"]) == "- a b\n- c"
    assert lessons.cleaned("  a\x1b[31mb ") == lessons.cleaned("a\x1b[31mb")


@pytest.mark.capability("C092")
def test_a_failure_of_two_tasks_becomes_a_draft_with_what_then_passed() -> None:
    cure = replace(rows.attempt(TASK), id="att_cure", state=AttemptState.LANDED, touched=("src/parser.py",))
    (draft,) = drafts([failure("one"), failure("two"), failure("one", 2)], {"two": cure}, ())
    assert draft.text == (
        "3 attempts at 2 tasks failed at test_tabs, tests/test_parser.py: typeerror: <n> Check that before you "
        "finish. Attempts that then passed changed src/parser.py."
    )
    assert draft.files == ("tests/test_parser.py",)
    assert draft.evidence == ("att_one_1", "att_two_1", "att_one_2", "att_cure")


def test_one_task_alone_or_a_failure_that_is_known_drafts_nothing() -> None:
    assert drafts([failure("one"), failure("one", 2)], {}, ()) == []
    assert drafts([failure("one"), failure("two")], {}, {"sig"}) == []
    (draft,) = drafts([failure("one", file="", test=""), failure("two", file="", test="")], {}, ())
    assert (draft.files, "failed at tests:" in draft.text) == ((), True)
