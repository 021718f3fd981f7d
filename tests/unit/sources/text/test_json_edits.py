"""Changing values of a JSON text: everything else stays, byte for byte."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import each_case

from loopwright.adapters.sources.text.json_edits import JsonEdits, same
from loopwright.adapters.sources.text.located import MAX_NODES, Located
from loopwright.adapters.sources.text.problems import Unreadable

PRETTY = '{\n  "a": 1.0,\n  "b": {\n    "c": [1, 2]\n  }\n}\n'


def inner(document: Located, *path: str | int) -> Located:
    for step in path:
        document = document.value[step]  # type: ignore[index, call-overload]
    return document


def put(text: str, path: tuple[str | int, ...], key: str, value: Any) -> str:
    edits = JsonEdits(text.encode())
    edits.put(inner(edits.document, *path), key, value)
    return edits.bytes().decode()


@each_case(
    ("text", "path", "key", "value", "expected"),
    [
        (PRETTY, (), "a", 2, PRETTY.replace("1.0", "2")),
        (PRETTY, (), "a", 1, PRETTY),  # the same number, spelled as it was
        (PRETTY, (), "a", True, PRETTY.replace("1.0", "true")),  # true is not 1
        (PRETTY, ("b",), "d", "é", PRETTY.replace("[1, 2]", '[1, 2],\n    "d": "é"')),
        (PRETTY, (), "n", {"x": 1}, PRETTY.replace("  }\n}", '  },\n  "n": {\n    "x": 1\n  }\n}')),
        ('{"a":1}', (), "b", 2, '{"a":1,"b":2}'),
        ('{"a": 1}', (), "b", 2, '{"a": 1, "b": 2}'),
        ('{ "a" : 1 }', (), "b", 2, '{ "a" : 1, "b" : 2 }'),
        ("{}", (), "b", 2, '{"b": 2}'),
        ('{\n\t"a": {}\n}', ("a",), "b", 2, '{\n\t"a": {\n\t\t"b": 2\n\t}\n}'),
        ('{\r\n "a": 1\r\n}', (), "b", 2, '{\r\n "a": 1,\r\n "b": 2\r\n}'),
        ('{"a\\u0022": 1}', (), "b", 2, '{"a\\u0022": 1, "b": 2}'),
    ],
)
def test_a_value_is_replaced_or_added_in_the_manner_of_its_neighbours(
    text: str, path: tuple[str | int, ...], key: str, value: Any, expected: str
) -> None:
    assert put(text, path, key, value) == expected
    assert put(expected, path, key, value) == expected


@each_case(
    ("dropped", "added", "expected"),
    [
        ("a", {}, '{\n  "b": 2,\n  "c": 3\n}'),
        ("b", {}, '{\n  "a": 1,\n  "c": 3\n}'),
        ("c", {}, '{\n  "a": 1,\n  "b": 2\n}'),
        ("ab", {}, '{\n  "c": 3\n}'),
        ("bc", {"d": 4}, '{\n  "a": 1,\n  "d": 4\n}'),
        ("abc", {}, "{}"),
        ("abc", {"d": 4}, '{\n  "d": 4\n}'),
        ("x", {}, '{\n  "a": 1,\n  "b": 2,\n  "c": 3\n}'),
    ],
)
def test_a_key_is_taken_out_with_its_comma(dropped: str, added: dict[str, int], expected: str) -> None:
    edits = JsonEdits(b'{\n  "a": 1,\n  "b": 2,\n  "c": 3\n}')
    for key in dropped:
        edits.drop(edits.document, key)
    for key, value in added.items():
        edits.put(edits.document, key, value)
    assert edits.bytes().decode() == expected


def test_the_last_word_about_a_key_counts() -> None:
    edits = JsonEdits(b'{"a": 1, "b": 2}')
    table = edits.document
    edits.put(table, "a", 5)
    edits.put(table, "a", 1)
    edits.drop(table, "b")
    edits.put(table, "b", 2)
    edits.put(table, "c", 3)
    edits.drop(table, "c")
    assert edits.bytes() == b'{"a": 1, "b": 2}'


@each_case(
    ("text", "expected"),
    [
        ('{"l": [{"i": 1}]}', '{"l": [{"i": 1}, {"i": 2}]}'),
        ('{"l": []}', '{"l": [{"i": 2}]}'),
        ("[1,2]", '[1,2,{"i": 2}]'),
        ('{\n  "l": [\n    {\n      "i": 1\n    }\n  ]\n}', None),
    ],
)
def test_a_list_grows_at_its_end(text: str, expected: str | None) -> None:
    edits = JsonEdits(text.encode())
    edits.append(edits.document if text[0] == "[" else inner(edits.document, "l"), {"i": 2})
    made = edits.bytes().decode()
    if expected is None:
        expected = json.dumps({"l": [{"i": 1}, {"i": 2}]}, indent=2)
    assert made == expected


def test_a_byte_order_mark_stays_and_what_no_reader_takes_is_not_written() -> None:
    edits = JsonEdits(b'\xef\xbb\xbf{"a": 1}')
    edits.put(edits.document, "a", "x\0\ud800y")
    assert edits.bytes() == b'\xef\xbb\xbf{"a": "x\xef\xbf\xbd?y"}'
    JsonEdits(edits.bytes())


@each_case(
    ("content", "words"),
    [
        (b"[" + b"0," * MAX_NODES + b"0]", "too many values"),
        (b"[" * 5_000_000, "nested too deeply"),
        (b'{"a": 1, "a": 2}', "a second time"),
        (b'{"a": \xff}', "UTF-8"),
        (b"", "a value is expected"),
    ],
)
def test_what_cannot_be_read_is_not_edited(content: bytes, words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        JsonEdits(content)


letters = st.characters(codec="utf-8", exclude_characters="\0")
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-99, 99), st.text(letters, max_size=4)),
    lambda some: st.one_of(
        st.lists(some, max_size=3), st.dictionaries(st.sampled_from("abcd"), some, max_size=4)
    ),
    max_leaves=8,
)
tables = st.dictionaries(st.sampled_from("abcdef"), values, max_size=6)
layouts = st.sampled_from([{"indent": None}, {"indent": 2}, {"indent": "\t"}, {"separators": (",", ":")}])


@settings(max_examples=100, deadline=None)
@given(
    before=tables, puts=tables, drops=st.sets(st.sampled_from("abcdef")), layout=layouts, crlf=st.booleans()
)
def test_edits_do_to_the_text_what_they_would_do_to_the_value(
    before: dict[str, Any], puts: dict[str, Any], drops: set[str], layout: dict[str, Any], crlf: bool
) -> None:
    text = json.dumps(before, **layout)
    content = (text.replace("\n", "\r\n") if crlf else text).encode()
    edits = JsonEdits(content)
    for key in drops:
        edits.drop(edits.document, key)
    for key, value in puts.items():
        edits.put(edits.document, key, value)
    expected = {key: value for key, value in before.items() if key not in drops} | puts
    made = edits.bytes()
    assert same(json.loads(made), expected)
    assert (b"\n" in made.replace(b"\r\n", b"")) <= (not crlf)
    if same(before, expected):
        assert made == content
