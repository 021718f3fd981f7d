"""YAML that ends: what would keep the parser busy for minutes is refused where it becomes too much."""

from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.parser import Parser

from loopwright.adapters.sources.text.problems import MAX_DEPTH, Unreadable

MAX_YAML: Final = 1024 * 1024
"""Bytes of a YAML text. It is read by a parser in Python, fifty times as slowly as JSON."""
MAX_LINES: Final = 50_000
_MAX_EVENTS: Final = 70_000
"""Beginnings and ends of lists and tables, texts and aliases: enough for 1,000 tasks with all their keys."""
_ELSE: Final = "write it as JSON, which may be larger"


def composed(text: str) -> Any:
    """Return the root node of one document; None when there is none."""
    if len(text) > MAX_YAML:
        line = text.count("\n", 0, MAX_YAML) + 1
        raise Unreadable(line, f"a YAML file has at most {MAX_YAML // 1024 // 1024} MB: {_ELSE}")
    if text.count("\n") > MAX_LINES:
        raise Unreadable(MAX_LINES, f"the file has more than {MAX_LINES} lines: {_ELSE}")
    yaml = YAML(typ="safe", pure=True)
    yaml.Parser = _Parser
    return yaml.compose(text)


class _Parser(Parser):
    """Counts what it gives to the composer, while it is parsed."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._events = 0
        self._depth = 0

    def get_event(self) -> Any:
        event = super().get_event()
        kind = type(event).__name__
        self._events += 1
        self._depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        # The stream and the document are not counted as levels.
        if self._depth - 2 > MAX_DEPTH + 1:
            raise Unreadable(event.start_mark.line + 1, "nested too deeply")
        if self._events > _MAX_EVENTS:
            raise Unreadable(event.start_mark.line + 1, f"too many values: {_ELSE}")
        return event
