"""Everything that is printed: plain words for people, one JSON document for programs."""

import json
import os
import re
import sys
from collections.abc import Iterable
from typing import Any, Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.text import Text

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import Wrapped
from loopwright.core.values.documents import plain
from loopwright.core.values.wording import drawable

_STEERING: Final = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What JSON leaves as it is although a terminal may obey it: more controls, and the direction of writing."""


class SafeConsole(Console):
    """A console that no printed text can steer: it cannot move the cursor or hide a part."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is drawn, with a sign for each letter that would not be seen."""
        if isinstance(renderable, Text) and (shown := drawable(renderable.plain)) != renderable.plain:
            # Before it is laid out, so that lines are as long as they look.
            renderable = renderable.copy()
            renderable.plain = shown
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=drawable(segment.text))


def console(*, stderr: bool = False) -> Console:
    """Return where to print; colour only for a terminal, and never with NO_COLOR."""
    bare = bool(os.environ.get("NO_COLOR"))
    return SafeConsole(stderr=stderr, highlight=False, no_color=bare, soft_wrap=True)


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print one document for programs: with everything that a terminal would obey spelled out."""
    text = json.dumps(plain(value), indent=indent, ensure_ascii=False)
    # Nothing of this is ever outside of a string.
    sys.stdout.write(_STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")


def paragraph(markup: str, *, indent: str = "  ") -> Wrapped:
    """Return text that a terminal breaks between words, and a file gets whole."""
    return Wrapped(Text.from_markup(markup), indent=indent)


def complain(
    message: str, *, code: ExitCode, kind: str, hint: str | None = None, as_json: bool = False
) -> int:
    """Print what is wrong and what to do about it; return the exit code."""
    if as_json:
        print_json({"error": {"code": kind, "message": message, "hint": hint}, "exit_code": int(code)})
        return code
    out = console(stderr=True)
    out.print(paragraph(f"[bold red]error[/]: {_escaped(message)}"))
    if hint:
        out.print(paragraph(f"[bold]to do[/]: {_escaped(hint)}"))
    return code


def tell_chosen(text: str) -> None:
    """Print beside the output what a command is about, where the user named nothing."""
    sys.stderr.write(drawable(text) + "\n")


def warn(*texts: str, stderr: bool = False) -> None:
    """Warn of what could do harm, where a note would be overlooked."""
    for text in texts:
        console(stderr=stderr).print(paragraph(f"[bold red]warning[/]: {_escaped(text)}"))


def _escaped(text: str) -> str:
    return escape(text)
