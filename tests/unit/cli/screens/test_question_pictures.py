"""How a question is shown: what is suggested grants no more than what was asked for."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from tests.cases import each_case

from loopwright.cli.screens.question import picture
from loopwright.engine.views.question_views import QuestionView

ASKED_AT = datetime(2026, 3, 1, 9, tzinfo=UTC)


def _lines(
    kind: str, *, columns: int = 80, state: str = "OPEN", whole: bool = False, **changes: Any
) -> list[str]:
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
    view = replace(view, **changes)
    out = Console(width=columns, force_terminal=True, color_system=None, highlight=False)
    with out.capture() as told:
        out.print(picture(view, whole=whole))
    return told.get().splitlines()


@each_case("columns", [80, 40])
def test_the_suggested_answer_holds_for_those_who_asked_and_wider_ones_are_named(columns: int) -> None:
    lines = _lines("permission", columns=columns)
    assert max(map(len, lines)) <= columns
    said = " ".join(" ".join(lines).split())
    assert (
        "loopwright answer ask_4f0c1a2b yes for this once; later runs too: --for loop (this plan file)"
        in said
    )


@each_case(("kind", "state"), [("question", "OPEN"), ("permission", "ANSWERED")])
def test_what_cannot_be_answered_for_longer_does_not_offer_it(kind: str, state: str) -> None:
    assert "--for" not in "\n".join(_lines(kind, columns=80, state=state))


@each_case(
    ("changes", "said"),
    [
        ({"options": ("80", "8080"), "default": "80"}, "taken if you do not answer: 80"),
        ({"options": (), "default": "delete all"}, "taken if you do not answer: delete all"),
        ({"default": "delete all"}, "taken if you do not answer: delete all (none of the options)"),
        (
            {"default": "80", "options": (), "deadline": None},
            "the agent would take: 80; it waits for your answer",
        ),
    ],
)
def test_what_is_taken_when_nobody_answers_is_always_told(changes: dict[str, Any], said: str) -> None:
    lines = _lines("question", **{"deadline": ASKED_AT, **changes})
    assert f"  {said}" in lines
    settled = _lines("question", state="ANSWERED", **{"deadline": ASKED_AT, **changes})
    assert said not in "\n".join(settled), "afterwards the answer is told"
    assert "taken" not in "\n".join(_lines("question", deadline=ASKED_AT)), "without one nothing is"


def test_what_an_agent_asks_neither_steers_the_terminal_nor_passes_for_our_own_words() -> None:
    forged = "May it run the command: ls\x1b[1A\u202e\n  loopwright answer ask_1 yes"
    lines = _lines("permission", text=forged, options=("yes\n  3  never\x07", "no"), default="\x1b[8m")
    assert not [one for one in "".join(lines) if not one.isprintable()]
    assert "  │ May it run the command: ls\\x1b[1A\\u202e" in lines
    assert "  │   loopwright answer ask_1 yes" in lines
    assert "    1  yes 3 never\\x07" in lines


@each_case("text", [f"rm {'a' * 5_000} tail", "\n".join(["rm", *["a"] * 400, "tail"])])
def test_below_a_plan_a_long_question_has_its_beginning_its_end_and_a_mark_between(text: str) -> None:
    lines = _lines("permission", text=text)
    told = "\n".join(lines)
    assert len(lines) < 60
    assert "rm" in told
    assert "tail" in told
    assert "left out here: `loopwright answer` shows all of it]" in " ".join(told.replace("│", "").split())
    whole = "".join(_lines("permission", text=text, whole=True))
    assert "left out" not in whole
    assert whole.count("a") >= text.count("a")


def test_an_answer_that_looks_like_an_option_can_be_typed_as_it_is_shown() -> None:
    assert "  loopwright answer ask_4f0c1a2b -- -w" in _lines("question", options=("-w", "it's"))
