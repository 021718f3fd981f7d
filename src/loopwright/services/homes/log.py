"""The log of a home: a file, because a terminal is for people."""

import logging
import sys
from pathlib import Path


def log_to(home: Path) -> None:
    """Send what the engine logs to a file in the home: a terminal is for people."""
    handler = _LogFile(home / "loopwright.log", delay=True)
    handler.setFormatter(_WithFacts("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger("loopwright")
    root.addHandler(handler)
    root.setLevel(logging.INFO)


class _WithFacts(logging.Formatter):
    """Writes what a message is about behind it: which leg, and why."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        return " ".join([super().formatMessage(record), *_facts(record)])


def _facts(record: logging.LogRecord) -> list[str]:
    return [f"{name}={value}" for name, value in vars(record).items() if name not in _BARE]


_BARE = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime"})


class _LogFile(logging.FileHandler):
    """A log that a full disk does not turn into a flood of tracebacks on the terminal."""

    _told = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write it down; a log that cannot even be opened ends no work."""
        try:
            super().emit(record)
        except OSError:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - the name is logging's
        if not self._told:
            self._told = True
            sys.stderr.write(f"note: {self.baseFilename} cannot be written: {sys.exc_info()[1]}\n")
