"""`help`: what every command offers with `--help`, for those who type the word first."""

from loopwright.cli.shell.command_table import build
from loopwright.cli.shell.exits import ExitCode
from loopwright.core.values.errors import NotFound


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
