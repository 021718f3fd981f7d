"""Questions in an agent's last words."""

from loopwright.core.questions import Asking, asked_in, asking_of


def test_a_fenced_block_with_json_is_a_question() -> None:
    text = '```loopwright-ask\n{"question": "Which port?", "options": ["80", "8080"], "default": "80"}\n```\n'
    assert asked_in(text) == (
        Asking(kind="question", text="Which port?", options=("80", "8080"), default="80"),
    )


def test_a_fenced_block_with_plain_words_is_a_question() -> None:
    assert asked_in("```loopwright-ask\nMay I drop the table?\n```")[0].text == "May I drop the table?"


def test_other_blocks_and_empty_ones_ask_nothing() -> None:
    assert asked_in("```json\n{}\n```\n```loopwright-ask\n\n```\nloopwright-ask") == ()
    assert asked_in('```loopwright-ask\n{"options": ["a"]}\n```') == ()


def test_garbage_in_a_question_is_left_out() -> None:
    asking = asking_of({"question": "x" * 9000, "options": [1, "", "a"], "default": 3, "kind": "escalation"})
    assert asking == Asking(kind="escalation", text="x" * 4000, options=("a",))
    assert asking_of({"question": 5}) is None
