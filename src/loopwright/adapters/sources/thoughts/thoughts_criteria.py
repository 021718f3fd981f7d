"""What a phase says it is measured by: the list items below *Success Criteria* and its like, and who checks each."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from loopwright.adapters.sources.text.criteria import runnable
from loopwright.adapters.sources.text.markdown import Item, Markdown
from loopwright.adapters.sources.text.titles import plain_title, without_comments
from loopwright.core.values.criteria import MAX_ENTRY, checks_in
from loopwright.core.values.policy import GateCommand

_CRITERIA: Final = re.compile(
    r"(?:success|acceptance|exit|completion) criteri|definition of done|done when"
    r"|(?:验收|驗收|完成|成功)(?:标准|標準|条件)|(?:受け?入れ?|完了|成功)(?:基準|条件)"
    r"|^(?:automated|manual)\b|verification|validation\b"
)
_AUTOMATED: Final = re.compile(r"\bautomat(?:ed|ic)\b")
_MANUAL: Final = re.compile(r"\bmanual(?:ly)?\b|\bby hand\b|\bhuman\b")
_PREFIX: Final = re.compile(r"\W{0,4}(automated|manual)\b[^:`]{0,40}:", re.IGNORECASE)
_RED: Final = re.compile(r"\bfails?\b|\(red\)", re.IGNORECASE)
"""What has to fail before the work: no result can show it."""
_GREEN: Final = re.compile(
    r"(?:\b(?:no|none|nothing|never|not|without|zero|0)\b|n['’]t\b)[\w ]{0,60}?\bfails?\b", re.IGNORECASE
)
"""What must not fail: a result can show that."""
_LONGEST: Final = 120


class Group(Enum):
    """Who checks a criterion."""

    PLAIN = auto()
    """The plan does not say."""
    AUTOMATED = auto()
    MANUAL = auto()
    OTHER = auto()
    """It is below another heading among the criteria."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The criteria of a phase."""

    criteria: tuple[str, ...]
    """What the work is measured by, except for what a person checks."""
    acceptance: tuple[GateCommand, ...]
    manual: tuple[str, ...]
    """What a person checks."""


def measured_by(markdown: Markdown, start: int, end: int) -> Measured:
    """Return the criteria between the heading of a phase (-1: the whole file) and a line, and those that can be run.

    Commands are below *Automated*, or right below the criteria if no part is called that: there an item that ends in
    code behind a colon, or consists of commands. Nothing below another heading is run.
    """
    found = []
    for item in _items(markdown, start, end):
        group = group_of(markdown, item, start)
        words = without_comments(item.words)[0].strip()
        if group is not None and words and not _is_red(words.partition("`")[0]):
            found.append((words, group))
    run = Group.AUTOMATED if any(group is Group.AUTOMATED for _, group in found) else Group.PLAIN
    commands = (command for words, group in found if group is run for command in checks_in(words))
    return Measured(
        criteria=tuple(dict.fromkeys(words for words, group in found if group is not Group.MANUAL)),
        acceptance=runnable(commands),
        manual=tuple(dict.fromkeys(words for words, group in found if group is Group.MANUAL)),
    )


def group_of(markdown: Markdown, item: Item, start: int) -> Group | None:
    """Return who checks an item of the phase that starts at a line; None if it is not a criterion."""
    prefix = _PREFIX.match(item.words[:_LONGEST])
    group = {"automated": Group.AUTOMATED, "manual": Group.MANUAL}[prefix[1].lower()] if prefix else None
    for title, is_heading in _titles(markdown, item, start):
        plain = title[:_LONGEST].casefold()
        if group is None and _MANUAL.search(plain):
            group = Group.MANUAL
        elif group is None and _AUTOMATED.search(plain):
            group = Group.AUTOMATED
        if _CRITERIA.search(plain):
            return group or Group.PLAIN
        if group is None and is_heading:
            group = Group.OTHER
    return None


def _items(markdown: Markdown, start: int, end: int) -> Iterator[Item]:
    return (item for item in markdown.items if start <= item.line < end)


def _titles(markdown: Markdown, item: Item, start: int) -> Iterator[tuple[str, bool]]:
    """Return what is above an item, the nearest first: items around it, a label, headings below the phase's own."""
    parent = item.parent
    while parent is not None:
        yield plain_title(markdown.items[parent].words), False
        parent = markdown.items[parent].parent
    label = markdown.label_at(item.line)
    if label is not None:
        yield label.title, False
    for number in markdown.around(item.section):
        section = markdown.sections[number]
        if section.line <= start or section.level == 1:
            return
        yield section.title.strip(" :.0123456789"), True


def _is_red(words: str) -> bool:
    return _RED.search(_GREEN.sub("", words[:MAX_ENTRY])) is not None
