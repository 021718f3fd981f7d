"""The line that tells how a phase stands, where no checkbox of an overview does."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from loopwright.adapters.sources.plan_md.plan_md_write import Rows
from loopwright.adapters.sources.text.markdown import Line
from loopwright.adapters.sources.text.titles import OURS, SHA_LENGTH, one_line, without_comments
from loopwright.ports import ItemProgress, Mark

_STATUS: Final = re.compile(
    r"\*\*Status\*\*: (open|running|done|blocked|skipped)(?: in ([0-9a-f]{7,64}))?(?:: (.*))?$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a phase is marked."""

    mark: Mark = Mark.OPEN
    commit: str | None = None
    reason: str = ""


def status_at(lines: Sequence[Line]) -> int | None:
    """Return where among these lines the status is, if it is told here."""
    return next((at for at, line in enumerate(lines) if _matched(line) is not None), None)


def standing_in(lines: Sequence[Line]) -> Standing:
    """Return how a phase stands by the line in its own text."""
    match = next((match for line in lines if (match := _matched(line)) is not None), None)
    return Standing(mark=Mark(match[1]), commit=match[2], reason=match[3] or "") if match else Standing()


def text_of(lines: Sequence[Line]) -> str:
    """Return a phase's text without the line of ours."""
    rows: Rows = [(line.text, None) for line in lines]
    present = status_at(lines)
    if present is not None:
        _take_out(rows, present)
    return "\n".join(text for text, _ in rows).strip()


def tell_status(rows: Rows, present: int | None, place: int, standing: ItemProgress) -> None:
    """Write the line, where it is or at this place; what is open has none."""
    said = standing.mark.value
    if standing.mark is Mark.DONE and standing.commit:
        said += f" in {standing.commit[:SHA_LENGTH]}"
    reason = one_line(standing.reason)
    if standing.mark is Mark.BLOCKED and reason:
        said += f": {reason}"
    status = f"**Status**: {said} {OURS}"
    if present is not None and standing.mark is Mark.OPEN:
        _take_out(rows, present)
    elif present is not None:
        rows[present] = (status, rows[present][1])
    elif standing.mark is not Mark.OPEN:
        rows[place:place] = [("", None), (status, None)] if place else [(status, None), ("", None)]


def _take_out(rows: Rows, present: int) -> None:
    """Take the line of status out, together with the blank one that came with it."""
    del rows[present]
    blank = present - 1 if present else 0
    if blank < len(rows) and not rows[blank][0].strip():
        del rows[blank]


def _matched(line: Line) -> re.Match[str] | None:
    return _STATUS.match(without_comments(line.words)[0]) if OURS in line.text else None
