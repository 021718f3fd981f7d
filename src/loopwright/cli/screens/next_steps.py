"""How next steps are printed: the commands to type, each with what it is good for."""

import shlex
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from loopwright.services.views.plans import Step

_ALIGNED = 50
"""Longer commands do not push the reasons of the others aside."""


def typed(step: Step) -> str:
    """Return the command of a step, quoted for the shell."""
    return shlex.join(step.command)


def print_steps(out: Console, steps: Sequence[Step]) -> None:
    """Print the commands one to a line: a reason gives way where there is no room, a command is never cut."""
    lengths = (len(typed(step)) for step in steps)
    column = max((length for length in lengths if length <= _ALIGNED), default=0)
    for step in steps:
        command = typed(step)
        line = Text("  ").append(command.ljust(column), style="bold").append(f"  {step.why}", style="dim")
        if out.is_terminal and line.cell_len > out.width:
            line = Text("  ").append(command, style="bold")
        out.print(line)
