"""Reads what commands print: cleans it for storing, and finds the checks that it names."""

import math
import re
from collections.abc import Iterator
from typing import Final

from loopwright.core.gates.verdicts import MAX_MESSAGE, command_id, keep_start
from loopwright.core.values.findings import Check, CheckStatus
from loopwright.core.values.wording import clean

MAX_NAME: Final = 300
_CONTINUED_LINES: Final = 20
_LINE: Final = re.compile(r"\s*\[(PASS|FAIL|SKIP|ERROR)\](?:\s+(.*))?$", re.DOTALL)
_MESSAGE: Final = re.compile(r":\s+|\s+[-–—]\s+|\t+")
STATUS: Final = {
    "PASS": CheckStatus.PASSED,
    "FAIL": CheckStatus.FAILED,
    "SKIP": CheckStatus.SKIPPED,
    "ERROR": CheckStatus.ERROR,
}


def clean_name(text: str) -> str:
    """Return text as a name: one line, of bounded length."""
    name = " ".join(clean(text).split())
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"


def seconds(text: str | None) -> float | None:
    """Read a duration; what cannot be one is unknown."""
    try:
        value = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def line_checks(position: int, command: str, output: str) -> Iterator[Check]:
    """Yield a check for each `[PASS] name`, `[FAIL] name: message`, `[SKIP]` or `[ERROR]` line.

    Indented lines right below belong to its message.
    """
    lines = clean(output).split("\n")
    for n, line in enumerate(lines):
        found = _LINE.match(line)
        if not found:
            continue
        parts = _MESSAGE.split((found.group(2) or "").strip(), maxsplit=1)
        name = clean_name(parts[0]) or command
        message = [parts[1].strip()] if len(parts) > 1 else []
        for below in lines[n + 1 : n + 1 + _CONTINUED_LINES]:
            if not below[:1].isspace() or not below.strip() or _LINE.match(below):
                break
            message.append(below.rstrip())
        yield Check(
            id=f"{command_id(position, command)}/{name}",
            name=name,
            status=STATUS[found.group(1)],
            message=keep_start("\n".join(message), MAX_MESSAGE),
        )
