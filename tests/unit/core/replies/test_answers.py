"""An answer that becomes a file: where it is taken from."""

from tests.cases import each_case

from loopwright.core.replies.answers import LONGEST, answer_in, object_in
from loopwright.core.values.policy import Answering

PLAN = Answering(role="planner", file="p.yaml", fence="loopwright-plan")


def test_a_structured_result_counts_whatever_else_was_said() -> None:
    assert answer_in(PLAN, {"title": "schön"}, "```loopwright-plan\ntitle: b\n```\n") == (
        '{\n  "title": "schön"\n}\n'
    )


@each_case(
    ("said", "answer"),
    [
        ("Look:\n```loopwright-plan\na: 1\n```\nBetter:\n```loopwright-plan\na: 2\n```\n", "a: 2\n"),
        ("```yaml\na: 2\n```\n```loopwright-plan \na: 1\n```\n", "a: 1\n"),
        ("```python\na = 1\n```\n```yaml\na: 1\n```\n", "a: 1\n"),
        ('```json\n{"a": 1}\n```\n', '{"a": 1}\n'),
        ("\n a: 1 \n", "a: 1\n"),
        ("```loopwright-plan\na: never closed\n", "```loopwright-plan\na: never closed\n"),
    ],
    ids=["the last", "its own before others", "another language", "json", "no block", "half a block"],
)
def test_without_one_the_last_block_is_the_answer_and_else_all_that_was_said(said: str, answer: str) -> None:
    assert answer_in(PLAN, None, said) == answer


@each_case("form", ["{}", "```loopwright-plan\n{}\n```\n"])
def test_an_answer_without_end_is_cut(form: str) -> None:
    assert len(answer_in(PLAN, None, form.format("x" * LONGEST * 2))) in (LONGEST, LONGEST + 1)
    assert len(answer_in(PLAN, {"a": "x" * LONGEST * 2}, "")) == LONGEST + 1


@each_case(
    ("text", "expected"),
    [
        ('```json\n{"a": 1}\n```\n```json\n[2]\n```', {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        ("[1]", None),
        ("no", None),
    ],
)
def test_the_last_block_with_an_object_counts(text: str, expected: dict[str, int] | None) -> None:
    assert object_in(text, "reply") == expected
