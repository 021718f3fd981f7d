"""What the user is asked when a task has failed for good: the options, and the meaning of an answer."""

import re
from typing import Final

from loopwright.core.values.wording import on_one_line, shortened

KIND: Final = "escalation"
GIVEN_UP: Final = "given_up"
"""The key of Loopwright's own escalations; those of agents have none."""

RETRY: Final = "retry"
LEAVE: Final = "leave it"
CANCEL: Final = "cancel"
CHAIN: Final = "cancel with what waits for it"
OPTIONS: Final = (RETRY, LEAVE, CANCEL)
_KNOWN: Final = (*OPTIONS, CHAIN)
"""The last option is offered if other tasks wait for the failed one."""
_LONGEST: Final = 500
_WITH_HINT: Final = re.compile(r"retry(?:\s*[:,]\s*|\s+)(.+)", re.IGNORECASE | re.DOTALL)


def is_given_up(kind: str, key: str) -> bool:
    """Return whether a question of this kind and key is about a task that failed for good."""
    return (kind, key) == (KIND, GIVEN_UP)


def words(key: str, reason: str) -> str:
    """Return the question about a task that is not tried again."""
    return shortened(f"{key} failed and is not tried again: {on_one_line(reason)}", _LONGEST)


def meaning(answer: str) -> tuple[str, str] | None:
    """Return the option that an answer means, and its hint for another attempt; None if it is not an answer."""
    text = answer.strip()
    if text.isdecimal() and text in map(str, range(1, len(_KNOWN) + 1)):
        text = _KNOWN[int(text) - 1]
    if hinted := _WITH_HINT.fullmatch(text):
        return RETRY, hinted[1].strip()
    return (text.lower(), "") if text.lower() in _KNOWN else None
