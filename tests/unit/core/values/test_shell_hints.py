"""Command lines to paste into a shell."""

from tests.cases import each_case

from loopwright.core.values.wording import to_type


@each_case(
    ("line", "expected"),
    [
        (to_type("show", "a b"), "loopwright show 'a b'"),
        (to_type("run", "p", json=True, watch=False), "loopwright run p --json"),
        (to_type("retry", "-x", note="-y"), "loopwright retry --note=-y -- -x"),
        (to_type("run", allow=["a", "b"], from_="c"), "loopwright run --allow a --allow b --from c"),
    ],
)
def test_each_word_is_quoted_and_none_is_taken_for_an_option(line: str, expected: str) -> None:
    assert line == expected
