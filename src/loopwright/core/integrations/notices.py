"""Notices: the events that Loopwright sends to the targets of the setting `notify`, and their texts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from loopwright.core.policy.budget import ASKED
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.rows.model import Plan
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.ids import short_id
from loopwright.core.values.wording import clean, dollars, one_line, shortened, to_type

OF_USE: Final = timedelta(days=1)
"""An older event makes no notice."""
_LONGEST: Final = 1000
"""How many characters of a reason or a question a notice repeats."""


class Topic(StrEnum):
    """The kinds of notices."""

    DONE = "done"
    NEEDS_YOU = "needs you"
    FAILED = "failed"
    BUDGET = "budget"
    ALERT = "alert"


TOPICS: Final[Mapping[str, Topic]] = MappingProxyType(
    {
        "attempt_quarantined": Topic.ALERT,
        "budget_near": Topic.BUDGET,
        "controller_blocked": Topic.NEEDS_YOU,
        "envelope_closed": Topic.ALERT,
        "loop_not_started": Topic.NEEDS_YOU,
        "plan_failed": Topic.FAILED,
        "plan_held": Topic.NEEDS_YOU,
        "plan_verified": Topic.DONE,
        "question_asked": Topic.NEEDS_YOU,
        "source_not_told": Topic.ALERT,
        "trouble_found": Topic.ALERT,
    }
)
"""The types of event that make a notice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A message to the user."""

    topic: Topic
    title: str
    body: str


def notice_of(
    event: RecordedEvent, plan: Plan | None, question: Question | None, *, now: datetime
) -> Notice | None:
    """Return the notice for an event of one of these types; None if it is too old, or not about your work.

    A plan that only asks an agent for an answer ends without a notice: the plan that it is for says what follows.
    """
    if now - event.at > OF_USE:
        return None
    topic = TOPICS[event.type]
    if question is not None and question.kind == ASKED:
        topic = Topic.BUDGET
    if plan is not None and plan.made_for is not None and topic in (Topic.DONE, Topic.FAILED):
        return None
    about = plan.title if plan is not None else "Loopwright"
    lines = [_said(event, question)]
    if hint := event.payload.get("hint"):
        lines.append(str(hint))
    if plan is not None:
        lines.append(to_type("status", short_id(plan.id)))
    body = "\n".join(shortened(clean(line), _LONGEST) for line in lines if line)
    return Notice(topic=topic, title=f"{topic.value.capitalize()}: {one_line(about)}", body=body)


def _said(event: RecordedEvent, question: Question | None) -> str:
    told = event.payload
    if question is not None:
        options = f" ({', '.join(question.options)})" if question.options else ""
        return f"{question.text}{options}"
    if event.type == "plan_verified":
        return "The complete gate passed on the final tree."
    if event.type == "budget_near":
        return (
            f"{dollars(told['spent_micros'])} of {dollars(told['limit_micros'])} ({told['cap']}) are spent."
        )
    return str(told.get("message") or told.get("reason") or told.get("text") or event.type.replace("_", " "))
