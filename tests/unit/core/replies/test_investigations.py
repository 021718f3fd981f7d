"""What an investigator answers: read from a result in a form, or from a block, and bounded."""

import json
from typing import Any

from tests.cases import each_case

from loopwright.core.replies.answers import Unreadable
from loopwright.core.replies.investigations import FENCE, Investigation, Part, read_investigation
from loopwright.core.values.healing import Cause

PARTS = [{"title": " First\n thing ", "description": "Do it."}, {"title": "Second"}]
ANSWER: dict[str, Any] = {"cause": "too_large", "why": "Two things.", "advice": "Split it.", "parts": PARTS}


def test_an_answer_is_read_from_a_form_and_from_a_block() -> None:
    wanted = Investigation(
        cause=Cause.TOO_LARGE,
        why="Two things.",
        advice="Split it.",
        parts=(Part(title="First thing", description="Do it."), Part(title="Second")),
    )
    assert read_investigation(ANSWER, "", parts=True) == wanted
    assert read_investigation(None, f"I looked.\n```{FENCE}\n{json.dumps(ANSWER)}\n```", parts=True) == wanted


@each_case(
    "change, problem",
    [
        ({"cause": "bad luck"}, "`cause` is none of"),
        ({"parts": PARTS[:1]}, "`parts` has 1 tasks"),
        ({"parts": "two"}, "`parts` has 0 tasks"),
        ({"parts": [*PARTS, *PARTS, *PARTS, *PARTS, *PARTS]}, "`parts` has 10 tasks"),
        ({"parts": [7, {"title": "..."}, {"title": 3}]}, "`parts` has 0 tasks"),
    ],
)
def test_an_answer_of_no_use_says_what_is_wrong(change: dict[str, Any], problem: str) -> None:
    found = read_investigation({**ANSWER, **change}, "", parts=True)
    assert isinstance(found, Unreadable)
    assert problem in found.problem


def test_an_answer_without_a_block_is_missing_and_parts_are_only_needed_where_they_are_asked_for() -> None:
    found = read_investigation(None, "I do not know.", parts=False)
    assert isinstance(found, Unreadable)
    assert FENCE in found.problem
    bare = read_investigation({"cause": "flaky_check", "why": 7}, "", parts=False)
    assert bare == Investigation(cause=Cause.FLAKY, why="")
