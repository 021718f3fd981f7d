"""What the headings around a task say about it: that a person does it, or that it is finished."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Final

from loopwright.adapters.sources.text.markdown import Kind, Markdown, Section
from loopwright.adapters.sources.text.titles import is_manual, plain
from loopwright.ports import Mark

_FINISHED: Final = re.compile(
    r"✅|☑|✔|\[x\]|[\[(][ \t]*(?:completed?|done|finished|implemented)[ \t]*[\])]"
    r"|[-–—:][ \t]*(?:completed?|done)[ \t]*$",
    re.IGNORECASE,
)
_STATUS: Final = re.compile(
    r"(?:[-*+][ \t]+)?(?:\*\*|__)?status(?:\*\*|__)?[ \t]*:(?:\*\*|__)?[ \t]*(.*)", re.IGNORECASE
)
_DONE_WORDS: Final = re.compile(
    r"\W*(?:completed?|done|finished|implemented|shipped|merged)\b", re.IGNORECASE
)
_NUMBERED: Final = re.compile(
    r"^\W*(?:(?:gate|milestone|phase|sprint|stage|step|task)[ \t]+)?(?:#?[A-Z]?[0-9][\w.]{0,7}[ \t]*[.:)–—-]*[ \t]*)?",
    re.IGNORECASE,
)
_MANUAL: Final = re.compile(r"manual(?:ly)?\b", re.IGNORECASE)
_BY_PEOPLE: Final = re.compile(
    r"human[ -](?:accept|approv|check|qa|review|sign|test|valid|verif)\w*|uat\b|user acceptance (?:check|test)"
    r"|(?:(?:final|owner|product|stakeholder|user)[ \t]+)?(?:approvals?|sign-?offs?)\W*$",
    re.IGNORECASE,
)


_TASKS: Final = re.compile(r"tasks$|task(?:[ \t]+[0-9][\w.]{0,7})?(?:$|[ \t]*[:–—-])")
"""The heading of tasks, or of one: `Tasks`, `Task 1: Add it`, without the number at its end."""
_NEAR: Final = 12
"""How many lines below its heading may have the status of a section."""
_FEW: Final = 10


def without_finished(title: str) -> str:
    """Return a heading without what says that it is finished."""
    return _FINISHED.sub("", title).strip() or title


def says_done(title: str) -> bool:
    """Return whether a heading says that its task is finished: ✅, [COMPLETED], (done)."""
    return _FINISHED.search(title) is not None


def status_in(lines: Iterable[str]) -> Mark | None:
    """Return what a line such as `**Status**: Complete` says; None without one."""
    said = next((match[1] for text in lines if (match := _STATUS.match(text.strip())) is not None), None)
    if said is None:
        return None
    return Mark.DONE if _DONE_WORDS.match(said) or _FINISHED.match(said) else Mark.OPEN


def own_text(markdown: Markdown, section: Section) -> Iterator[str]:
    """Return the lines of a section above its first subsection."""
    return (
        line.text
        for line in markdown.lines[section.line + 1 : section.end]
        if line.kind in (Kind.TEXT, Kind.BULLET)
    )


def is_manual_heading(title: str) -> bool:
    """Return whether everything below a heading is for a person: `Manual testing`, `Phase 0: Approval`."""
    words = _NUMBERED.sub("", title, count=1)
    is_said = _MANUAL.match(words) is not None and is_manual(words)
    return is_said or _BY_PEOPLE.match(words) is not None


def checks_tasks(markdown: Markdown, section: int) -> bool:
    """Return whether a section is the *Verification* beside tasks, or the final one: it says what must be true."""
    one = markdown.sections[section]
    if plain(one.title).removeprefix("final ") != "verification":
        return False
    beside = markdown.sections[max(section - _FEW, 0) : section]
    return any(other.parent == one.parent and _TASKS.match(plain(other.title)) for other in beside)


def section_at(markdown: Markdown, line: int) -> int:
    """Return the index of the section that a line is in."""
    return bisect_right(markdown.sections, line, key=lambda one: one.line) - 1


def is_for_people(markdown: Markdown, section: int) -> bool:
    """Return whether a heading around a place says that a person does what is below it."""
    return any(
        is_manual_heading(one.title)
        for at in markdown.around(section)
        if (one := markdown.sections[at]).level > 1
    )


def _above_boxes(markdown: Markdown, section: Section) -> Iterator[str]:
    """Return the first lines of a section, up to its first box."""
    near = markdown.lines[section.line + 1 : min(section.end, section.line + 1 + _NEAR)]
    return (line.text for line in takewhile(lambda line: line.box is None, near))


def is_called_finished(markdown: Markdown, section: int) -> bool:
    """Return whether the nearest heading around a place that says how far it is says that it is finished."""
    for at in markdown.around(section):
        one = markdown.sections[at]
        said = status_in(_above_boxes(markdown, one)) if one.level > 1 else None
        if said is not None:
            return said is Mark.DONE
        if one.level > 1 and says_done(one.title):
            return True
    return False
