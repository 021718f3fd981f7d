"""What a run asks the user, and the form for agents without the question tool in their last message."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

from loopwright.core.values.permissions import Wish, WishKind
from loopwright.core.values.wording import on_one_line, shortened, visible

QuestionKind = Literal["permission", "question", "escalation", "contradiction", "manual"]

FENCE: Final = "loopwright-ask"
"""The language of a fenced block with a question: for agents without a question tool."""

_BLOCK = re.compile(rf"^```{FENCE}[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_FENCED: Final = "```"
_LONGEST: Final = 4000
_MOST_LINES: Final = 200
_MOST_OPTIONS: Final = 12
MOST_QUESTIONS: Final = 20
"""The most questions of one run."""
_LEAVE: Final[Mapping[WishKind, str]] = MappingProxyType(
    {
        "read": "May it read",
        "edit": "May it change",
        "command": "May it run the command",
        "tool": "May it use the tool",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """One question that a run needs answered before it continues."""

    kind: QuestionKind
    text: str
    options: tuple[str, ...] = ()
    default: str | None = None
    """The answer if you don't answer in time; without one, the task is blocked then."""
    wish: Wish | None = None
    """The requested permission, with kind `permission`."""
    key: str = ""
    """What an answer applies to, with kind `contradiction`: the hash of the change and of the checks."""


def asking_leave(wish: Wish) -> Asking:
    """Return the permission question for a wish, in the same words for every agent.

    It contains the whole wish, because a yes allows all of it.
    """
    where = "" if wish.inside else " (outside of its workspace)"
    text = f"{_LEAVE[wish.kind]}{where}: {visible(wish.what)}"
    return Asking(kind="permission", text=text, options=("yes", "no"), wish=wish)


def asked_in(text: str) -> tuple[Asking, ...]:
    """Return the questions in an agent's last message: fenced blocks with a JSON object, or just with the question."""
    return tuple(asking for block in _BLOCK.findall(text) if (asking := _parsed(block)) is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A program's question in its last printed lines: blocks with nothing but empty lines after them.

    Any other line cancels them: a program that prints its own prompt, with the example in it, asks nothing.
    """

    lines: tuple[str, ...] = ()
    is_open: bool = False

    def with_line(self, line: str) -> "Block":
        """Add one more line of the output."""
        text = line.strip()
        if text.startswith(_FENCED + FENCE):
            return Block(lines=(*self.lines, text), is_open=True)
        if self.is_open and len(self.lines) < _MOST_LINES:
            return Block(lines=(*self.lines, text), is_open=text != _FENCED)
        return self if self.lines and not text and not self.is_open else Block()

    @property
    def asked(self) -> tuple[Asking, ...]:
        """The questions; none while a block is still open."""
        return () if self.is_open else asked_in("\n".join(self.lines))[:MOST_QUESTIONS]


def asking_of(value: Mapping[str, Any]) -> Asking | None:
    """Read a question that an agent wrote; None if it contains none."""
    text = _clean(value.get("question"))
    if not text:
        return None
    given = value.get("options")
    options = [on_one_line(_clean(one)) for one in given] if isinstance(given, list) else []
    return Asking(
        kind="escalation" if value.get("kind") == "escalation" else "question",
        text=text,
        options=tuple(one for one in options if one)[:_MOST_OPTIONS],
        default=on_one_line(_clean(value.get("default"))) or None,
    )


def asked_lines(text: str) -> tuple[Asking, ...]:
    """Return the questions that the tool recorded, one on each line; other lines are skipped."""
    found = [asking_of(value) for line in text.split("\n") if (value := _object(line)) is not None]
    return tuple(one for one in found if one is not None)[:MOST_QUESTIONS]


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _clean(value: object) -> str:
    """Return a text that can be stored and shown everywhere; empty if it is not a text."""
    if not isinstance(value, str):
        return ""
    return shortened(
        visible(value.replace("\0", "").encode("utf-8", "replace").decode("utf-8").strip()), _LONGEST
    )


def _parsed(block: str) -> Asking | None:
    value = _object(block)
    if value is not None:
        return asking_of(value)
    # A text that begins like an object was meant as one: the user cannot answer half of it.
    unreadable = "The agent asked something that is not valid JSON. It wrote: "
    return asking_of(
        {"question": f"{unreadable}{block.strip()}" if block.lstrip().startswith("{") else block}
    )
