"""JSON that is read with its lines: as the standard parser reads it, and refused where it becomes too much."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.adapters.sources import located_json
from loopwright.adapters.sources.located import Unreadable
from loopwright.adapters.sources.located_json import read_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


def count(value: object) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(count, value.values()))
    return 1 + sum(map(count, value)) if isinstance(value, list) else 1


@given(VALUES.filter(lambda value: "\\u0000" not in json.dumps(value)), st.sampled_from((None, 1)))
def test_it_is_read_as_the_standard_parser_reads_it(value: object, indent: int | None) -> None:
    for ascii_only in (True, False):
        assert read_json(json.dumps(value, indent=indent, ensure_ascii=ascii_only)).plain() == value


@given(VALUES.filter(lambda value: "\\u0000" not in json.dumps(value)))
def test_as_many_values_as_may_be_are_read_and_one_more_is_refused(value: object) -> None:
    text = json.dumps([value], indent=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(located_json, "MAX_NODES", 1 + count(value))
        read_json(text)
        patch.setattr(located_json, "MAX_NODES", count(value))
        with pytest.raises(Unreadable, match="too many values"):
            located_json._bound(text, 1)


def test_too_many_values_are_counted_before_any_of_them_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(located_json, "MAX_NODES", 7)
    monkeypatch.setattr(located_json, "_LOOK", 1)
    made: list[object] = []
    monkeypatch.setattr(located_json, "Located", lambda *given: made.append(given))
    text = '{"a, [{": "x, y, [z]",\n "b": ["\\",[{", 2],\n "c": 3,\n "d": 4}'
    read_json(text)
    made.clear()
    with pytest.raises(Unreadable) as refused:
        read_json(text.replace("}", ',\n "e": 5}'))
    assert (refused.value.line, made) == (5, [])
