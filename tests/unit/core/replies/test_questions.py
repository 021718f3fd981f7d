"""Questions of agents: in their last words, from the tool for them, and for leave."""

import json

from tests.wording_plugin import Wording

from loopwright.core.replies.questions import (
    MOST_QUESTIONS,
    Asking,
    Block,
    asked_in,
    asked_lines,
    asking_leave,
    asking_of,
)
from loopwright.core.values.permissions import LONGEST_ASKED, Permissions, Settled, Wish, settle
from loopwright.core.values.wording import visible


def test_a_fenced_block_with_json_is_a_question() -> None:
    text = '```loopwright-ask\n{"question": "Which port?", "options": ["80", "8080"], "default": "80"}\n```\n'
    assert asked_in(text) == (
        Asking(kind="question", text="Which port?", options=("80", "8080"), default="80"),
    )


def test_a_fenced_block_with_plain_words_is_a_question() -> None:
    assert asked_in("```loopwright-ask\nMay I drop the table?\n```")[0].text == "May I drop the table?"


def test_a_broken_object_is_told_as_one(wording: Wording) -> None:
    [asked] = asked_in('```loopwright-ask\n{"question": "x",\n```')
    wording(asked.text)


def test_other_blocks_and_empty_ones_ask_nothing() -> None:
    assert asked_in("```json\n{}\n```\n```loopwright-ask\n\n```\nloopwright-ask") == ()
    assert asked_in('```loopwright-ask\n{"options": ["a"]}\n```') == ()
    assert asked_in("```loopwright-ask\n{}\n```") == ()


def printed(*lines: str) -> tuple[str, ...]:
    block = Block()
    for line in lines:
        block = block.with_line(line)
    return tuple(one.text for one in block.asked)


def test_a_program_asks_by_the_last_block_that_it_prints() -> None:
    asked = ("```loopwright-ask", '{"question": "Which port?"}', "```")
    assert printed("I wonder.", *asked) == ("Which port?",)
    assert printed(*(f"  {line}\r" for line in asked), "", "") == ("Which port?",), "as terminals print it"
    assert printed(*asked, "", "```loopwright-ask", "Which host?", "```") == ("Which port?", "Which host?")


def test_a_block_that_is_not_the_end_of_the_output_asks_nothing() -> None:
    asked = ("```loopwright-ask", '{"question": "..."}', "```")
    assert printed(*asked, "(options and default may be left out)", "done") == ()
    assert printed(*asked[:2]) == (), "one that is never closed"
    assert printed("```loopwright-ask", *["x"] * 1000, "```") == (), "one that never ends"


def test_garbage_in_a_question_is_left_out() -> None:
    asking = asking_of({"question": "x" * 9000, "options": [1, "", "a"], "default": 3, "kind": "escalation"})
    assert asking == Asking(kind="escalation", text="x" * 3999 + "…", options=("a",))
    assert asking_of({"question": 5}) is None


def test_text_that_cannot_be_stored_is_mended() -> None:
    asking = asking_of({"question": "a\0b\ud800", "options": ["\0"], "default": "\0"})
    assert asking == Asking(kind="question", text="ab?")


def test_lines_that_are_no_questions_are_passed_over() -> None:
    lines = ['{"question": "first"}', "", "[1]", "garbage", '{"question": ""}', "[" * 100_000,
             '{"question": "second", "kind": "escalation"}', '{"question": "half']  # fmt: skip
    assert asked_lines("\n".join(lines)) == (
        Asking(kind="question", text="first"),
        Asking(kind="escalation", text="second"),
    )
    assert asked_lines("") == ()


def test_no_more_questions_are_read_than_can_be_asked() -> None:
    many = "\n".join(json.dumps({"question": str(n)}) for n in range(100))
    assert [one.text for one in asked_lines(many)] == [str(n) for n in range(MOST_QUESTIONS)]


def test_leave_is_asked_for_with_yes_and_no() -> None:
    wish = Wish(kind="command", what="make dist")
    assert asking_leave(wish) == Asking(
        kind="permission", text="May it run the command: make dist", options=("yes", "no"), wish=wish
    )


def test_a_wish_outside_of_the_workspace_is_told_as_such(wording: Wording) -> None:
    text = asking_leave(Wish(kind="edit", what="/etc/hosts", inside=False)).text
    wording(text)


HIDING = "make dist\x1b[2K\r # \u202etxt.\u2066 \u200b\x9b\u2028 \n\tls"
SEEN = "make dist\\x1b[2K\\r # \\u202etxt.\\u2066 \\u200b\\x9b\\u2028 \n\tls"


def test_all_of_a_wish_is_told_and_nothing_in_it_is_hidden() -> None:
    wish = Wish(kind="command", what=f"{HIDING}{'x' * (LONGEST_ASKED - len(HIDING))}")
    assert settle(Permissions(), wish) is Settled.ASK
    asking = asking_leave(wish)
    assert asking.text == f"May it run the command: {SEEN}{'x' * (LONGEST_ASKED - len(HIDING))}"
    assert asking.wish == wish, "what is granted is what the agent wrote"


def test_nobody_is_asked_for_leave_that_could_not_be_shown_whole() -> None:
    long = Wish(kind="command", what="x" * (LONGEST_ASKED + 1))
    assert settle(Permissions(), long) is Settled.DENY
    assert settle(Permissions(commands=("x*",)), long) is Settled.ALLOW


def test_an_agents_question_hides_nothing() -> None:
    asking = asking_of({"question": HIDING, "options": [f"a\n{HIDING}"], "default": HIDING})
    assert asking is not None
    assert asking.text == SEEN
    assert asking.options == (f"a {' '.join(SEEN.split())}",)
    assert asking.default == " ".join(SEEN.split())


def test_what_is_drawn_as_nothing_is_written_out_and_other_writing_is_left_alone() -> None:
    hidden = "make\u00a0dist\u3164\u2800\u034f\x1b[8m\u202e"
    assert visible(hidden) == "make\\xa0dist\\u3164\\u2800\\u034f\\x1b[8m\\u202e"
    for plain in ("größer → 5 €", "保存して\tください\n", "a b"):
        assert visible(plain) == plain
