"""The text of one GSD plan: its `<task>` elements, or its headings `Task 1: Name`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from loopwright.adapters.sources.checklists.headings import is_task_heading
from loopwright.adapters.sources.text.located import check_text
from loopwright.adapters.sources.text.markdown import Markdown, read_markdown
from loopwright.adapters.sources.text.plan_file import decoded_lines
from loopwright.adapters.sources.text.problems import Unreadable
from loopwright.adapters.sources.text.reading import located_at
from loopwright.adapters.sources.text.titles import plain_title
from loopwright.ports import Mark

TASK: Final = re.compile(r"^[ \t]*<task\b([^>\n]{0,300})>", re.MULTILINE)
NUMBERED: Final = re.compile(
    r"Task[ \t]+([0-9]{1,3}(?:\.[0-9]{1,3})?[a-z]?)[ \t]*[:.–—-][ \t]*", re.IGNORECASE
)
_END: Final = re.compile(r"^[ \t]*</task>|</task>[ \t]*$", re.MULTILINE)
_STATUS: Final = re.compile(r"[ \t]+status=[\"']([\w-]*)[\"']")
_DONE: Final = "done"
_SIGN: Final = " ✅"
"""What the heading of a finished task ends with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """One task of a plan."""

    start: int
    """Where its attributes begin, or its heading ends."""
    attributes: str
    """What is there now: the attributes, or the sign of a heading."""
    body: str
    line: int
    headed: bool = False
    """Whether it is a heading, not an element."""

    @property
    def mark(self) -> Mark:
        """Return what its status says."""
        said = _STATUS.search(self.attributes)
        is_done = said is not None and said[1] in (_DONE, "complete", "completed")
        return Mark.DONE if is_done or self.attributes == _SIGN else Mark.OPEN

    def marked(self, *, done: bool) -> str:
        """Return its attributes, or its sign, with this status."""
        if self.headed:
            return _SIGN if done else ""
        bare = _STATUS.sub("", self.attributes)
        return f'{bare} status="{_DONE}"' if done else bare


def plan_text(content: bytes, name: str) -> str:
    """Return the text of a plan, or raise `BadPlan`."""
    try:
        return check_text(decoded_lines(content), 1)
    except Unreadable as broken:
        raise located_at(name, broken) from broken


def has_headings(content: bytes) -> bool:
    """Return whether the tasks of a plan are headings."""
    try:
        markdown = read_markdown(content)
    except Unreadable:
        return False
    return any(is_task_heading(section.title) for section in markdown.sections)


def elements(text: str) -> Iterator[Element]:
    """Return the tasks of a plan: headings count only if it has no element."""
    if TASK.search(text) is None:
        yield from _headings(text)
        return
    at, line = 0, 1
    while (start := TASK.search(text, at)) is not None:
        end = _END.search(text, start.end())
        stop = end.start() if end is not None else len(text)
        line += text.count("\n", at, start.start(1))
        yield Element(start=start.start(1), attributes=start[1], body=text[start.end() : stop], line=line)
        line += text.count("\n", start.start(1), stop)
        at = stop


def _headings(text: str) -> Iterator[Element]:
    try:
        markdown: Markdown = read_markdown(text.encode())
    except Unreadable:
        return
    rows = [f"{row}\n" for row in text.split("\n")]
    starts = [0]
    for row in rows:
        starts.append(starts[-1] + len(row))
    until = 0
    for section in markdown.sections:
        if section.last > len(rows):
            return  # its lines end in another way than those of this text
        if section.line < until or section.line < 0 or not is_task_heading(section.title):
            continue
        until = section.last
        heading = rows[section.line].rstrip()
        sign = _SIGN if heading.endswith(_SIGN) else ""
        title = heading.removesuffix(sign).lstrip("# \t") if sign else heading.lstrip("# \t")
        yield Element(
            start=starts[section.line] + len(heading) - len(sign),
            attributes=sign,
            body=f"{title}\n{text[starts[section.line + 1] : starts[section.last]]}",
            line=section.line + 1,
            headed=True,
        )


def keys(text: str, prefix: str) -> list[str]:
    """Return a key for each task: the number in its name, else its place in the plan."""
    found: list[str] = []
    for place, element in enumerate(elements(text), start=1):
        match = NUMBERED.match(inside(element.body, "name") or first_words(element.body))
        number = match[1] if match is not None else str(place)
        key = f"{prefix}.{number}" if prefix else number
        found.append(key if key not in found[-200:] else f"{key}~{place}")
    return found


def inside(body: str, tag: str) -> str:
    """Return what is in an element of the body; empty without one."""
    start = body.find(f"<{tag}>")
    end = body.find(f"</{tag}>", start)
    return body[start + len(tag) + 2 : end].strip() if 0 <= start < end else ""


def first_words(body: str) -> str:
    """Return the first line of a task that has no name; empty if it begins with another element."""
    first = next((line.strip() for line in body.splitlines() if line.strip()), "")
    bold = re.match(r"\*\*(.+?)\*\*", first)
    return "" if first.startswith("<") else plain_title(bold[1] if bold is not None else first)


def titled(body: str) -> str:
    """Return the title of a task without its number; empty if it has none."""
    title = NUMBERED.sub("", inside(body, "name"), count=1)
    title = title or next(filter(None, (inside(body, tag) for tag in ("decision", "what-built", "what"))), "")
    return " ".join((title or NUMBERED.sub("", first_words(body), count=1)).split())
