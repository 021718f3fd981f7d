"""What a library logs in this thread, collected instead of printed: it may name secrets."""

import logging
import threading


class Heard(logging.Handler):
    """Collects the warnings of a library in this thread for the length of a block."""

    def __init__(self, library: str) -> None:
        super().__init__(logging.WARNING)
        self._thread = threading.get_ident()
        self.lines: list[str] = []
        self._logger = logging.getLogger(library)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a warning."""
        if record.thread == self._thread:
            self.lines.append(record.getMessage())

    def __enter__(self) -> "Heard":
        self._logger.addHandler(self)
        self._logger.propagate = False
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
