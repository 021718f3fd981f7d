"""`help` and `completion`: what every command offers, and the script that lets a shell complete it."""

import sys
from typing import Final, Literal

from loopwright.cli.shell.command_table import build
from loopwright.cli.shell.exits import ExitCode
from loopwright.core.values.errors import NotFound

# `completion`: the script that lets a shell complete commands and options.

_ZSH: Final = "compdef _cyclopts_loopwright loopwright\n"
"""Registers the function where the script is not one of the files that `compinit` reads."""


def completion(shell: Literal["bash", "zsh", "fish"], /) -> int:
    """Print a script that lets your shell complete commands and options.

    Parameters
    ----------
    shell
        Your shell. For bash or zsh, put `eval "$(loopwright completion bash)"` into ~/.bashrc or ~/.zshrc. For fish,
        save what is printed as ~/.config/fish/completions/loopwright.fish.
    """
    sys.stdout.write(build().generate_completion(shell=shell))
    if shell == "zsh":
        sys.stdout.write(_ZSH)
    return ExitCode.VERIFIED


def help_(*command: str) -> int:
    """Show what there is, or what one command does.

    Parameters
    ----------
    command
        Which command, such as `run` or `plan check` (default: list them all).
    """
    app = build()
    unknown = app.parse_commands([*command])[2]
    if unknown:
        raise NotFound(
            f"there is no command {' '.join(command)!r}",
            code="command_not_found",
            hint="`loopwright help` lists them",
        )
    app.help_print([*command])
    return ExitCode.VERIFIED
