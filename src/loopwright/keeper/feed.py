"""The child's stdin: numbered writes, each once, logged before they are acknowledged."""

from __future__ import annotations

import json
import os
import time

from loopwright.keeper.places import iso, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from loopwright.keeper.redact import Redactor

WAITING_LIMIT = 16 * 1024 * 1024


class CannotWrite(Exception):
    """The write was refused; nothing was written."""


class Feed:
    """Writes to the child without ever waiting for it."""

    def __init__(self, fd: int, log_path: str, redactor: Redactor) -> None:
        self.fd = fd
        """-1 without a pipe, or after it was closed."""
        self._waiting = bytearray()
        self._close_when_empty = False
        self._closed_by_child = False
        self._numbers: set[int] = set()
        self._redactor = redactor
        self._log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._log_size = os.fstat(self._log).st_size

    @property
    def wants_to_write(self) -> bool:
        """Whether something waits for the child to read."""
        return self.fd >= 0 and bool(self._waiting)

    def write(self, number: int, data: str, *, close: bool, output_at: int) -> bool:
        """Take in a numbered write; False when this number was written before."""
        if number in self._numbers:
            return False
        if not self._closed_by_child:
            if self.fd < 0 or self._close_when_empty:
                raise CannotWrite("the process has no stdin that is open")
            if len(self._waiting) + len(data) > WAITING_LIMIT:
                raise CannotWrite("the process does not read its stdin, and too much waits for it already")
        self._note(number, data, close=close, output_at=output_at)
        self._numbers.add(number)
        self.put(data)
        if close:
            self.close()
        return True

    def put(self, data: str) -> None:
        """Queue a text that has no number: the first input, or the polite interrupt."""
        if self.fd >= 0 and not self._close_when_empty:
            self._waiting += data.encode(errors="surrogateescape")
            self.flush()

    def close(self) -> None:
        """Close stdin once everything is written."""
        self._close_when_empty = True
        self.flush()

    def flush(self) -> None:
        """Write as much as the child takes now."""
        try:
            while self.wants_to_write:
                del self._waiting[: os.write(self.fd, self._waiting[: 64 * 1024])]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._closed_by_child = True
            self._waiting.clear()
            self._close_when_empty = True
        if self._close_when_empty and self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _note(self, number: int, data: str, *, close: bool, output_at: int) -> None:
        shown = self._redactor.redact(data.encode(errors="replace")).decode(errors="replace")
        entry = {"n": number, "data": shown, "close": close, "output_at": output_at, "at": iso(time.time())}
        line = json.dumps(entry).encode() + b"\n"
        try:
            write_all(self._log, line)
            os.fsync(self._log)
        except OSError as problem:
            os.ftruncate(self._log, self._log_size)
            raise CannotWrite(f"the write could not be logged: {problem.strerror}") from problem
        self._log_size += len(line)
