"""What Loopwright asks about a manual step, and what an answer means."""

from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.core.policy.manual_steps import meaning, outcome_of, words


def test_the_question_says_what_to_do_and_what_must_be_true(wording: Wording) -> None:
    asked = words("Look at\nthe page", "Open index.html.\n", ("The header is blue",))
    assert asked == "Do this by hand: Look at the page\nOpen index.html.\n- The header is blue"
    wording(words("Look", "Look", ()))


@each_case(
    "answer, meant",
    [
        ("done", ("done", "")),
        (" Skip: no screen here ", ("skip", "no screen here")),
        ("3", ("failed", "")),
        ("failed, it\nis red", ("failed", "it\nis red")),
        ("perhaps", None),
        ("4", None),
        ("done!", None),
        ("", None),
    ],
)
def test_only_an_option_is_an_answer(answer: str, meant: tuple[str, str] | None) -> None:
    assert meaning(answer) == meant


def test_the_row_keeps_what_the_user_said(wording: Wording) -> None:
    wording(outcome_of("done", ""))
    wording(outcome_of("skip", "no screen"))
