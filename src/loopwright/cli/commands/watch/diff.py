"""`diff`: what a plan, a task or a run changed."""

import asyncio
import os
import sys

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, tell_chosen
from loopwright.services.views.changes import span_of, write_diff


def diff(target: str | None = None, /) -> int:
    """Show what a plan or a task changed, as git does.

    Parameters
    ----------
    target
        A plan, a task or a run: an id, the beginning of one, a name, or PLAN/TASK (default: the task that needs you,
        else the one that is running, else the newest plan). Of a task, what landed; before that, its newest attempt.
    """
    span = span_of(target, tell=tell_chosen)
    color = console().is_terminal and not os.environ.get("NO_COLOR")
    sys.stdout.flush()
    asyncio.run(write_diff(span, sys.stdout.buffer.write, color=color))
    sys.stdout.buffer.flush()
    return ExitCode.VERIFIED
