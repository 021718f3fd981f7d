"""Changing single values of a YAML text, every other byte left as it is.

Comments, indents, quotes, anchors and line ends stay as the author chose them. No YAML library writes the text: a new
value replaces the old one in its place, or goes beside the first key, and the result is read again to check it.
"""

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from loopwright.adapters.sources.text.located import Located, located_yaml, read_yaml
from loopwright.adapters.sources.text.plan_file import decoded
from loopwright.adapters.sources.text.problems import Unreadable

_PLAIN: Final = re.compile(r"[a-z][a-z0-9 -]*")
_RESERVED: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def with_values(
    content: bytes, at: str, name: str, key: str, values: Mapping[str, str], *, usual: str
) -> bytes:
    """Return a text in which each table of the list `at` has this `key`, by what its key `name` says.

    The usual value is not written where none stands.
    Raise `Unreadable` when the text cannot be read, or is written in a way in which that cannot be done.
    """
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    text = decoded(content)
    before, root = located_yaml(text)
    spans: list[tuple[int, int, str]] = []
    wanted: dict[int, str] = {}
    for n, node in enumerate(_listed(root, at)):
        given = {inner.value: (inner, value) for inner, value in node.value if inner.id == "scalar"}
        found = given.get(name)
        value = values.get(found[1].value.strip()) if found and found[1].id == "scalar" else None
        present = given[key][1].value if key in given else usual
        if found is None or value is None or present == value:
            continue
        wanted[n] = value
        quoted = found[0].style == '"'
        if key in given:
            spans.append(_replaced(given[key][1], _shown(value, quoted=quoted)))
        else:
            spans.append(_added(text, node, found, key, _shown(value, quoted=quoted), quoted=quoted))
    if not spans:
        return content
    made = _with(text, spans)
    _check(before, made, at, key, wanted)
    return mark + made.encode("utf-8")


def with_entries(content: bytes, values: Mapping[tuple[int, str], str]) -> bytes:
    """Return a text in which the keys on these lines have these values; each is there and has a single value.

    Raise `Unreadable` when the text cannot be read, or is written in a way in which that cannot be done.
    """
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    text = decoded(content)
    before, root = located_yaml(text)
    spans = [
        _replaced(node, _shown(values[at], quoted=node.style in ('"', "'")))
        for at, node in _scalars(root)
        if at in values and node.value != values[at]
    ]
    if not spans:
        return content
    made = _with(text, spans)
    odd = Unreadable(None, "the file is written in a way in which its values cannot be changed")
    try:
        after = read_yaml(made).plain()
    except Unreadable:
        raise odd from None
    if after != _changed(before, values):
        raise odd
    return mark + made.encode("utf-8")


def _scalars(root: Any) -> Iterator[tuple[tuple[int, str], Any]]:
    """Return each entry of a mapping that has a single value, by its line and its key."""
    left, seen = [root], set[int]()
    while left:
        node = left.pop()
        if id(node) in seen:
            continue  # an alias
        seen.add(id(node))
        if node.id == "sequence":
            left += node.value
        for key, value in node.value if node.id == "mapping" else ():
            left.append(value)
            if key.id == "scalar" and value.id == "scalar":
                yield (key.start_mark.line + 1, key.value), value


def _changed(found: Located, values: Mapping[tuple[int, str], str]) -> Any:
    """Return a document without its lines, with these values in it."""
    if isinstance(found.value, list):
        return [_changed(one, values) for one in found.value]
    if isinstance(found.value, dict):
        return {key: values.get((one.line, key), _changed(one, values)) for key, one in found.value.items()}
    return found.value


def _listed(root: Any, at: str) -> list[Any]:
    """Return the nodes of the tables in the list at a key of the root."""
    for inner, value in root.value if root.id == "mapping" else ():
        if inner.id == "scalar" and inner.value == at and value.id == "sequence":
            return [node if node.id == "mapping" else _NOTHING for node in value.value]
    return []


class _Nothing:
    """Represent an entry that is not a table."""

    value = ()


_NOTHING: Final = _Nothing()


def _shown(value: str, *, quoted: bool) -> str:
    plain = _PLAIN.fullmatch(value) and value.strip() == value and value not in _RESERVED
    return value if plain and not quoted else json.dumps(value)


def _replaced(node: Any, new: str) -> tuple[int, int, str]:
    start, end = node.start_mark.index, node.end_mark.index
    return start, end, new


def _added(
    text: str, node: Any, found: tuple[Any, Any], key: str, new: str, *, quoted: bool
) -> tuple[int, int, str]:
    """Return where a new key goes: behind the one that the table is known by."""
    shown = json.dumps(key) if quoted else key
    inner, value = found
    if node.flow_style:
        end = value.end_mark.index
        return end, end, f", {shown}: {new}"
    newline = "\r\n" if "\r\n" in text else "\n"
    indent = " " * inner.start_mark.column
    if value.style in ("|", ">") or value.start_mark.line != inner.start_mark.line:
        start = node.value[0][0].start_mark.index
        return start, start, f"{shown}: {new}{newline}{indent}"
    end = text.find("\n", value.end_mark.index)
    end = len(text) if end < 0 else end - (text[end - 1] == "\r")
    return end, end, f"{newline}{indent}{shown}: {new}"


def _with(text: str, spans: list[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    at = 0
    for start, end, new in sorted(spans):
        parts += (text[at:start], new)
        at = end
    return "".join([*parts, text[at:]])


def _check(before: Located, made: str, at: str, key: str, wanted: Mapping[int, str]) -> None:
    """Raise unless the new text says what the old one said, and these values besides."""
    odd = Unreadable(None, f"the tasks are written in a way in which {key} cannot be put beside them")
    try:
        after = read_yaml(made).plain()
    except Unreadable:
        raise odd from None
    expected = before.plain()
    for n, value in wanted.items():
        expected[at][n][key] = value
    if after != expected:
        raise odd
