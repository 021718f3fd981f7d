"""Where the program begins: a Ctrl-C while it is still being loaded ends it like any other, without a traceback."""

import sys


def main() -> None:
    """Load the command line and run it."""
    try:
        from loopwright.cli.main import main as command_line

        command_line()
    except KeyboardInterrupt:
        sys.exit(130)  # by its number: what gives it a name may be what was being loaded
