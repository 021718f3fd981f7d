"""Showing a plan while it runs: a live table on a terminal, one line per change elsewhere."""

import asyncio
import os
import sys
import termios
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from rich.live import Live
from rich.markup import escape

from loopwright.cli.screens.plan_table import awaits_look, headline, mark, remark, screen, sleeping, word
from loopwright.cli.screens.question import picture
from loopwright.cli.shell.output import console
from loopwright.core.values.wording import duration
from loopwright.services.views.plans import SETS_UP, PlanView, TaskView

# The keyboard beside a live picture: what is typed is not shown, so that it cannot tear the picture.


def _in_foreground(fd: int) -> bool:
    """Return whether a terminal may be changed: from the background, that would stop this process."""
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return True  # a terminal that controls no session stops no process


class Keyboard:
    """Takes the keys of the terminal while a picture is shown; without a terminal it does nothing."""

    def __init__(self) -> None:
        self._fd: int | None = None
        self._before: list[Any] = []

    def __enter__(self) -> Self:
        if sys.stdin is not None and sys.stdin.isatty() and _in_foreground(sys.stdin.fileno()):
            self._fd = sys.stdin.fileno()
            self._before = termios.tcgetattr(self._fd)
            quiet = termios.tcgetattr(self._fd)
            quiet[3] &= ~(termios.ECHO | termios.ICANON)
            termios.tcsetattr(self._fd, termios.TCSADRAIN, quiet)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd is not None:
            # A terminal that was closed has nothing to put back.
            with suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSAFLUSH, self._before)
            self._fd = None

    def on_key(self, key: str) -> asyncio.Event:
        """Return an event that is set when a key is pressed; all others are thrown away."""
        pressed = asyncio.Event()
        if self._fd is not None:
            loop = asyncio.get_running_loop()
            loop.add_reader(self._fd, self._read, self._fd, key, pressed, loop)
        return pressed

    def _read(self, fd: int, key: str, pressed: asyncio.Event, loop: asyncio.AbstractEventLoop) -> None:
        try:
            typed = os.read(fd, 1024)
        except OSError:
            typed = b""  # the terminal is gone
        if not typed:
            loop.remove_reader(fd)
        if key.encode() in typed.lower():
            pressed.set()


_QUIET = frozenset({"QUEUED", "CREATED"})


def _noted(view: PlanView) -> int:
    """Return how many tasks may take a second line."""
    return sum(task.status in ("RUNNING", "ERROR", "AWAITING_RESPONSE") for task in view.tasks)


class Display:
    """Prints what changed since it was last shown."""

    def __init__(self, *, footer: str = "", quiet: bool = False) -> None:
        self._console = console()
        self._quiet = quiet
        self._footer = footer
        self._seen: dict[str, str] = {}
        self._asked: set[str] = set()
        self._warned: dict[str, int] = {}
        """Of which limit it was said that it is nearly used up, and how high that was."""
        self._begun = False
        self._waits = False
        self._sleeps: datetime | None = None
        self.keyboard = Keyboard()
        self._live = (
            Live(console=self._console, refresh_per_second=4, transient=True)
            if self._console.is_terminal and not quiet
            else None
        )

    @property
    def is_live(self) -> bool:
        """Whether it is a moving picture, rather than lines."""
        return self._live is not None

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is ever shown."""
        return self._quiet

    def __enter__(self) -> Self:
        if self._live is not None:
            self.keyboard.__enter__()
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)
            self.keyboard.__exit__(kind, error, trace)

    def show(self, view: PlanView) -> None:
        """Show the plan as it is now."""
        if self._quiet:
            return
        if self._live is not None:
            height = max(4, self._console.size.height - 9 - _noted(view))
            self._live.update(screen(view, limit=height, footer=self._footer, live=True))
            return
        if not self._begun:
            self._begun = True
            self._console.print(headline(view))
            if self._footer:
                self._console.print(f"[dim]{escape(self._footer)}[/]")
        for task in view.tasks:
            self._line(task)
        if view.awaits_look and not self._waits:
            self._console.print(f"  [yellow]{escape(awaits_look(view))}[/]")
        self._waits = view.awaits_look
        if view.sleeps_until and view.sleeps_until != self._sleeps:
            self._console.print(f"  [dim]{escape(sleeping(view))}[/]")
        self._sleeps = view.sleeps_until
        for limit in view.limits:
            if limit.warning and self._warned.get(limit.setting) != limit.limit_micros:
                self._warned[limit.setting] = limit.limit_micros
                self._console.print(f"  [yellow]warning[/]: {escape(limit.warning)}")
        for question in view.questions:
            if question.id not in self._asked:
                self._asked.add(question.id)
                self._console.print(picture(question, again=True))
        sys.stdout.flush()

    def say(self, text: str) -> None:
        """Print a message in between."""
        if not self._quiet:
            self._console.print(text)

    def _line(self, task: TaskView) -> None:
        sets_up = task.stage == "PREPARING" and task.doing.startswith(SETS_UP)
        now = f"{task.status}/{task.stage}/{task.attempt}/{sets_up}"
        before = self._seen.get(task.id)
        self._seen[task.id] = now
        if now == before or (task.status in _QUIET and (before is None or task.attempt <= 1)):
            return
        if task.status in _QUIET:
            if task.taken_by:
                return  # the next one is a person's, whenever they hand it back
            why = f"not accepted ({task.failure.replace('_', ' ')})" if task.failure else "queued again"
            due = f"round {task.round}" if task.rounds else f"attempt {task.attempt}"
            self._console.print(f"  ↻ {escape(task.key)}  {why}; {due} is due")
            return
        line = mark(task)
        line.append(f"  {task.key}  {word(task)}  {duration(task.elapsed_s)}  {remark(task)}".rstrip())
        self._console.print("  ", line, sep="")
