"""What changed in the user's checkout while agents ran, and the commands that undo it."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from loopwright.cli.shell.lines import Wrapped
from loopwright.core.values.ids import short_id
from loopwright.services.views.tasks import StrayView


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
