"""Why something is verified with gaps only: the first of them, from the receipt that names them all."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from loopwright.cli.receipt_files import read_receipt
from loopwright.cli.rows import Wrapped
from loopwright.core.errors import UserError
from loopwright.core.ids import short_id
from loopwright.core.receipt_facts import open_points
from loopwright.core.receipt_shape import shape_problems

_MOST = 3


def print_gaps(out: Console, project: str, plan_id: str, task: str | None = None) -> None:
    """Name the first gaps of a plan, or of one of its tasks, and say where all of them are."""
    found = _points(Path(project) / ".loopwright" / "receipts" / f"{plan_id}.json", task)
    for one in found[:_MOST]:
        out.print(Wrapped(Text.assemble(("gap", "yellow"), f": {one}"), indent="  "))
    more = f"and {len(found) - _MOST} more; " if len(found) > _MOST else ""
    out.print(f"[dim]{more}everything that was not checked:  loopwright receipt show {short_id(plan_id)}[/]")


def _points(file: Path, task: str | None) -> list[str]:
    try:
        receipt = read_receipt(file)
    except UserError:
        return []  # not written yet, or not by us: the command below says what there is
    return [] if shape_problems(receipt) else open_points(receipt, task)
