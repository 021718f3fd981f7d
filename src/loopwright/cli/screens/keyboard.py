"""The keyboard beside a live picture: what is typed is not shown, so that it cannot tear the picture."""

import asyncio
import os
import sys
import termios
from contextlib import suppress
from types import TracebackType
from typing import Any, Self


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
