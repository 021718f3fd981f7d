"""Find on which line of a TOML text each key stands: the standard parser does not tell.

The text has been parsed before, so it is valid; what is looked for is only a place to show to a person.
"""

import re
from typing import Final

_BARE: Final = r"[A-Za-z0-9_-]+"
_QUOTED: Final = r'"(?:[^"\\]|\\.)*"|\'[^\']*\''
_PART: Final = re.compile(rf"\s*({_BARE}|{_QUOTED})\s*")
_KEY: Final = re.compile(rf"\s*((?:{_BARE}|{_QUOTED})(?:\s*\.\s*(?:{_BARE}|{_QUOTED}))*)\s*=")
_HEADER: Final = re.compile(
    rf"\s*(\[\[?)\s*((?:{_BARE}|{_QUOTED})(?:\s*\.\s*(?:{_BARE}|{_QUOTED}))*)\s*\]\]?"
)
_FENCE: Final = re.compile(r'"""|\'\'\'')


def key_lines(text: str) -> dict[str, int]:
    """Return the line of each key, dotted, counted from 1; tables in a list as `gates[0].run`."""
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}
    table = ""
    fence: str | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        inside = fence is not None
        fence = _fence_after(line, fence)
        if inside:
            continue
        if header := _HEADER.match(line):
            table = ".".join(_parts(header[2]))
            if header[1] == "[[":
                index = counts.get(table, 0)
                counts[table] = index + 1
                lines.setdefault(table, number)
                table = f"{table}[{index}]"
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            parts = ([table] if table else []) + _parts(key[1])
            for end in range(1, len(parts) + 1):
                lines.setdefault(".".join(parts[:end]), number)
    return lines


def _parts(dotted: str) -> list[str]:
    return [part.strip("\"'") for part in _PART.findall(dotted)]


def _fence_after(line: str, fence: str | None) -> str | None:
    """Return which multi-line string is open after this line."""
    for found in _FENCE.findall(line):
        if fence is None:
            fence = found
        elif fence == found:
            fence = None
    return fence
