"""`watch`: follow a plan live, as a picture or as lines of JSON. It changes nothing."""

import asyncio
import json as jsonlib
import sys

from loopwright.cli.commands.watch.status import print_plan
from loopwright.cli.screens.follow import Display
from loopwright.cli.screens.plan_table import exit_code as code_of
from loopwright.cli.shell.output import console
from loopwright.core.values.documents import document, plain
from loopwright.core.values.ids import short_id
from loopwright.services.views.events import Followed, followed
from loopwright.services.views.plans import Seen


def watch(plan: str | None = None, /, *, after: int | None = None, json: bool = False) -> int:
    """Follow a plan live until it rests; nothing is started and nothing is changed.

    Parameters
    ----------
    plan
        Which plan (default: the newest of this repository).
    after
        With --json: begin after the event with this number; 0 for the whole history (default: only new events).
    json
        Print one JSON document per line for each event, and the final state as the last line.
    """
    with followed(plan) as it:
        return asyncio.run(_print_events(it, after) if json else _live(it))


async def _live(it: Followed) -> int:
    with Display(footer="q quits; the plan continues.") as display:
        told, ended = False, display.keyboard.on_key("q")
        while True:
            seen = await it.seen()
            display.show(seen.view)
            if seen.at_rest or ended.is_set():
                break
            if not seen.worked and not told:
                display.say(
                    f"[yellow]no worker is running[/]: `loopwright resume {short_id(it.plan_id)}` in another "
                    "terminal continues the plan"
                )
            told = not seen.worked
            # Woken up by news, by a key, or by the clock: the picture shows running seconds.
            waits = [asyncio.ensure_future(it.changed()), asyncio.ensure_future(ended.wait())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for one in waits:
                one.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
    print_plan(console(), seen)
    return code_of(seen.view)


async def _print_events(it: Followed, after: int | None) -> int:
    """Print events until the plan rests, then the final state."""
    code = 0
    async for one in it.events(after):
        if isinstance(one, Seen):
            code = int(code_of(one.view))
            _print_line({"type": "end", "plan": plain(one.view), "exit_code": code})
        else:
            _print_line(document(one))
    return code


def _print_line(value: object) -> None:
    sys.stdout.write(jsonlib.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()
