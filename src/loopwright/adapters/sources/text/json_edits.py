"""Changing single values of a JSON text, every other byte left as it is.

Indents, key order, the spelling of numbers, line ends, the encoding and a missing last newline stay as the author
chose them. A new value copies the style of its neighbour.
"""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from loopwright.adapters.sources.text.located import Located
from loopwright.adapters.sources.text.located_json import read_json
from loopwright.adapters.sources.text.plan_file import decoded_json
from loopwright.adapters.sources.text.problems import Unreadable
from loopwright.adapters.sources.text.reading import located_at

_SPACES: Final = " \t\r\n"
_STRINGS: Final = json.JSONDecoder()


@dataclass(slots=True)
class _Change:
    """The changes to the members of one object, or to the end of one list."""

    target: Located
    added: dict[str, Any] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    appended: list[Any] = field(default_factory=list)


class JsonEdits:
    """A JSON document together with the changes to be made to its text."""

    def __init__(self, content: bytes, line: int = 1) -> None:
        """Read the bytes, which begin on this line of their file, or raise `Unreadable`."""
        self._text, self._mark, self._codec = decoded_json(content)
        self.document = read_json(self._text, line)
        """What the text says before any change."""
        self._replaced: dict[int, tuple[int, str]] = {}
        self._changes: dict[int, _Change] = {}

    def put(self, table: Located, key: str, value: Any) -> None:
        """Give a key of a table this value; nothing changes when it has it already."""
        assert isinstance(table.value, dict)
        present = table.value.get(key)
        if present is None:
            self._change(table).added[key] = value
            return
        self._change(table).dropped.discard(key)
        self._replaced.pop(present.start, None)
        if not same(present.plain(), value):
            self._replaced[present.start] = (present.end, self._shown(value, present.key_start))

    def drop(self, table: Located, key: str) -> None:
        """Take a key out of a table, if it is there."""
        assert isinstance(table.value, dict)
        change = self._change(table)
        change.added.pop(key, None)
        if key in table.value:
            change.dropped.add(key)

    def append(self, values: Located, value: Any) -> None:
        """Add a value at the end of a list."""
        assert isinstance(values.value, list)
        self._change(values).appended.append(value)

    def bytes(self) -> bytes:
        """Return the text with the changes made."""
        spans = [(start, end, new) for start, (end, new) in self._replaced.items()]
        for change in self._changes.values():
            if change.appended:
                spans += self._list_spans(change)
            elif change.added or change.dropped:
                spans += self._table_spans(change)
        parts: list[str] = []
        at = 0
        for start, end, new in sorted(spans):
            if start >= at:  # else it lies inside of something that is taken out
                parts += (self._text[at:start], new)
                at = end
        parts.append(self._text[at:])
        return self._mark + "".join(parts).encode(self._codec)

    def _change(self, target: Located) -> _Change:
        return self._changes.setdefault(target.start, _Change(target))

    def _table_spans(self, change: _Change) -> list[tuple[int, int, str]]:
        table = change.target
        assert isinstance(table.value, dict)
        members = list(table.value.items())
        kept = [inner for key, inner in members if key not in change.dropped]
        if not kept:
            return [(table.start, table.end, self._shown(change.added, _place(table)))]
        spans: list[tuple[int, int, str]] = []
        for index, (key, inner) in enumerate(members):
            if key not in change.dropped:
                continue
            if inner.start < kept[0].start:
                spans.append((inner.key_start, members[index + 1][1].key_start, ""))
            else:
                spans.append((members[index - 1][1].end, inner.end, ""))
        if change.added:
            last = members[-1][1]
            before, colon = self._manner(last)
            new = "".join(
                f",{before}{_dumped(key)}{colon}{self._shown(value, last.key_start)}"
                for key, value in change.added.items()
            )
            spans.append((last.end, last.end, new))
        return spans

    def _list_spans(self, change: _Change) -> list[tuple[int, int, str]]:
        values = change.target
        assert isinstance(values.value, list)
        if not values.value:
            return [(values.start, values.end, self._shown(change.appended, _place(values)))]
        last = values.value[-1]
        before = self._space_before(last.start)
        if not before and len(values.value) == 1:
            before = " "
        new = "".join(f",{before}{self._shown(value, last.start)}" for value in change.appended)
        return [(last.end, last.end, new)]

    def _manner(self, member: Located) -> tuple[str, str]:
        """Return the space before a member's key, and what stands between its key and its value."""
        _, key_end = _STRINGS.raw_decode(self._text, member.key_start)
        colon = self._text[key_end : member.start]
        before = self._space_before(member.key_start)
        if not before and colon.endswith(" "):
            before = " "  # `{"a": 1}` has no member that shows how two are kept apart
        return before, colon

    def _space_before(self, place: int) -> str:
        start = place
        while start > 0 and self._text[start - 1] in _SPACES:
            start -= 1
        return self._text[start:place]

    def _indent_of(self, place: int) -> str | None:
        """Return the white space before something that begins a line, else None."""
        before = self._space_before(place)
        _, newline, indent = before.rpartition("\n")
        return indent if newline or len(before) == place else None

    def _shown(self, value: Any, beside: int) -> str:
        """Return a value as this text would write it in the line of the place `beside`."""
        indent = self._indent_of(beside)
        if not isinstance(value, dict | list) or not value or indent is None or "\n" not in self._text:
            return _dumped(value)
        newline = "\r\n" if "\r\n" in self._text else "\n"
        return _dumped(value, self._unit()).replace("\n", f"{newline}{indent}")

    def _unit(self) -> str:
        """Return by how much one level is indented in this text."""
        inner = self.document.value
        members = inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ()
        return next((self._indent_of(_place(one)) for one in members), None) or "  "


def _place(located: Located) -> int:
    return located.key_start if located.key_start >= 0 else located.start


def opened(name: str, content: bytes, line: int = 1) -> JsonEdits:
    """Return a file's document to be read or edited, or raise `BadPlan` with the place where it breaks."""
    try:
        return JsonEdits(content, line)
    except Unreadable as broken:
        raise located_at(name, broken) from broken


def same(one: Any, other: Any) -> bool:
    """Return whether two plain values are the same in JSON, where true is not 1 but 1.0 is."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def storable(text: str) -> str:
    """Return a text without what a JSON reader may refuse: NUL, and halves of surrogate pairs."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")


def stamp(at: datetime) -> str:
    """Return a time as such files write it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _dumped(value: Any, indent: str | None = None) -> str:
    return json.dumps(_storable(value), ensure_ascii=False, indent=indent)


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(key): _storable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(inner) for inner in value]
    return value
