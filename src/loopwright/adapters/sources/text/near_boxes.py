"""Lines that look like a checkbox but are not one: each is an error or a note, so that no task is lost in silence."""

from collections.abc import Mapping, Sequence
from typing import Final

from loopwright.adapters.sources.text.markdown import MARKS, Kind, Line
from loopwright.adapters.sources.text.problems import Problems
from loopwright.config.nearest import quoted
from loopwright.ports import Mark

_TICKS: Final = frozenset("vVхХ×✓✔☑✅√")
"""What people write for a cross, the Cyrillic letter included."""


def wrong_mark(box: str, marks: Mapping[str, Mark] = MARKS) -> str:
    """Return what is wrong with a box that has no known mark in it."""
    if not box:
        return "[] needs a space to be a checkbox: write [ ]"
    known = ", ".join(f"[{mark}]" for mark in marks)
    return f"unknown mark [{box}]: known are {known}"


def is_box(line: Line) -> bool:
    """Return whether brackets are a checkbox: `[a]` and `[1]` could be references."""
    return line.box is not None and (line.box in MARKS or not line.box.isalnum())


def is_sign(line: Line) -> bool:
    """Return whether a checkbox has a sign in it that is not a mark."""
    return bool(line.box) and line.box not in MARKS


def is_almost(line: Line) -> bool:
    """Return whether brackets look like a checkbox but are not one, nor a number, a footnote or a definition."""
    inside = (line.box or None) if line.almost is None else line.almost
    if inside is None or is_box(line) or inside.isdigit() or inside.startswith("^"):
        return False
    after = _after(line)
    if after.startswith("*") or (inside.strip() and after.startswith(":")):
        return False
    return is_meant(inside) or after.startswith(" ")


def _after(line: Line) -> str:
    """Return what follows the brackets."""
    return line.text[line.almost_end :] if line.almost is not None else line.text.partition("]")[2]


def is_meant(inside: str) -> bool:
    """Return whether brackets with this inside can only mean a box; `[UI]` is a word, and `[A]` one of several."""
    bare = inside.strip().replace("\ufe0f", "")
    return bare in MARKS or bare in _TICKS or not any(char.isalnum() for char in bare)


def _is_loose(line: Line, inside: str, after: str, *, beside: bool) -> bool:
    """Return whether this is more likely a type such as `[]string`, a legend, or words in italics."""
    if inside.strip() and inside.strip() not in MARKS:
        return not beside
    if line.kind is Kind.TEXT and line.words.startswith("*") and line.words.count("*") % 2 == 0:
        return True
    if inside or after[:1].isspace():
        return not beside and after.startswith((":", ",", ";"))
    return not beside or after[:1].islower()


def tell_almost(
    line: Line, number: int, problems: Problems, *, beside: bool, marks: Mapping[str, Mark] = MARKS
) -> None:
    """Note how it should look: a task that is silently skipped is never done.

    `beside` says whether the same section has real tasks.
    """
    inside = (line.box if line.almost is None else line.almost) or ""
    mark, after = inside.strip() or " ", _after(line)
    shown, bullet = quoted(line.text.strip()), line.bullet or line.text.strip().partition("[")[0]
    known = ", ".join(f"[{mark}]" for mark in marks)
    if len(mark) > 1 and any(char.isalnum() for char in mark):
        problems.warn(
            number, "", f"{shown} is read as text: a task has one sign in its brackets, such as {bullet} [ ]"
        )
    elif not is_meant(inside) or _is_loose(line, inside, after, beside=beside):
        problems.warn(number, "", f"{shown} is read as text: the marks of tasks are {known}")
    elif mark in marks:
        good = quoted(f"{bullet} [{mark}] {after.strip()}".strip())
        problems.note(number, "", f"{shown} is not a checkbox: write {good}")
    else:
        problems.note(number, "", f"{wrong_mark(mark, marks)}; if this is not a task, write \\[{inside}]")


def tell_disputed(found: Sequence[tuple[int, str]], problems: Problems) -> None:
    """Note once that open boxes say in words that they are settled; each is a question."""
    if found:
        line, first = found[0]
        many = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        told = f"{quoted(first)}{many} is called done or dropped, but its box is open: Loopwright asks you"
        problems.warn(line + 1, "", told)
