"""Reading JSON into plain values that know their line and place: the standard parser does not tell them."""

import json
import re
from collections.abc import Mapping
from typing import Final

from loopwright.adapters.sources.located import MAX_DEPTH, MAX_NODES, Located, Unreadable, check_text


def read_json(text: str, line: int = 1) -> Located:
    """Read one JSON document, which begins on this line of its file, or raise `Unreadable`."""
    reader = _JsonReader(text, line)
    document = reader.read(0)
    reader.end()
    return document


_SPACE: Final = re.compile(r"[ \t\n\r]*")
_WORD: Final = re.compile(
    r"-?(?:0|[1-9][0-9]{0,99})(?:\.[0-9]{1,100})?(?:[eE][-+]?[0-9]{1,3})?|[A-Za-z]{1,10}"
)
_STRINGS: Final = json.JSONDecoder()
_WORDS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None}


class _JsonReader:
    """Walks through the text once, counting lines."""

    def __init__(self, text: str, line: int) -> None:
        self._text = text
        self._at = 0
        self._line = line
        self._nodes = 0

    def read(self, depth: int) -> Located:
        char = self._peek()
        line, start = self._line, self._at
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise Unreadable(line, "too many values")
        if depth > MAX_DEPTH:
            raise Unreadable(line, "nested too deeply")
        if char == "{":
            return Located(self._table(depth), line, "", start, self._at)
        if char == "[":
            return Located(self._list(depth), line, "", start, self._at)
        if char == '"':
            text = self._string()
            return Located(text, line, text, start, self._at)
        match = _WORD.match(self._text, self._at)
        if match is None:
            raise Unreadable(line, "this is not JSON: a value is expected here")
        self._at = match.end()
        word = match[0]
        if word in _WORDS:
            return Located(_WORDS[word], line, word, start, self._at)
        if word[0].isalpha():
            raise Unreadable(line, f"this is not JSON: unknown word {word}")
        return Located(float(word) if set(word) & set(".eE") else int(word), line, word, start, self._at)

    def end(self) -> None:
        if self._peek():
            raise Unreadable(self._line, "this is not JSON: something follows the end")

    def _peek(self) -> str:
        char = self._text[self._at : self._at + 1]
        if char > " ":
            return char
        match = _SPACE.match(self._text, self._at)
        assert match is not None
        self._line += match[0].count("\n")
        self._at = match.end()
        return self._text[self._at : self._at + 1]

    def _take(self, *expected: str) -> str:
        char = self._peek()
        if char not in expected or not char:
            words = " or ".join(expected)
            raise Unreadable(self._line, f"this is not JSON: {words} is expected here")
        self._at += 1
        return char

    def _string(self) -> str:
        if self._peek() != '"':
            raise Unreadable(self._line, "this is not JSON: a text in double quotes is expected here")
        try:
            text, self._at = _STRINGS.raw_decode(self._text, self._at)
        except json.JSONDecodeError as broken:
            raise Unreadable(self._line, f"this is not JSON: {broken.msg}") from None
        return check_text(text, self._line)

    def _list(self, depth: int) -> list[Located]:
        self._take("[")
        found: list[Located] = []
        if self._peek() == "]":
            self._take("]")
            return found
        while True:
            found.append(self.read(depth + 1))
            if self._take(",", "]") == "]":
                return found

    def _table(self, depth: int) -> dict[str, Located]:
        self._take("{")
        table: dict[str, Located] = {}
        if self._peek() == "}":
            self._take("}")
            return table
        while True:
            self._peek()
            line, key_start = self._line, self._at
            key = self._string()
            if key in table:
                raise Unreadable(line, f'the key "{key}" stands here a second time')
            self._take(":")
            inner = self.read(depth + 1)
            # The key's line is what a person looks for, also when the value starts below it.
            table[key] = Located(inner.value, line, inner.text, inner.start, inner.end, key_start)
            if self._take(",", "}") == "}":
                return table
