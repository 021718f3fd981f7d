"""Reading YAML into plain values that know their line, safely.

A file comes from outside: aliases are counted as often as they are used, so that a small file cannot
become a huge one, and nesting has an end.
"""

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from loopwright.adapters.sources.text.problems import MAX_DEPTH, Unreadable

MAX_NODES: Final = 200_000
_YAML_TAG: Final = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True)
class Located:
    """A value and the line that it starts on; in lists and tables the inner values are located too."""

    value: "str | int | float | bool | list[Located] | dict[str, Located] | None"
    line: int
    text: str = ""
    """A scalar as it was written."""
    start: int = -1
    """Where in a JSON text the value begins and ends, and where its key begins if it has one."""
    end: int = -1
    key_start: int = -1

    def plain(self) -> Any:
        """Return the value without its lines."""
        if isinstance(self.value, dict):
            return {key: inner.plain() for key, inner in self.value.items()}
        if isinstance(self.value, list):
            return [inner.plain() for inner in self.value]
        return self.value


def tables(found: Located | None) -> list[Located]:
    """Return the entries of a list that are tables, whatever else a person has put there."""
    entries = found.value if found is not None and isinstance(found.value, list) else []
    return [entry for entry in entries if isinstance(entry.value, dict)]


def inner(found: Located, key: str) -> Located | None:
    """Return the value of a table's key, if it is a table and has the key."""
    return found.value.get(key) if isinstance(found.value, dict) else None


def plain(found: Located, key: str, otherwise: Any = None) -> Any:
    """Return the plain value of a table's key; null is as good as nothing."""
    held = inner(found, key)
    value = held.plain() if held is not None else None
    return otherwise if value is None else value


def words(found: Located, key: str) -> str:
    """Return what is written at a table's key, if that is a text or a number."""
    held = inner(found, key)
    return held.text.strip() if held is not None and isinstance(held.value, str | int | float) else ""


def line_of(located: Located, dotted: str) -> int:
    """Return the line of an inner key, or of the nearest thing around it."""
    line = located.line
    for part in dotted.split("."):
        if not isinstance(located.value, dict) or part not in located.value:
            return line
        located = located.value[part]
        line = located.line
    return line


def read_yaml(text: str) -> Located:
    """Read one YAML 1.2 document, or raise `Unreadable`."""
    return located_yaml(text)[0]


def located_yaml(text: str) -> tuple[Located, Any]:
    """Read one YAML 1.2 document; return it, and the node that knows where in the text everything stands."""
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.reader import ReaderError

    from loopwright.adapters.sources.text.bounded_yaml import composed

    try:
        with warnings.catch_warnings():
            # An anchor that is used again is legal; a warning about it would not help.
            warnings.simplefilter("ignore")
            node = composed(text)
    except MarkedYAMLError as broken:
        mark = broken.problem_mark or broken.context_mark
        raise Unreadable(mark.line + 1 if mark else None, f"this is not YAML: {_words(broken)}") from broken
    except ReaderError as broken:
        line = text.count("\n", 0, broken.position) + 1
        raise Unreadable(line, "this is not YAML: a control character is not allowed") from broken
    except (YAMLError, ValueError) as broken:
        raise Unreadable(None, f"this is not YAML: {' '.join(str(broken).split())}") from broken
    except RecursionError as broken:
        raise Unreadable(None, "nested too deeply") from broken
    if node is None:
        raise Unreadable(None, "the file is empty")
    return _YamlReader().read(node, 0), node


def _words(broken: Any) -> str:
    words = str(broken.problem or "unreadable")
    if str(broken.context).startswith("expected"):
        words = f"{broken.context} {words}"
    if "\\t" in words or "'\t'" in words:
        words += " (indent with spaces, not with tabs)"
    return words


class _YamlReader:
    """Turns composed nodes into located values within the bounds."""

    def __init__(self) -> None:
        self._nodes = 0

    def read(self, node: Any, depth: int) -> Located:
        line = node.start_mark.line + 1
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise Unreadable(line, "too many values (aliases count each time they are used)")
        if depth > MAX_DEPTH:
            raise Unreadable(line, "nested too deeply")
        tag = str(node.tag)
        if node.id == "mapping" and tag == f"{_YAML_TAG}map":
            return Located(self._table(node, depth), line)
        if node.id == "sequence" and tag == f"{_YAML_TAG}seq":
            return Located([self.read(inner, depth + 1) for inner in node.value], line)
        if node.id == "scalar":
            text = check_text(node.value, line)
            return Located(_scalar(tag, text, line), line, text)
        raise Unreadable(line, f"the tag {tag} is not allowed here")

    def _table(self, node: Any, depth: int) -> dict[str, Located]:
        table: dict[str, Located] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.id != "scalar":
                raise Unreadable(line, "a key must be a text")
            if str(key_node.tag) == f"{_YAML_TAG}merge":
                raise Unreadable(line, "merging with << is not supported: write the keys out")
            key = check_text(key_node.value, line)
            if key in table:
                raise Unreadable(line, f'the key "{key}" is here a second time')
            inner = self.read(value_node, depth + 1)
            # The key's line is what a person looks for, also when the value starts below it.
            table[key] = Located(inner.value, line, inner.text)
        return table


_INT: Final = re.compile(r"[-+]?(0o[0-7_]+|0x[0-9a-fA-F_]+|0b[01_]+|[0-9][0-9_]*)")


# All words of YAML 1.1 too: a file may declare itself to be of that version.
_BOOLEANS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("true", "yes", "on", "y"), True),
    **dict.fromkeys(("false", "no", "off", "n"), False),
}


def _scalar(tag: str, text: str, line: int) -> str | int | float | bool | None:
    kind = tag.removeprefix(_YAML_TAG)
    if kind in ("str", "timestamp"):
        return text
    if kind == "null":
        return None
    if kind == "bool" and text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    if kind in ("int", "float") and len(text) <= 100:
        digits = text.replace("_", "")
        try:
            if kind == "int" and _INT.fullmatch(text):
                based = digits.lstrip("+-")[:2] in ("0o", "0x", "0b")
                return int(digits, 0 if based else 10)
            return float(digits.lower().replace(".inf", "inf").replace(".nan", "nan"))
        except ValueError:
            raise Unreadable(line, f"not a number: {digits[:40]}") from None
    if kind in ("int", "float"):
        raise Unreadable(line, "a number with too many digits")
    raise Unreadable(line, f"the tag {tag} is not allowed for this value")


def check_text(text: str, line: int) -> str:
    """Return `text`, or raise when it could not be stored."""
    if "\0" in text:
        raise Unreadable(line, "the character NUL is not allowed")
    try:
        # JSON writes a character beyond the first plane as two escapes; YAML leaves them apart.
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise Unreadable(line, "half of a surrogate pair is not a character") from None
