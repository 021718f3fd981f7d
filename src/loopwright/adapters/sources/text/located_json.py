"""Reading JSON into plain values that know their line and place: the standard parser does not tell them."""

import json
import re
from collections.abc import Mapping
from itertools import islice
from typing import Final

from loopwright.adapters.sources.text.located import MAX_NODES, Located, check_text
from loopwright.adapters.sources.text.problems import MAX_DEPTH, Unreadable

LOOK: Final = 1000
"""After so many values the others are counted: what is wrong at the beginning is told first."""


def read_json(text: str, line: int = 1, *, most: int = MAX_NODES, look: int = LOOK) -> Located:
    """Read one JSON document, which begins on this line of its file, or raise `Unreadable`.

    It may have `most` values; when `look` of them were read, the others are counted.
    """
    reader = _JsonReader(text, line, most, look)
    document = reader.read(0)
    reader.end()
    return document


_SPACE: Final = re.compile(r"[ \t\n\r]*")
_WORD: Final = re.compile(
    r"-?(?:0|[1-9][0-9]{0,99})(?:\.[0-9]{1,100})?(?:[eE][-+]?[0-9]{1,3})?|[A-Za-z]{1,10}"
)
_STRINGS: Final = json.JSONDecoder()
_WORDS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None}


_TEXT: Final = re.compile(r'"(?:[^"\\]+|\\.)*"')
_MARK: Final = re.compile(r"(?:,|[\[{](?!\s*[\]}]))\s*")
"""What stands before a value, or before its key: a comma, or the beginning of a list or table that is not empty."""


def _bound(text: str, line: int, most: int) -> None:
    """Raise when the text has more values than may be read, in a fraction of the time that reading them takes."""
    if sum(map(text.count, ",[{")) < most:
        return  # as every file that a person has written
    # A text may have such marks in it, but no end of line. Before the first value of all stands none.
    bare = _TEXT.sub("0", text)
    beyond = next(islice(_MARK.finditer(bare), most - 1, None), None)
    if beyond is not None:
        raise Unreadable(line + bare.count("\n", 0, beyond.end()), "too many values")


class _JsonReader:
    """Walks through the text once, counting lines."""

    def __init__(self, text: str, line: int, most: int, look: int) -> None:
        self._text = text
        self._most, self._look = most, look
        self._at = 0
        self._line = self._first = line
        self._nodes = 0

    def read(self, depth: int, key_line: int | None = None, key_start: int = -1) -> Located:
        """Read one value; a table's value has the line of its key, which is what a person looks for."""
        char = self._peek()
        line, start = self._line, self._at
        self._nodes += 1
        if self._nodes == self._look:
            _bound(self._text, self._first, self._most)
        if self._nodes > self._most:
            raise Unreadable(line, "too many values")
        if depth > MAX_DEPTH:
            raise Unreadable(line, "nested too deeply")
        value: str | int | float | bool | list[Located] | dict[str, Located] | None
        if char == '"':
            value = word = self._string()
        elif char == "{":
            value, word = self._table(depth), ""
        elif char == "[":
            value, word = self._list(depth), ""
        else:
            value, word = self._word()
        return Located(value, line if key_line is None else key_line, word, start, self._at, key_start)

    def end(self) -> None:
        if self._peek():
            raise Unreadable(self._line, "this is not JSON: something follows the end")

    def _word(self) -> tuple[float | int | bool | None, str]:
        match = _WORD.match(self._text, self._at)
        if match is None:
            raise Unreadable(self._line, "this is not JSON: a value is expected here")
        self._at = match.end()
        word = match[0]
        if word in _WORDS:
            return _WORDS[word], word
        if word[0].isalpha():
            raise Unreadable(self._line, f"this is not JSON: unknown word {word}")
        return (float(word) if set(word) & set(".eE") else int(word)), word

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
        # Spelled out for what stands right here: a large file has millions of these.
        char = self._text[self._at : self._at + 1]
        if char not in expected:
            char = self._peek()
        if char not in expected or not char:
            words = " or ".join(expected)
            raise Unreadable(self._line, f"this is not JSON: {words} is expected here")
        self._at += 1
        return char

    def _string(self) -> str:
        at = self._at
        if self._text[at : at + 1] != '"' and self._peek() != '"':
            raise Unreadable(self._line, "this is not JSON: a text in double quotes is expected here")
        try:
            text, self._at = _STRINGS.raw_decode(self._text, self._at)
        except json.JSONDecodeError as broken:
            raise Unreadable(self._line, f"this is not JSON: {broken.msg}") from None
        return text if text.isascii() and "\0" not in text else check_text(text, self._line)

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
                raise Unreadable(line, f'the key "{key}" is here a second time')
            self._take(":")
            table[key] = self.read(depth + 1, line, key_start)
            if self._take(",", "}") == "}":
                return table
