"""Work that agents find and do not do: how they report it, and its row."""

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal
from uuid import NAMESPACE_OID, uuid5

from loopwright.core.replies.answers import clean
from loopwright.core.values.ids import Kind, make
from loopwright.core.values.states import DiscoveryState

Recommendation = Literal["current", "new"]

DISCOVERED_FENCE: Final = "loopwright-discovered"
"""The language of a fenced block that reports such work: for agents without a tool for it."""
MOST_DISCOVERED: Final = 20
"""The most discoveries that are taken from one run."""

_BLOCK: Final = re.compile(rf"^```{DISCOVERED_FENCE}[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_LONGEST_TITLE: Final = 200
_LONGEST_REASON: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Noticed:
    """An agent's report of work that it found."""

    title: str
    reason: str = ""
    recommendation: Recommendation = "new"
    """Whether it belongs to this plan, or to a new plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """Work that an agent found in a task; the user decides about it."""

    id: str
    project_id: str
    plan_id: str
    task_id: str
    """The task in which it was found first, by this attempt."""
    attempt_id: str
    title: str
    reason: str = ""
    recommendation: str = "new"
    state: DiscoveryState = DiscoveryState.OPEN
    became: str = ""
    """What an accepted discovery became: the key of a task, or the file of a plan."""
    decided_by: str = ""
    created_at: datetime
    decided_at: datetime | None = None


def discovery_id(task_id: str, title: str) -> str:
    """Return the id of work found in a task: the same title is the same work, however often an agent reports it."""
    return make(Kind.DISCOVERY, uuid5(NAMESPACE_OID, f"{task_id} {same_work(title)}"))


def same_work(title: str) -> str:
    """Return a title in a form that ignores spelling differences."""
    return " ".join(title.casefold().split())


def discovered_in(text: str) -> tuple[Noticed, ...]:
    """Return the work in an agent's last message: fenced blocks, each with a JSON object."""
    return _each(_BLOCK.findall(text))


def discovered_lines(text: str) -> tuple[Noticed, ...]:
    """Return the work that the tool recorded, one on each line; invalid lines are skipped."""
    return _each(text.split("\n"))


def key_for(title: str, taken: set[str]) -> str:
    """Return an unused key for the new task: its words in lower case with dashes."""
    words = re.sub(r"[^a-z0-9]+", "-", title.casefold()).strip("-")[:60].strip("-") or "discovered"
    names = (words, *(f"{words}-{n}" for n in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def _each(texts: list[str]) -> tuple[Noticed, ...]:
    found = [one for text in texts if (one := _noticed(text)) is not None]
    return tuple(dict.fromkeys(found))[:MOST_DISCOVERED]


def _noticed(text: str) -> Noticed | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    title = " ".join(clean(value.get("title"), _LONGEST_TITLE).split())
    # The example in a prompt that a program repeats has dots for a title.
    if not title.strip(". …"):
        return None
    return Noticed(
        title=title,
        reason=clean(value.get("reason"), _LONGEST_REASON).strip(),
        recommendation="current" if value.get("recommendation") == "current" else "new",
    )
