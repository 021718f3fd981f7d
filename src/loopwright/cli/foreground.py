"""A plan on this terminal: drive or follow it until it rests, show it, and let Ctrl-C pause it."""

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from rich.markup import escape

from loopwright.cli.screens.follow import Display
from loopwright.cli.screens.plan_table import exit_code
from loopwright.cli.shell.exits import ExitCode
from loopwright.core.values.ids import short_id
from loopwright.core.values.wording import to_type
from loopwright.services.driving.driver import FOLLOW_S, Drive, Driver, Rested, followed_worker
from loopwright.services.homes.context import actor
from loopwright.services.homes.session import Session
from loopwright.services.views.events import Plan

NET_S = 5.0
"""How long to wait for news at most."""

SHOWN_SHARE = 10
"""How long to wait after a picture, as a multiple of the time it took: drawing a large plan must not take all time."""

_PAUSED = {
    signal.SIGINT: "paused from the terminal",
    signal.SIGTERM: "paused: a signal asked it to end (SIGTERM)",
    signal.SIGHUP: "paused: its terminal was closed",
}


class Foreground:
    """One plan on one terminal."""

    def __init__(
        self,
        at: Session,
        plan: Plan,
        *,
        actor: str,
        display: Display,
        submitter: str = "",
    ) -> None:
        """Show this plan; `submitter` names the submission that this process made."""
        self._at = at
        self._plan_id = plan.id
        self._display = display
        self._driver = Driver(
            at,
            plan,
            actor=actor,
            submitter=submitter,
            tell=lambda note: display.say(f"[yellow]note[/]: {escape(note)}"),
            cannot_pause=_say_cut_off,
        )
        self._signals = 0
        self.left = False
        """Whether it stopped following a worker that continues the plan."""
        self._terminals = [fd for fd in (1, 2) if os.isatty(fd)]

    async def run(self) -> ExitCode:
        """Drive or follow the plan until it rests; return what the exit code says."""
        return code_of(await self.rested())

    async def rested(self) -> Rested:
        """Drive or follow the plan until it rests, and show it."""
        self._catch_signals()
        notes = _Notes(self._display)
        logging.getLogger("loopwright").addHandler(notes)
        with self._display:
            showing = asyncio.create_task(self._keep_showing())
            try:
                rested = await self._driver.run()
            finally:
                showing.cancel()
                logging.getLogger("loopwright").removeHandler(notes)
            if rested.view is not None:
                self._display.show(rested.view)
        return rested

    async def _keep_showing(self) -> None:
        while not self._display.is_quiet:
            began = time.monotonic()
            self._display.show(await self._driver.view())
            await asyncio.sleep((time.monotonic() - began) * SHOWN_SHARE)
            # Without a live picture there are no running seconds to show: then only news count.
            await self._driver.changed(FOLLOW_S if self._display.is_live else NET_S)

    # --- Ctrl-C and a closed terminal --------------------------------------------------------------

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in _PAUSED:
            loop.add_signal_handler(number, self._interrupted, number)

    def _interrupted(self, number: signal.Signals) -> None:
        self._signals += 1
        if self._signals > 2:  # the pause does not end
            resume = to_type("resume", short_id(self._plan_id))
            sys.stderr.write(
                f"\nLeaving at once. Agents that still run continue alone.\ntake them over:  {resume}\n"
            )
            sys.stderr.flush()
            os._exit(ExitCode.INTERRUPTED)
        if self._signals == 1 and (holder := followed_worker(self._at)):
            self.left = True
            self._driver.leave()
            self._say_left(holder)
        elif self.left:
            return
        elif self._signals == 1:
            told = "\nPausing: running agents are asked to stop, their work is kept. Ctrl-C again stops at once.\n"
            if number == signal.SIGHUP:
                self._leave_terminal()
            else:
                sys.stderr.write(told)
            self._driver.pause(_PAUSED[number])
        else:
            self._driver.stop_now()

    def _say_left(self, holder: Mapping[str, Any]) -> None:
        """Print that only the following ends; a closed terminal gets nothing."""
        name = short_id(self._plan_id)
        with suppress(OSError):
            sys.stderr.write(
                f"\nStopped following: process {holder.get('pid')} continues the plan.\n"
                f"follow it again:  {to_type('watch', name)}\npause it:  {to_type('pause', name)}\n"
            )

    def _leave_terminal(self) -> None:
        """Write to nowhere after the terminal was closed, so that printing does not end the pause with an error."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for fd in self._terminals:
            os.dup2(nowhere, fd)
        os.close(nowhere)


def showing(*, quiet: bool) -> Drive:
    """Return a driver that shows plans on this terminal; the same command continues them."""
    footer = "Ctrl-C pauses the plan and keeps all work; the same command continues."

    async def drive(at: Session, plan: Plan, submitter: str) -> Rested:
        nonlocal footer
        display = Display(footer=footer, quiet=quiet)
        if not display.is_live:
            footer = ""  # lines stay on the terminal, so one is enough
        foreground = Foreground(at, plan, actor=actor(), display=display, submitter=submitter)
        return await foreground.rested()

    return drive


def code_of(rested: Rested) -> ExitCode:
    """Return what the exit code says about a plan that rests."""
    if rested.stopped:
        return ExitCode.INTERRUPTED
    code = ExitCode.UNFINISHED if rested.view is None else exit_code(rested.view)
    return ExitCode.ENVIRONMENT if code is ExitCode.UNFINISHED and rested.lacks_programs else code


def _say_cut_off(why: str) -> None:
    sys.stderr.write(
        f"The pause cannot be recorded: {why}\n"
        "The agents are ended now. `loopwright doctor` says what is wrong with the home.\n"
    )


class _Notes(logging.Handler):
    """Prints each warning once beside the picture; the log has the rest."""

    def __init__(self, display: Display) -> None:
        super().__init__(logging.WARNING)
        self._display = display
        self._told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self._told:
            self._told.add(text)
            why = getattr(record, "why", "")
            self._display.say(f"[yellow]note[/]: {escape(text)}" + (f": {escape(str(why))}" if why else ""))
