"""The tools by which a run turns to a person: how an agent is given them, and what was said with them."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from loopwright.adapters.agents import asking
from loopwright.adapters.machine.files import read_regular, write_atomically
from loopwright.adapters.processes.redaction import redacted
from loopwright.core.replies.discoveries import Noticed, discovered_lines
from loopwright.core.replies.questions import Asking, asked_lines
from loopwright.core.values.permissions import OWN_TOOL
from loopwright.ports import ToolServer

_PROGRAM: Final = Path(asking.__file__)
_SERVER: Final = OWN_TOOL.split("__")[1]


def ask_tool(run_directory: Path) -> dict[str, ToolServer]:
    """Return the server of the tools by its name, as a request for an agent takes it."""
    args = ("-I", "-S", str(_PROGRAM), str(run_directory))
    return {_SERVER: ToolServer(command=sys.executable, args=args)}


def asked_by_tool(run_directory: Path, secrets: Sequence[str]) -> tuple[Asking, ...]:
    """Return what was asked in a run so far; half a line, or anything else that is not a question, is passed over.

    Secrets are taken out of it, and out of the file: the tool wrote down what the agent said.
    """
    return asked_lines(_noted(run_directory / asking.FILE, asking.MOST_QUESTIONS, secrets))


def discovered_by_tool(run_directory: Path, secrets: Sequence[str]) -> tuple[Noticed, ...]:
    """Return the work that a run has noted so far, read as questions are."""
    noted = _noted(run_directory / asking.DISCOVERED_FILE, asking.MOST_DISCOVERED, secrets)
    return discovered_lines(noted)


def forget_noted(run_directory: Path) -> None:
    """Remove what a run noted by its tools: nothing reads it any more, or takes secrets out of it."""
    for name in asking.FILES:
        (run_directory / name).unlink(missing_ok=True)


def _noted(path: Path, most: int, secrets: Sequence[str]) -> str:
    # The agent may write this file: a link is not followed, and a pipe is not waited for.
    content = read_regular(path, limit=most * asking.LONGEST_LINE)
    said = (content or b"").decode("utf-8", "replace")
    clean = redacted(said, secrets)
    if clean != said:
        write_atomically(path, clean)
    return clean
