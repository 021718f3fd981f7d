"""The tool by which a run asks a person: how an agent is given it, and what was asked with it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from loopwright import asking
from loopwright.adapters.git.files import write_atomically
from loopwright.adapters.redaction import redacted
from loopwright.core.permissions import OWN_TOOL
from loopwright.core.questions import Asking, asked_lines
from loopwright.ports import ToolServer

_PROGRAM: Final = Path(asking.__file__)
_SERVER: Final = OWN_TOOL.split("__")[1]
_MOST_BYTES: Final = asking.MOST_QUESTIONS * asking.LONGEST_LINE


def ask_tool(run_directory: Path) -> dict[str, ToolServer]:
    """Return the server of the tool by its name, as a request for an agent takes it."""
    args = ("-I", "-S", str(_PROGRAM), str(run_directory))
    return {_SERVER: ToolServer(command=sys.executable, args=args)}


def asked_by_tool(run_directory: Path, secrets: Sequence[str]) -> tuple[Asking, ...]:
    """Return what was asked in a run so far; half a line, or anything else that is no question, is passed over.

    Secrets are taken out of it, and out of the file: the tool wrote down what the agent said.
    """
    path = run_directory / asking.FILE
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES)
    except FileNotFoundError:
        return ()
    said = content.decode("utf-8", "replace")
    clean = redacted(said, secrets)
    if clean != said:
        write_atomically(path, clean)
    return asked_lines(clean)
