"""Hand a prompt to a program through a file on its stdin.

A prompt on the command line is visible to every user of the machine and limited in length; a pipe needs
a process to close it. A file has neither trouble, and stays as the record of what was asked.
"""

from pathlib import Path
from typing import Final

NAME: Final = "prompt.md"

_REDIRECT: Final = 'prompt=$1; shift; exec "$@" <"$prompt"'


def path_in(run_directory: Path) -> Path:
    """Return where the prompt of a run lies."""
    return run_directory / NAME


def on_stdin(run_directory: Path, argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command that becomes `argv` with the prompt file as its stdin."""
    return ("/bin/sh", "-c", _REDIRECT, "agent", str(path_in(run_directory)), *argv)
