"""Why an answer of an agent could not be used."""

from typing import Final

from rich.console import Console
from rich.markup import escape

from loopwright.core.values.wording import one_line

_SHOWN: Final = 3


def print_wrong(out: Console, problems: tuple[str, ...]) -> None:
    """Print the first of them."""
    if problems:
        out.print("the last answer cannot be used:")
    for one in problems[:_SHOWN]:
        out.print(f"  {escape(one_line(one, 400))}")
    if len(problems) > _SHOWN:
        out.print(f"  and {len(problems) - _SHOWN} more")
