"""Steps of a plan that the user does: the question about one, and the meaning of an answer."""

import re
from collections.abc import Sequence
from typing import Final

from loopwright.core.values.wording import on_one_line, shortened, visible

KIND: Final = "manual"
DONE: Final = "done"
SKIP: Final = "skip"
FAILED: Final = "failed"
OPTIONS: Final = (DONE, SKIP, FAILED)
_LONGEST: Final = 4000
_SAID: Final = re.compile(r"(\w+)\s*(?:[:,]\s*(.*))?", re.DOTALL)


def words(title: str, description: str, criteria: Sequence[str]) -> str:
    """Return the question about a manual step."""
    lines = [f"Do this by hand: {on_one_line(title)}"]
    if description.strip() not in ("", title.strip()):
        lines.append(visible(description.strip()))
    lines += [f"- {on_one_line(one)}" for one in criteria]
    return shortened("\n".join(lines), _LONGEST)


def meaning(answer: str) -> tuple[str, str] | None:
    """Return the option that an answer means, and the user's remark; None if it is not an option."""
    said = _SAID.fullmatch(answer.strip())
    if said is None:
        return None
    option = {str(n): one for n, one in enumerate(OPTIONS, 1)}.get(said[1], said[1].lower())
    return (option, (said[2] or "").strip()) if option in OPTIONS else None


def outcome_of(option: str, note: str) -> str:
    """Return the reason that is stored on the row of a step."""
    said = {DONE: "done by hand", SKIP: "skipped by hand", FAILED: "it failed when done by hand"}[option]
    return shortened(f"{said}: {note}" if note else said, _LONGEST)
