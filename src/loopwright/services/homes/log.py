"""The log of a home: a file, because the terminal is for the user."""

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Final

DAEMON_LOG: Final = "daemon.jsonl"
REQUESTS: Final = "loopwright-requests"
"""The logger of requests: outside `loopwright`, because they are only in the daemon's log."""
_LARGEST_LOG: Final = 10 << 20
_KEPT_LOGS: Final = 3


def log_to(home: Path) -> None:
    """Write the engine's log to a file in the home, because the terminal is for the user."""
    handler = _Quiet(home / "loopwright.log", delay=True)
    handler.setFormatter(_WithFacts("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger("loopwright")
    root.addHandler(handler)
    root.setLevel(logging.INFO)


def log_daemon_to(home: Path, *others: str) -> None:
    """Write the daemon's log to a file of JSON lines in the home, with the log of `others`."""
    file = home / DAEMON_LOG
    file.touch(mode=0o600)
    handler = _RotatingLog(file, maxBytes=_LARGEST_LOG, backupCount=_KEPT_LOGS)
    handler.setFormatter(_JsonLines())
    for name in ("loopwright", REQUESTS, *others):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)


class _JsonLines(logging.Formatter):
    """Writes a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        facts: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_facts_of(record),
        }
        if record.exc_info:
            facts["error"] = self.formatException(record.exc_info)
        return json.dumps(facts, ensure_ascii=False, default=str)


class _WithFacts(logging.Formatter):
    """Adds the subject of a message: the leg, and the reason."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        return " ".join([super().formatMessage(record), *_facts(record)])


def _facts(record: logging.LogRecord) -> list[str]:
    return [f"{name}={value}" for name, value in _facts_of(record).items()]


def _facts_of(record: logging.LogRecord) -> Mapping[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _BARE}


_BARE = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime"})


class _Quiet(logging.FileHandler):
    """A log that does not flood the terminal with tracebacks when the disk is full."""

    _told = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; a log that cannot be opened ends no work."""
        try:
            super().emit(record)
        except OSError:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - the name is logging's
        if not self._told:
            self._told = True
            sys.stderr.write(f"note: {self.baseFilename} cannot be written: {sys.exc_info()[1]}\n")


class _RotatingLog(_Quiet, RotatingFileHandler):
    """A log in several files, of which the oldest is removed."""
