"""Run one command: load it, call it, and turn its result or its error into an exit code."""

import gc
import io
import logging
import os
import sys
from collections.abc import Sequence

from cyclopts.exceptions import CycloptsError

from loopwright.cli.shell.command_table import build
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.trouble import tell, trouble_of
from loopwright.core.values.errors import LoopwrightError, UserError

_OBJECTS = 200_000
"""How many more objects there may be before garbage is looked for: loading the largest command makes 120,000, all of
which stay, and a task a few thousand, of which next to none is garbage that only a search would find."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with a code that `docs/reference/exit-codes.md` explains."""
    # Loading makes a great many objects that all stay. Looking through them for garbage again and again, and once
    # more at the end, takes a fifth of a short command's time.
    gc.set_threshold(_OBJECTS)
    code = call(sys.argv[1:] if arguments is None else arguments)
    gc.freeze()
    sys.exit(code)


def call(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; a user's mistake is one line, never a traceback."""
    as_json = "--json" in arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an old terminal shows a question mark, never a traceback
    try:
        result = build()(list(arguments))
    except CycloptsError as mistake:
        # Only an error needs it.
        from loopwright.cli.shell.mistakes import explain, told

        message, hint = told(mistake)
        wrong = UserError(message, code="command_line_wrong", hint=hint)
        return explain(wrong, arguments, as_json=as_json)
    except LoopwrightError as known:
        # Only an error needs it.
        from loopwright.cli.shell.mistakes import explain

        return explain(known, arguments, as_json=as_json)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (for example `| head`): that is its right.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.UNFINISHED
    except Exception as error:
        trouble = trouble_of(error)
        if trouble is None:
            raise
        if logging.getLogger("loopwright").hasHandlers():
            logging.getLogger(__name__).exception("ended by trouble of the machine")
        return tell(trouble, as_json=as_json)
    return int(result) if isinstance(result, int) else ExitCode.VERIFIED
