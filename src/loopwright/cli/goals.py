"""Telling a goal in words from a path: one that is mistyped must not cost a planner's run."""

import shlex
from pathlib import Path
from typing import Final

from loopwright.core.errors import UserError

_FILES: Final = frozenset({".yaml", ".yml", ".json", ".jsonl", ".md"})
_SENTENCE: Final = 3
"""So many words are a goal, and be it that the last one is the name of a file."""


def is_goal(text: str) -> bool:
    """Say whether these are words and no path."""
    words = text.split()
    if len(words) < 2 or Path(text.strip()).exists():
        return False
    return len(words) >= _SENTENCE or Path(text.strip()).suffix.lower() not in _FILES


def check_goal(text: str) -> None:
    """Refuse what is no goal before an agent is asked to plan for it."""
    if is_goal(text):
        return
    said = text.strip()
    if not said:
        raise UserError("the goal is empty", hint='say in words what is to be done: loopwright plan "..."')
    if Path(said).exists():
        name = shlex.quote(said)
        raise UserError(
            f"{said} is there already, and no goal",
            hint=f"`loopwright plan check {name}` checks it as a plan, `loopwright run {name}` runs it",
        )
    raise UserError(
        f"{said!r} looks like a path or a command, and no agent is asked to plan for one",
        hint=f"say the goal in a sentence; a plan is checked with `loopwright plan check {shlex.quote(said)}`",
    )
