"""What is being done right now, with a clock: for work that has no table, such as setup and checks on the base."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from loopwright.cli.shell.output import console
from loopwright.core.values.wording import duration, one_line


class Clock:
    """Shows one step after the other; on a terminal with the time that it takes, which runs."""

    def __init__(self, *, quiet: bool = False, out: Console | None = None) -> None:
        self._console = out or console(stderr=True)
        self._quiet = quiet
        self._step = ""
        self._began = 0.0
        self._live: Live | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def __call__(self, step: str) -> None:
        """Begin a step; the one before it has ended."""
        self._end()
        if self._quiet:
            return
        self._step, self._began = one_line(step), time.monotonic()
        if not self._console.is_terminal:
            self._console.print(Text(f"… {self._step}", style="dim"))
            return
        self._live = Live(
            get_renderable=self._line, console=self._console, refresh_per_second=2, transient=True
        )
        self._live.start()

    def _end(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
            self._console.print(self._line())

    def _line(self) -> Text:
        took = duration(time.monotonic() - self._began)
        line = Text(f"… {self._step}", style="dim")
        line.truncate(max(8, self._console.width - len(took) - 3), overflow="ellipsis")
        return line.append(f"  {took}", style="not dim")
