"""JSON that is read with its lines: as the standard parser reads it, and refused where it becomes too much."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.adapters.sources.text.located_json import LOOK, read_json
from loopwright.adapters.sources.text.problems import Unreadable

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=30,
)


def count(value: object) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(count, value.values()))
    return 1 + sum(map(count, value)) if isinstance(value, list) else 1


@given(VALUES, st.sampled_from((None, 1)))
def test_it_is_read_as_the_standard_parser_reads_it(value: object, indent: int | None) -> None:
    for ascii_only in (True, False):
        assert read_json(json.dumps(value, indent=indent, ensure_ascii=ascii_only)).plain() == value


@given(VALUES)
def test_as_many_values_as_may_be_are_read_and_one_more_is_refused(value: object) -> None:
    text = json.dumps([value], indent=1)
    for look in (1, LOOK):
        read_json(text, most=1 + count(value), look=look)
        with pytest.raises(Unreadable, match="too many values"):
            read_json(text, most=count(value), look=look)


def test_too_many_values_are_counted_before_the_rest_is_read() -> None:
    text = '{"a, [{": "x, y, [z]",\n "b": ["\\",[{", 2],\n "c": 3,\n "d": 4}'
    assert read_json(text, most=7, look=1).plain()["d"] == 4
    more = text.replace('"c": 3', '"c": nothing').replace("}", ',\n "e": 5}')
    with pytest.raises(Unreadable, match="too many values") as refused:
        read_json(more, most=7, look=1)
    assert refused.value.line == 5
    with pytest.raises(Unreadable, match="unknown word nothing") as read:
        read_json(more, most=7)
    assert read.value.line == 3, "a file with few values is read from the beginning"
