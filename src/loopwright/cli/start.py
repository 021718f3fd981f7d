"""Where the program begins: a Ctrl-C or trouble of the machine while it is loaded ends it without a traceback."""

import sys

from loopwright.cli.shell.trouble import tell, trouble_of


def main() -> None:
    """Load the command line and run it."""
    try:
        # Trouble of the machine may show while this is loaded.
        from loopwright.cli.main import main as command_line

        command_line()
    except KeyboardInterrupt:
        sys.exit(130)  # by its number: what gives it a name may be what was being loaded
    except Exception as error:
        trouble = trouble_of(error)
        if trouble is None:
            raise
        sys.exit(tell(trouble, as_json="--json" in sys.argv))
