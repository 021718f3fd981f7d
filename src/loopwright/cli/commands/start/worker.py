"""`worker`: run the plans of every project."""

import asyncio
import json as jsonlib
import signal
import sys
from typing import Any

from rich.markup import escape

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console
from loopwright.core.values.wording import counted
from loopwright.services.driving.worker import Ended, StandingBy, WorkerNews, work


def worker(*, slots: int | None = None, until_idle: bool = False, json: bool = False) -> int:
    """Work on the plans of every project until you stop it.

    Parameters
    ----------
    slots
        How many tasks this worker takes at once (default: the setting `parallel`).
    until_idle
        Stop as soon as nothing is left to do.
    json
        Print one JSON document per line: when it stands by, ends a process that hangs, begins to work, and leaves.
    """
    return asyncio.run(_worker(slots, until_idle=until_idle, as_json=json))


async def _worker(slots: int | None, *, until_idle: bool, as_json: bool) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    await work(slots=slots, until_idle=until_idle, stop=stop, tell=_print_line if as_json else _print)
    if as_json:
        _print_document({"type": "end", "exit_code": int(ExitCode.VERIFIED)})
    return ExitCode.VERIFIED


def _print(news: WorkerNews) -> None:
    if isinstance(news, StandingBy):
        text = f"standing by: process {news.pid} works here; this one takes over when it ends"
    elif isinstance(news, Ended):
        text = f"process {news.pid} made no progress and was ended; this one takes over"
    else:
        text = f"working in {news.home} with {counted(news.slots, 'slot')}; Ctrl-C leaves, agents continue"
    console().print(escape(text))


def _print_line(news: WorkerNews) -> None:
    if isinstance(news, StandingBy):
        _print_document({"type": "standing_by", "pid": news.pid})
    elif isinstance(news, Ended):
        _print_document({"type": "holder_ended", "pid": news.pid})
    else:
        _print_document({"type": "working", "home": str(news.home), "slots": news.slots, "pid": news.pid})


def _print_document(facts: dict[str, Any]) -> None:
    sys.stdout.write(jsonlib.dumps(facts) + "\n")
    sys.stdout.flush()
