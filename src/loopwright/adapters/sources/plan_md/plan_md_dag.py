"""The `dag:` block of a checkbox plan: the part of YAML that such blocks are written in, with lines.

A whole YAML reader takes seconds for a thousand nodes. This one reads what the format uses (entries, texts, lists on
one line or several) and says where something else stands.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from loopwright.adapters.sources.text.markdown import Kind, Line
from loopwright.adapters.sources.text.problems import Problems
from loopwright.config.nearest import quoted

MAX_SIZE: Final = 1_000_000
Value = str | list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One node or group, with the line that it begins on."""

    line: int
    values: dict[str, Value] = field(default_factory=dict)

    def text(self, key: str) -> str:
        """Return a value that is one text."""
        value = self.values.get(key, "")
        return value if isinstance(value, str) else ", ".join(value)

    def texts(self, key: str) -> list[str]:
        """Return a value that is a list; a text is a list of one."""
        value = self.values.get(key, [])
        return [value] if isinstance(value, str) and value else list(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dag:
    """What the block says: `nodes` and `parallel_groups`."""

    start: int
    """Index of the block's first line, the fence."""
    end: int
    entries: Mapping[str, Sequence[Entry]]


def read_dag(lines: Sequence[Line], problems: Problems) -> Dag | None:
    """Return the plan's `dag:` block, if it has one; what cannot be read in it is a problem."""
    for start, end in _blocks(lines):
        inner = [(at + 1, lines[at].text) for at in range(start + 1, end)]
        inner = [
            (number, text) for number, text in inner if text.strip() and not text.lstrip().startswith("#")
        ]
        if inner and inner[0][1].strip().rstrip(":") == "dag" and inner[0][1].rstrip().endswith(":"):
            return Dag(start=start, end=end + 1, entries=_entries(_bounded(inner[1:], problems), problems))
    return None


def _bounded(lines: list[tuple[int, str]], problems: Problems) -> list[tuple[int, str]]:
    size = 0
    for at, (number, text) in enumerate(lines):
        size += len(text)
        if size > MAX_SIZE:
            problems.note(number, "dag", f"the block has more than {MAX_SIZE} characters")
            return lines[:at]
    return lines


def _blocks(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    start = -1
    for at, line in enumerate(lines):
        if line.kind is not Kind.FENCE:
            continue
        if start < 0:
            start = at
        else:
            if lines[start].words.casefold() in ("", "yaml", "yml"):
                yield start, at
            start = -1


_MEMBER: Final = re.compile(r"([A-Za-z_][\w-]{0,40})[ \t]*:(?:[ \t]+|$)")


def _entries(lines: list[tuple[int, str]], problems: Problems) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    part = ""
    outer = -1
    entry_indent = -1
    key = ""
    for number, text in lines:
        indent = len(text) - len(text.lstrip())
        words = text.strip()
        if "\t" in text[:indent]:
            problems.note(number, "dag", "indent with spaces, not with tabs")
            continue
        if outer < 0:
            outer = indent
        if indent <= outer and not words.startswith("-"):
            name, colon, rest = words.partition(":")
            part, entry_indent, key = name.strip(), -1, ""
            if not colon or _comment_cut(rest).strip() not in ("", "[]"):
                problems.note(number, "dag", f"expected nodes: or parallel_groups:, not {quoted(words)}")
            found.setdefault(part, [])
            continue
        if not part:
            problems.note(number, "dag", f"expected nodes: or parallel_groups:, not {quoted(words)}")
            continue
        dashed = words == "-" or words.startswith("- ")
        if dashed and (entry_indent < 0 or indent <= entry_indent):
            entry_indent, key = indent, ""
            found[part].append(Entry(line=number))
            words = words[1:].strip()
            if words.startswith("{"):
                _flow_entry(found[part][-1], words, number, problems)
                continue
            if not words:
                continue
        elif dashed:
            _item(found[part], key, words[1:].strip(), number, problems)
            continue
        key = (
            _member(found[part], words, number, problems) if found[part] else _astray(words, number, problems)
        )
    return found


def _astray(words: str, number: int, problems: Problems) -> str:
    problems.note(number, "dag", f"expected an entry that begins with a dash, not {quoted(words)}")
    return ""


def _member(entries: list[Entry], words: str, number: int, problems: Problems) -> str:
    match = _MEMBER.match(words)
    if match is None:
        return _astray(words, number, problems)
    key = match[1]
    if key in entries[-1].values:
        problems.note(number, "dag", f"the key {quoted(key)} is here a second time")
        return key
    rest = words[match.end() :].strip()
    value, end = _value(rest, 0, "", 0) if rest else ("", 0)
    if value is None or _comment_cut(rest[end:]).strip():
        problems.note(number, "dag", f"{key}: expected a text or a list such as [1.1, 1.2]")
        value = ""
    entries[-1].values[key] = value
    return key


def _item(entries: list[Entry], key: str, words: str, number: int, problems: Problems) -> None:
    value, end = _value(words, 0, "", 0)
    if not key or not isinstance(value, str) or _comment_cut(words[end:]).strip():
        problems.note(number, "dag", f"expected a text in a list, not {quoted(words)}")
        return
    present = entries[-1].values[key]
    if isinstance(present, list):
        present.append(value)
    elif present:
        problems.note(number, "dag", f"{key}: expected either a text or a list")
    else:
        entries[-1].values[key] = [value]


def _flow_entry(entry: Entry, words: str, number: int, problems: Problems) -> None:
    at = 1
    while at < len(words):
        at = _skip(words, at)
        if words[at : at + 1] == "}":
            if _comment_cut(words[at + 1 :]).strip():
                break
            return
        match = _MEMBER.match(words, at)
        if match is None:
            break
        value, at = _value(words, match.end(), ",}", 0)
        if value is None or match[1] in entry.values:
            break
        entry.values[match[1]] = value
        at = _skip(words, at)
        if words[at : at + 1] == ",":
            at += 1
    problems.note(number, "dag", "expected an entry such as {id: 1.1, depends_on: [1.0]} on one line")


_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|' + r"'((?:[^']|'')*)'")
_ENDS: Final = {",]": re.compile(r"[,\]]"), ",}": re.compile(r"[,}]")}


def _value(text: str, at: int, ends: str, depth: int) -> tuple[Value | None, int]:
    """Return the value at a place and where it ends; None for what is none. A plain text ends before `ends`."""
    at = _skip(text, at)
    if text[at : at + 1] == "[" and depth == 0:
        found: list[str] = []
        at = _skip(text, at + 1)
        while at < len(text) and text[at] != "]":
            inner, at = _value(text, at, ",]", depth + 1)
            if not isinstance(inner, str):
                return None, at
            found += [inner] if inner else []
            at = _skip(text, at)
            if text[at : at + 1] == ",":
                at = _skip(text, at + 1)
        return (found, at + 1) if at < len(text) else (None, at)
    if text[at : at + 1] in ('"', "'"):
        match = _QUOTED.match(text, at)
        if match is None:
            return None, at
        double = match[1] is not None
        words = re.sub(r"\\(.)", r"\1", match[1]) if double else match[2].replace("''", "'")
        return words, match.end()
    if text[at : at + 1] in ("[", "{", "&", "*", "|", ">", "!"):
        return None, at
    stop = _ENDS[ends].search(text, at) if ends else None
    end = stop.start() if stop is not None else len(text)
    comment = text.find(" #", at, end)
    end = comment if comment >= 0 and not ends else end
    words = text[at:end].strip()
    return ("" if words in ("null", "~") else words), end


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t":
        at += 1
    return at


def _comment_cut(rest: str) -> str:
    return "" if rest.lstrip().startswith("#") else rest
