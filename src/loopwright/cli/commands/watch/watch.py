"""`watch`: follow a plan live, as a picture or as lines of JSON. It only looks."""

import asyncio
import json as jsonlib
import sys
from typing import Any, Final

from loopwright.cli.commands.watch.status import Seen, look_at, print_plan
from loopwright.cli.screens.follow import Display
from loopwright.cli.screens.plan_table import exit_code as code_of
from loopwright.cli.shell.output import console
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.values.documents import document, plain
from loopwright.core.values.ids import short_id
from loopwright.engine.views.views import PlanView
from loopwright.ports import Tx
from loopwright.services.homes.read_only_home import Look, find_plan, looking

_REFRESH_S: Final = 1.0
"""How often a live picture is drawn again when nothing happens: for the running seconds, not for the news."""

_PAGE: Final = 500


def watch(plan: str | None = None, /, *, after: int | None = None, json: bool = False) -> int:
    """Follow a plan live until it rests; nothing is started and nothing is changed.

    Parameters
    ----------
    plan
        Which plan (default: the newest of this repository).
    after
        With --json: begin after the event with this number; 0 gives the whole history (default: only what comes).
    json
        Print one JSON document per line for each event, and the final state as the last line.
    """
    with looking() as look:
        plan_id = look.store.read_sync(lambda tx: find_plan(tx, plan)).id
        follow = _Events(look, plan_id, after).run() if json else _live(look, plan_id)
        return asyncio.run(follow)


async def _live(look: Look[Any], plan_id: str) -> int:
    with Display(footer="q quits; the plan continues.") as display:
        told, ended = False, display.keyboard.on_key("q")
        while True:
            seen = await look.store.read(lambda tx: look_at(tx, look, plan_id))
            display.show(seen.view)
            if seen.at_rest or ended.is_set():
                break
            if not seen.worked and not told:
                display.say(
                    f"[yellow]no worker is running[/]: `loopwright resume {short_id(plan_id)}` in another "
                    "terminal goes on"
                )
            told = not seen.worked
            waits = [
                asyncio.ensure_future(look.store.changed(_REFRESH_S)),
                asyncio.ensure_future(ended.wait()),
            ]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for one in waits:
                one.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
    print_plan(console(), seen)
    return code_of(seen.view)


class _Events:
    """A plan's events as lines of JSON, as they come."""

    def __init__(self, look: Look[Any], plan_id: str, after: int | None) -> None:
        self._look = look
        self._plan_id = plan_id
        self._after = after

    async def run(self) -> int:
        """Print events until the plan rests, then the final state."""
        if self._after is None:
            self._after = await self._look.store.read(lambda tx: tx.last_event())
        while True:
            events, seen = await self._look.store.read(self._page)
            for event in events:
                if self._belongs(event, seen.view):
                    _print_line(document(event))
            if events:
                self._after = events[-1].n
            elif seen.at_rest:
                code = code_of(seen.view)
                _print_line({"type": "end", "plan": plain(seen.view), "exit_code": int(code)})
                return code
            else:
                await self._look.store.changed(_REFRESH_S)

    def _page(self, tx: Tx) -> tuple[list[RecordedEvent], Seen]:
        # Together, in one transaction: a plan that rests without further events has told everything.
        return tx.events(after=self._after or 0, limit=_PAGE), look_at(tx, self._look, self._plan_id)

    def _belongs(self, event: RecordedEvent, view: PlanView) -> bool:
        return event.plan == self._plan_id or (event.plan is None and event.loop == view.loop_id)


def _print_line(value: object) -> None:
    sys.stdout.write(jsonlib.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()
