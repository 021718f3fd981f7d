"""Print the gaps of a plan or a task with cause and remedy, and a task's notes, from the receipt."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from loopwright.cli.shell.lines import Wrapped
from loopwright.core.values.ids import short_id

if TYPE_CHECKING:
    from loopwright.services.receipts.reading import Gap, Receipt

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
