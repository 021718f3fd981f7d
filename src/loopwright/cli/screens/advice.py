"""Print what needs you: next steps, gaps with their remedy, and changes of your checkout with how to undo them."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from loopwright.cli.shell.lines import Wrapped
from loopwright.core.values.ids import short_id
from loopwright.services.views.plans import Step
from loopwright.services.views.tasks import StrayView

if TYPE_CHECKING:
    from loopwright.services.receipts.reading import Gap, Receipt


# How next steps are printed: the commands to type, each with what it is good for.

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


# What changed in the user's checkout while agents ran, and the commands that undo it.


def print_strays(out: Console, strays: Sequence[StrayView]) -> None:
    """Name each change, and print each command whole, so that it can be copied."""
    for one in strays:
        title = f"your checkout changed while {short_id(one.run)} ran ({one.by_whom})"
        out.print(Wrapped(Text(title, style="yellow"), indent="  "))
        for change in one.changes:
            out.print(Wrapped(Text(f"  {change}"), indent="    "))
        if one.undo:
            out.print("  to undo it, once you have looked at it:", style="dim")
        for command in one.undo:
            out.print(Text(f"    {command}"), soft_wrap=True)


_MOST = 5


def print_gaps(out: Console, project: str, plan_id: str, task: str | None = None) -> None:
    """Print the first gaps of a plan, or of one of its tasks, and say where the rest is."""
    receipt = _receipt(project, plan_id)
    gaps = receipt.gaps if receipt else ()
    # What holds for the whole result is listed once, not again for each task.
    found = [one for one in gaps if task in (None, one.task)] or [one for one in gaps if one.task is None]
    print_each_gap(out, found[:_MOST])
    more = f"and {len(found) - _MOST} more; " if len(found) > _MOST else ""
    out.print(f"[dim]{more}gaps and notes:  loopwright receipt show {short_id(plan_id)}[/]")


def print_each_gap(out: Console, gaps: "Sequence[Gap]") -> None:
    """Print gaps, each with what to do about it."""
    for one in gaps:
        out.print(Wrapped(Text.assemble(("gap", "yellow"), f": {one.cause}"), indent="  "))
        out.print(Wrapped(Text(f"  what to do: {one.remedy}"), indent="    "))


def print_notes(out: Console, project: str, plan_id: str, task: str) -> None:
    """Print the notes of a task."""
    receipt = _receipt(project, plan_id)
    for one in receipt.notes if receipt else ():
        if one.task == task:
            out.print(Wrapped(Text(f"note: {one.text}", style="dim"), indent="  "))


def _receipt(project: str, plan_id: str) -> "Receipt | None":
    # Late: most screens show no gaps, and the types of a receipt take some milliseconds.
    from loopwright.services.receipts.files import written_receipt

    return written_receipt(project, plan_id)
