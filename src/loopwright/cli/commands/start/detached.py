"""Executes one plan in the background: `run --detach` starts this as a separate program, which needs no terminal."""

import asyncio
import os
import sys
from typing import Final

from loopwright.cli.foreground import Foreground
from loopwright.cli.screens.end import print_end
from loopwright.cli.screens.follow import Display
from loopwright.services.driving.detached import taking_over
from loopwright.services.homes.context import actor

PROGRAM: Final = (sys.executable, "-m", "loopwright.cli.commands.start.detached")
"""What starts this module as a program."""
_READY: Final = b"ready"


def main(plan_id: str, log: str) -> int:
    """Leave the terminal, and execute the plan until it rests; return in the first process once that works."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid != 0:
        os.close(writing)
        with os.fdopen(reading, "rb") as heard:
            ready = heard.read() == _READY
        sys.stdout.write(f"{pid}\n")
        return 0 if ready else 1
    os.close(reading)
    os.setsid()
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    for fd in (1, 2):
        os.dup2(file, fd)
    # This is how the process is listed in `status` and beside the lock of the home.
    sys.argv = ["loopwright", "run", "--detach"]
    return asyncio.run(_execute(plan_id, writing))


async def _execute(plan_id: str, ready: int) -> int:
    async with taking_over(plan_id) as taken:
        os.write(ready, _READY)
        os.close(ready)
        foreground = Foreground(
            taken.at, taken.plan, actor=actor(), display=Display(), submitter=taken.submitter
        )
        code = await foreground.run()
        return await print_end(taken.at, taken.plan.id, code, as_json=False)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
