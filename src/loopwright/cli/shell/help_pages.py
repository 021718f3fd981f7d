"""How `--help` reads: arguments by their own names, and lines that break where the terminal does."""

import re
from typing import TYPE_CHECKING, Any, Final

from cyclopts import App
from cyclopts.help import DefaultFormatter

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

_ANY: Final = re.compile(r"\[ARGS(\.\.\.)?\]")
_BREAK: Final = re.compile(r"(?<!\n)\n(?!\n)")


def optional_arguments(command: App) -> str:
    """Return the arguments that may be left out, as the usage line has them."""
    if command.default_command is None:
        return ""
    found = [
        one for one in command.assemble_argument_collection() if one.index is not None and not one.required
    ]
    return " ".join(
        f"[{one.name.lstrip('-').upper()}{'...' * (one.field_info.kind is one.field_info.VAR_POSITIONAL)}]"
        for one in found
    )


class HelpPages(DefaultFormatter):
    """Renders help, and wraps docstrings for the screen."""

    def __init__(self, optional: str) -> None:
        super().__init__()
        self._optional = optional

    def render_usage(self, console: "Console", options: "ConsoleOptions", usage: Any) -> None:
        """Print how the command is called."""
        super().render_usage(console, options, _ANY.sub(self._optional, str(usage)))

    def render_description(self, console: "Console", options: "ConsoleOptions", description: Any) -> None:
        """Print what the command does."""
        _join(description)
        super().render_description(console, options, description)

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
        """Print one box of commands, arguments or flags."""
        for entry in panel.entries:
            _join(entry.description)
        super().__call__(console, options, panel)


def _join(described: Any) -> None:
    """Let paragraphs be, and join the lines in each of them."""
    text = getattr(described, "primary_renderable", None)
    if text is not None and "\n" in text.plain:
        text.plain = _BREAK.sub(" ", text.plain)
