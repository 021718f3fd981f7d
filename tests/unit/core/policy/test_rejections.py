"""What a person says about a line of the work."""

from tests.cases import each_case
from tests.refusals import raises_code
from tests.wording_plugin import Wording

from loopwright.core.policy.rejections import Comment, comments_in, objections, parse_comment


def test_a_place_is_a_file_and_a_line_and_a_file_may_have_colons() -> None:
    assert parse_comment("a:b.py:12", " no ") == {"file": "a:b.py", "line": 12, "text": "no"}


@each_case("place", ["app.py", "app.py:", ":3", "app.py:0", "app.py:x", "app.py:-1"])
def test_a_place_without_a_line_is_refused_with_an_example(place: str) -> None:
    with raises_code("comment_place_wrong") as refused:
        parse_comment(place, "no")
    assert "--at app.py:12" in (refused.value.hint or "")


def test_a_comment_says_something() -> None:
    with raises_code("comment_empty"):
        parse_comment("app.py:3", "  ")


def test_the_next_attempt_is_told_note_and_lines(wording: Wording) -> None:
    [comment] = comments_in([{"file": "app.py", "line": 3, "text": "not here", "quoted": "  x = 1"}])
    assert comment == Comment(file="app.py", line=3, text="not here", quoted="  x = 1")
    told = objections("It is slow.", [comment, Comment(file="b", line=1, text="why?")])
    wording(told.split("\n\n"))


def test_lines_need_no_note(wording: Wording) -> None:
    wording(objections("  ", [Comment(file="b", line=1, text="why?")]).split("\n\n"))
