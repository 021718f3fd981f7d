"""What a run asks a person, and how it is written in an agent's last words where there is no tool for it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from loopwright.core.permissions import Wish

QuestionKind = Literal["permission", "question", "escalation"]

FENCE: Final = "loopwright-ask"
"""The language of a fenced block that asks: for agents without a tool to ask with."""

_BLOCK = re.compile(rf"^```{FENCE}[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_LONGEST: Final = 4000
_MOST_OPTIONS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """One thing that a run wants to know before it goes on."""

    kind: QuestionKind
    text: str
    options: tuple[str, ...] = ()
    default: str | None = None
    """Taken when nobody answers in time; without one the task is blocked then."""
    wish: Wish | None = None
    """What leave is asked for, with kind `permission`."""


def asked_in(text: str) -> tuple[Asking, ...]:
    """Return the questions in an agent's last words: fenced blocks with a JSON object, or just with the question."""
    return tuple(asking for block in _BLOCK.findall(text) if (asking := _parsed(block)) is not None)


def asking_of(value: Mapping[str, Any]) -> Asking | None:
    """Read a question that an agent wrote; None when there is none in it."""
    text = value.get("question")
    if not isinstance(text, str) or not text.strip():
        return None
    given = value.get("options")
    options = [one for one in given if isinstance(one, str)] if isinstance(given, list) else []
    default = value.get("default")
    return Asking(
        kind="escalation" if value.get("kind") == "escalation" else "question",
        text=text.strip()[:_LONGEST],
        options=tuple(one.strip()[:_LONGEST] for one in options if one.strip())[:_MOST_OPTIONS],
        default=default.strip()[:_LONGEST] if isinstance(default, str) and default.strip() else None,
    )


def _parsed(block: str) -> Asking | None:
    try:
        value = json.loads(block)
    except ValueError:
        value = {"question": block}
    return asking_of(value if isinstance(value, dict) else {"question": block})
