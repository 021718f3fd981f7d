"""Which events make a notice, and in which words."""

from datetime import timedelta
from typing import Any

from tests.cases import each_case
from tests.contracts.store import rows

from loopwright.core.integrations.notices import OF_USE, TOPICS, Topic, notice_of
from loopwright.core.policy.budget import ASKED
from loopwright.core.rows.events import CATALOGUE, RecordedEvent
from loopwright.core.rows.waiting_rows import Question

PLAN = rows.plan(rows.loop(rows.project()), title="Add login")


def said(type: str, *, at: Any = rows.AT, **payload: Any) -> RecordedEvent:
    """Return an event as stored."""
    return RecordedEvent(
        type=type, actor="machine", payload=payload, n=1, id="e", at=at, prev_hash="", hash=""
    )


def question(kind: str, *options: str) -> Question:
    """Return a question."""
    ids = dict.fromkeys(("project_id", "loop_id", "plan_id", "task_id", "run_id", "key"), "")
    return Question(id="q", kind=kind, text="Which one?", options=options, created_at=rows.AT, **ids)


def test_only_known_types_of_event_make_a_notice() -> None:
    assert TOPICS.keys() <= CATALOGUE.keys()


@each_case(
    "event, asked, topic, words",
    [
        (said("plan_verified"), None, Topic.DONE, "passed on the final tree"),
        (said("plan_failed", reason="gate:all failed"), None, Topic.FAILED, "gate:all failed"),
        (said("plan_held", reason="t1 failed"), None, Topic.NEEDS_YOU, "t1 failed"),
        (said("question_asked"), question("choice", "a", "b"), Topic.NEEDS_YOU, "Which one? (a, b)"),
        (said("question_asked"), question("choice"), Topic.NEEDS_YOU, "Which one?\n"),
        (said("question_asked"), question(ASKED, "stop"), Topic.BUDGET, "(stop)"),
        (
            said("budget_near", cap="max_cost", spent_micros=8, limit_micros=10),
            None,
            Topic.BUDGET,
            "(max_cost)",
        ),
        (said("trouble_found", message="Stuck.", hint="Look."), None, Topic.ALERT, "Stuck.\nLook.\n"),
        (said("envelope_closed"), None, Topic.ALERT, "envelope closed"),
        (said("plan_failed", reason="x" * 5000), None, Topic.FAILED, "x" * 999 + "…"),
    ],
)
def test_a_notice_says_what_happened_and_how_to_look(
    event: RecordedEvent, asked: Question | None, topic: Topic, words: str
) -> None:
    notice = notice_of(event, PLAN, asked, now=rows.AT)
    assert notice is not None
    assert (notice.topic, words in notice.body) == (topic, True)
    assert notice.title.endswith(": Add login")
    assert notice.body.splitlines()[-1].startswith("loopwright status ")


def test_an_event_of_no_plan_is_named_after_the_program() -> None:
    notice = notice_of(said("envelope_closed", reason="used up"), None, None, now=rows.AT)
    assert notice is not None
    assert (notice.title, notice.body) == ("Alert: Loopwright", "used up")


def test_the_end_of_a_plan_that_only_answers_makes_no_notice_but_its_questions_do() -> None:
    answers = rows.plan(rows.loop(rows.project()), made_for="")
    assert notice_of(said("plan_verified"), answers, None, now=rows.AT) is None
    assert notice_of(said("question_asked"), answers, question("choice"), now=rows.AT) is not None


def test_an_event_of_the_day_before_makes_no_notice() -> None:
    old = said("plan_failed", at=rows.AT - OF_USE - timedelta(seconds=1))
    assert notice_of(old, PLAN, None, now=rows.AT) is None
