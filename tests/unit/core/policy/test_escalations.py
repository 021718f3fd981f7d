"""What a person's answer about a task that was given up means."""

from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.core.policy.escalations import (
    CANCEL,
    CHAIN,
    GIVEN_UP,
    KIND,
    LEAVE,
    RETRY,
    is_given_up,
    meaning,
    words,
)


@each_case(
    ("answer", "option", "hint"),
    [
        ("retry", RETRY, ""),
        ("1", RETRY, ""),
        (" Retry: mind the cache\nand the clock ", RETRY, "mind the cache\nand the clock"),
        ("retry, but slowly", RETRY, "but slowly"),
        ("retry with care", RETRY, "with care"),
        ("2", LEAVE, ""),
        ("Leave it", LEAVE, ""),
        ("3", CANCEL, ""),
        ("cancel", CANCEL, ""),
        ("4", CHAIN, ""),
        ("Cancel with what waits for it", CHAIN, ""),
    ],
)
def test_an_option_its_number_or_another_try_with_a_hint(answer: str, option: str, hint: str) -> None:
    assert meaning(answer) == (option, hint)


@each_case("answer", ["", "0", "5", "²", "yes", "retrying", "retry:", "cancel: all of it", "01"])
def test_anything_else_is_no_answer(answer: str) -> None:
    assert meaning(answer) is None


def test_what_is_asked_is_one_line_of_bounded_length(wording: Wording) -> None:
    wording(words("api", "A check\nfailed."))
    assert len(words("api", "x" * 5000)) == 500


def test_an_escalation_of_an_agent_is_another() -> None:
    assert is_given_up(KIND, GIVEN_UP)
    assert not is_given_up(KIND, "")
