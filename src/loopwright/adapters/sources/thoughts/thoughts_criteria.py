"""What a phase says it is measured by: the bullets below *Success Criteria*, and the commands among them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from loopwright.adapters.sources.text.criteria import runnable
from loopwright.adapters.sources.text.markdown import Kind, Line
from loopwright.adapters.sources.text.titles import without_comments
from loopwright.core.values.criteria import MAX_ENTRY, checks_in
from loopwright.core.values.policy import GateCommand

_SECTION: Final = "success criteria"
_AUTOMATED: Final = "automated"
_GROUPS: Final = (_AUTOMATED, "manual")
_RED: Final = re.compile(r"\bfails?\b|\(red\)", re.IGNORECASE)
"""What is to fail before the work: nothing that could be asked of its result."""
_GREEN: Final = re.compile(
    r"(?:\b(?:no|none|nothing|never|not|without|zero|0)\b|n['’]t\b)[\w ]{0,60}?\bfails?\b", re.IGNORECASE
)
"""What is not to fail: just that is asked of it."""


@dataclass(frozen=True, slots=True)
class _Bullet:
    words: str
    group: str
    """Which of the groups it is in; empty right below the section's heading."""


def measured_by(lines: Sequence[Line]) -> tuple[tuple[str, ...], tuple[GateCommand, ...]]:
    """Return the criteria of a phase, and those that can be run.

    Commands are what stands below *Automated*, or right below the section where it has no such part: there a bullet
    that ends in code behind a colon, or is nothing but commands. Nothing below another heading is run.
    """
    found = [one for one in _bullets(lines) if not _is_red(one.words.partition("`")[0])]
    run = _AUTOMATED if any(one.group == _AUTOMATED for one in found) else ""
    commands = (command for one in found if one.group == run for command in checks_in(one.words))
    return tuple(dict.fromkeys(one.words for one in found)), runnable(commands)


def _is_red(words: str) -> bool:
    return _RED.search(_GREEN.sub("", words[:MAX_ENTRY])) is not None


def _bullets(lines: Sequence[Line]) -> Iterator[_Bullet]:
    level, group = 0, ""
    for line in lines:
        title = without_comments(line.words)[0].strip(" *_:").casefold()
        part = next((one for one in _GROUPS if title.startswith(one)), "")
        if line.kind is Kind.HEADING and (not level or line.level <= level):
            level, group = line.level if title.startswith(_SECTION) else 0, ""
        elif line.kind is Kind.HEADING:
            group = part or "other"
        elif line.kind is Kind.TEXT and line.words.startswith("**") and part:
            group = part
        elif level and line.kind is Kind.BULLET and (words := without_comments(line.words)[0].strip()):
            yield _Bullet(words, group)
