"""Telling a goal in words from a path or a command: one that is mistyped must not cost a planner's run."""

import difflib
from collections.abc import Collection
from pathlib import Path
from typing import Final

from loopwright.core.values.errors import UserError
from loopwright.core.values.shell_hints import to_type
from loopwright.services.homes.caller import current_folder

_FILES: Final = frozenset({".yaml", ".yml", ".json", ".jsonl", ".md"})
_SENTENCE: Final = 3
"""So many words are a goal, and be it that the last one is the name of a file."""
_ALIKE: Final = 0.75


def is_goal(text: str) -> bool:
    """Return whether a text is a goal and not a path: a single word is a path."""
    words = text.split()
    if len(words) < 2 or (current_folder() / text.strip()).exists():
        return False
    return len(words) >= _SENTENCE or Path(text.strip()).suffix.lower() not in _FILES


def check_goal(text: str, commands: Collection[str] = ()) -> None:
    """Refuse what is not a goal before an agent is asked to plan for it; a single word may be one.

    `commands` are what may have been meant instead, each as it is typed; its last word is compared with the goal.
    """
    if is_goal(text):
        return
    said = text.strip()
    if not said:
        raise UserError(
            "the goal is empty",
            code="goal_empty",
            hint='say in words what is to be done: loopwright plan "..."',
        )
    if (current_folder() / said).exists():
        raise UserError(
            f"{said} is there already, and no goal",
            code="goal_is_a_path",
            hint=f"`{to_type('plan', 'check', said)}` checks it as a plan, `{to_type('run', said)}` runs it",
        )
    if "/" in said or Path(said).suffix.lower() in _FILES:
        raise UserError(
            f"{said!r} looks like a path, and no agent is asked to plan for one",
            code="goal_is_a_path",
            hint=f"say the goal in a sentence; a plan is checked with `{to_type('plan', 'check', said)}`",
        )
    by_last_word = {command.split()[-1]: command for command in reversed(list(commands))}
    near = difflib.get_close_matches(said.lower(), by_last_word, n=1, cutoff=_ALIKE)
    if near:
        raise UserError(
            f"{said!r} looks like the command `{by_last_word[near[0]]}`, and no agent is asked to plan for one",
            code="goal_is_a_command",
            hint='if it is the goal, say it in a few words more: loopwright plan "..."',
        )
