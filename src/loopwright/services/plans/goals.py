"""Telling a goal in words from a path or a command: one that is mistyped must not cost a planner's run."""

import difflib
from pathlib import Path
from typing import Final

from loopwright.cli.shell.command_table import COMMANDS
from loopwright.cli.shell.typing_mistakes import BELOW
from loopwright.core.values.errors import UserError
from loopwright.core.values.shell_hints import to_type

_FILES: Final = frozenset({".yaml", ".yml", ".json", ".jsonl", ".md"})
_SENTENCE: Final = 3
"""So many words are a goal, and be it that the last one is the name of a file."""
_OF_PLAN: Final = BELOW["plan"]
_ALIKE: Final = 0.75


def is_goal(text: str) -> bool:
    """Say whether these are words and no path: a single one is a path, where both may stand."""
    words = text.split()
    if len(words) < 2 or Path(text.strip()).exists():
        return False
    return len(words) >= _SENTENCE or Path(text.strip()).suffix.lower() not in _FILES


def check_goal(text: str) -> None:
    """Refuse what is no goal before an agent is asked to plan for it; a single word may be one."""
    if is_goal(text):
        return
    said = text.strip()
    if not said:
        raise UserError("the goal is empty", hint='say in words what is to be done: loopwright plan "..."')
    if Path(said).exists():
        raise UserError(
            f"{said} is there already, and no goal",
            hint=f"`{to_type('plan', 'check', said)}` checks it as a plan, `{to_type('run', said)}` runs it",
        )
    if "/" in said or Path(said).suffix.lower() in _FILES:
        raise UserError(
            f"{said!r} looks like a path, and no agent is asked to plan for one",
            hint=f"say the goal in a sentence; a plan is checked with `{to_type('plan', 'check', said)}`",
        )
    near = difflib.get_close_matches(said.lower(), (*_OF_PLAN, *COMMANDS), n=1, cutoff=_ALIKE)
    if near:
        meant = f"plan {near[0]}" if near[0] in _OF_PLAN else near[0]
        raise UserError(
            f"{said!r} looks like the command `{meant}`, and no agent is asked to plan for one",
            hint='if it is the goal, say it in a few words more: loopwright plan "..."',
        )
