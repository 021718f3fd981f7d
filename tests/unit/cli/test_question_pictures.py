"""How a question is shown: what is suggested grants no more than what was asked for."""

from datetime import UTC, datetime

import pytest
from rich.console import Console

from loopwright.cli.questions import picture
from loopwright.engine.question_views import QuestionView

ASKED_AT = datetime(2026, 3, 1, 9, tzinfo=UTC)


def _lines(kind: str, *, columns: int, state: str = "OPEN") -> list[str]:
    view = QuestionView(
        id="ask_4f0c1a2b-0000-4000-8000-000000000000",
        kind=kind,
        text="May it run the command: make dist",
        options=("yes", "no"),
        default=None,
        state=state,
        answer=None,
        holds_for="run",
        answered_by="",
        project="/work",
        plan_id="plan_1",
        tasks=("api",),
        asked_at=ASKED_AT,
        deadline=None,
    )
    out = Console(width=columns, force_terminal=True, color_system=None, highlight=False)
    with out.capture() as told:
        out.print(picture(view))
    return told.get().splitlines()


@pytest.mark.parametrize("columns", [80, 40])
def test_the_suggested_answer_holds_for_those_who_asked_and_wider_ones_are_named(columns: int) -> None:
    lines = _lines("permission", columns=columns)
    assert max(map(len, lines)) <= columns
    said = " ".join(" ".join(lines).split())
    assert (
        "loopwright answer ask_4f0c1a2b yes for this once; later runs too: --for loop (this plan file)"
        in said
    )


@pytest.mark.parametrize(("kind", "state"), [("question", "OPEN"), ("permission", "ANSWERED")])
def test_what_cannot_be_answered_for_longer_does_not_offer_it(kind: str, state: str) -> None:
    assert "--for" not in "\n".join(_lines(kind, columns=80, state=state))
