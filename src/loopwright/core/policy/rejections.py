"""The user's objections to finished work, as text for the next attempt."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from loopwright.core.values.errors import Refused

_LONGEST: Final = 4_000
_MOST: Final = 50
REJECTED: Final = "A person looked at the work and rejected it."
FEEDBACK: Final = "feedback"
"""The argument of `reject` with the ids of what a pull request brought back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """The user's comment on one line of the work."""

    file: str
    line: int
    text: str
    quoted: str = ""
    """The line itself, as it is in the rejected work."""


def parse_comment(place: str, text: str) -> dict[str, Any]:
    """Read FILE:LINE and its comment; raise if it is not valid."""
    file, colon, number = place.rpartition(":")
    if not colon or not file or not number.isascii() or not number.isdigit() or int(number) < 1:
        raise Refused(
            f"{place!r} is not FILE:LINE",
            code="comment_place_wrong",
            hint='such as --at app.py:12 "this must not be public"',
        )
    if not text.strip():
        raise Refused(
            f"nothing is said about {place}", code="comment_empty", hint=f'--at {place} "what is wrong there"'
        )
    return {"file": file, "line": int(number), "text": text.strip()[:_LONGEST]}


def comments_in(arguments: Any) -> tuple[Comment, ...]:
    """Return the comments in a command."""
    return tuple(Comment(**one) for one in list(arguments or ())[:_MOST])


def objections(note: str, comments: Sequence[Comment], *, heading: str = REJECTED) -> str:
    """Return the text for the next attempt."""
    parts = [heading] if heading else []
    if note.strip():
        parts.append(note.strip()[:_LONGEST])
    for one in comments:
        quoted = f"\n> {one.quoted.strip()}" if one.quoted.strip() else ""
        parts.append(f"{one.file}:{one.line}{quoted}\n{one.text}")
    return "\n\n".join(parts)
