"""The output on disk: one endless stream of lines, of which a bounded part is kept.

The stream is cut into segments; a segment is a file named after the position of its first byte. Segments are
only ever appended to or deleted whole, so a reader that comes later than a deletion sees a gap, never garbage.
Kept are the first segment, the one with the last line that said "done", and the newest ones.
"""

from __future__ import annotations

import os
import time

from loopwright.keeper.places import segment_name, write_all

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from loopwright.keeper.redact import Redactor


# Makes complete, redacted lines of one stream, in bounded memory.

LONGEST_LINE = 1024 * 1024


class Lines:
    """Collects bytes until a line is complete; what is longer than a line may be is cut, visibly."""

    def __init__(self, redactor: Redactor, *, longest: int, overlap: int) -> None:
        self._redactor = redactor
        self._longest = longest
        # A secret that stands across the cut is only seen whole with some more text behind it.
        self._overlap = overlap
        self._held = bytearray()
        self._cutting = False
        self.cut_bytes = 0

    def feed(self, data: bytes) -> bytes:
        """Take in bytes and return the lines that they completed."""
        if self._cutting:
            end = data.find(b"\n")
            self.cut_bytes += len(data) if end < 0 else end
            if end < 0:
                return b""
            self._cutting = False
            data = data[end + 1 :]
        end = data.rfind(b"\n")
        if end < 0:
            self._held += data
            return self._cut_held() if len(self._held) > self._longest + self._overlap else b""
        complete = bytes(self._held) + data[: end + 1]
        self._held = bytearray(data[end + 1 :])
        text = self._shortened(self._redactor.redact(complete))
        if len(self._held) > self._longest + self._overlap:
            text += self._cut_held()
        return text

    def finish(self) -> bytes:
        """Return what is left when the stream ends without a newline."""
        if not self._held:
            return b""
        rest = bytes(self._held) + b"\n"
        self._held.clear()
        return self._shortened(self._redactor.redact(rest))

    def _cut_held(self) -> bytes:
        text = self._redactor.redact(bytes(self._held))
        self._held.clear()
        self._cutting = True
        return self._cut(text, min(self._longest, len(text) - self._overlap))

    def _shortened(self, text: bytes) -> bytes:
        if len(text) <= self._longest + 1:
            return text
        lines = text.split(b"\n")
        if max(map(len, lines)) <= self._longest:
            return text
        kept = [line if len(line) <= self._longest else self._cut(line, self._longest)[:-1] for line in lines]
        return b"\n".join(kept)

    def _cut(self, text: bytes, length: int) -> bytes:
        length = max(length, 0)
        self.cut_bytes += len(text) - length
        return text[:length] + b" [loopwright: this line was too long and is cut here]\n"


SEGMENTS = 8
TAIL_BYTES = 64 * 1024
"""How much of the newest output is held in memory while the disk is full."""
RETRY_S = 1.0


def _new_sha256() -> Any:
    """Begin a digest with the built-in function: `hashlib` would load OpenSSL, 4 MB for nothing else."""
    for name in ("_sha2", "_sha256", "hashlib"):
        try:
            return __import__(name).sha256()
        except ImportError:
            continue
    raise ImportError("this Python has no SHA-256")


class Record:
    """Appends lines to the output and keeps its size within the limit."""

    def __init__(self, directory: str, limit: int) -> None:
        self._directory = directory
        self._limit = limit
        self.segment_bytes = max(limit // SEGMENTS, 64)
        self._tail_bytes = min(TAIL_BYTES, self.segment_bytes)
        self._hash = _new_sha256()
        self.total = 0
        """Bytes of the whole stream, kept or not: the position of the next line."""
        self._kept: dict[int, int] = {}  # start of a segment -> its size, in order
        self._current = -1  # start of the open segment
        self._fd = -1
        self._pinned = -1
        self._tail = bytearray()
        self._full_since: float | None = None
        self.problem = ""
        os.mkdir(directory, 0o700)

    def append(self, data: bytes) -> None:
        """Add complete lines."""
        self._hash.update(data)
        if self._full_since is not None:
            self._hold(data)
            if time.monotonic() - self._full_since >= RETRY_S:
                self.retry()
            return
        at = 0
        while at < len(data):
            end = self._piece_end(data, at)
            rest = self._write(data[at:end])
            if rest:
                self._full_since = time.monotonic()
                self._hold(rest + data[end:])
                return
            at = end

    def pin(self) -> None:
        """Keep the segment of the line that was appended last, whatever follows."""
        self._pinned = self._current

    def retry(self) -> None:
        """Try to write what is held in memory, after a gap."""
        if self._full_since is None:
            return
        held = bytes(self._tail)
        self._close()
        self.total -= len(held)
        rest = self._write(held) if held else b""
        self.total += len(rest)
        self._tail = bytearray(rest)
        self._full_since = time.monotonic() if rest else None

    def finish(self) -> None:
        """Write what can be written and make it durable."""
        self.retry()
        if self._fd >= 0:
            try:
                os.fsync(self._fd)
            except OSError as problem:
                self.problem = f"output could not be made durable: {problem.strerror}"
        self._close()

    @property
    def sha256(self) -> str:
        """The digest of the whole stream."""
        return str(self._hash.hexdigest())

    @property
    def dropped_bytes(self) -> int:
        """How much of the stream is not on disk."""
        return self.total - sum(self._kept.values())

    def _piece_end(self, data: bytes, at: int) -> int:
        room = self.segment_bytes - self._kept.get(self._current, self.segment_bytes)
        if len(data) - at <= room:
            return len(data)
        end = data.rfind(b"\n", at, at + max(room, 0)) + 1
        if end > at:
            return end
        # Nothing fits: the next piece begins a new segment, and one line always fits into that.
        self._close()
        end = data.rfind(b"\n", at, at + self.segment_bytes) + 1
        return end if end > at else data.index(b"\n", at) + 1

    def _write(self, piece: bytes) -> bytes:
        """Write whole lines; return those that do not fit."""
        while True:
            try:
                if self._fd < 0:
                    self._open(self.total)
                write_all(self._fd, piece)
            except OSError as problem:
                self.problem = f"output could not be written: {problem.strerror}"
                piece = piece[self._keep_whole_lines(piece) :]
                if not self._drop_one():
                    return piece
            else:
                self._grow(len(piece))
                return b""

    def _keep_whole_lines(self, piece: bytes) -> int:
        """After a write that failed half-way, keep what is complete of it; return how much that is."""
        if self._fd < 0:
            return 0
        before = self._kept[self._current]
        whole = piece.rfind(b"\n", 0, os.fstat(self._fd).st_size - before) + 1
        os.ftruncate(self._fd, before + whole)
        self._grow(whole)
        return whole

    def _grow(self, size: int) -> None:
        self._kept[self._current] += size
        self.total += size

    def _open(self, start: int) -> None:
        while sum(self._kept.values()) + self.segment_bytes > self._limit and self._drop_one():
            pass
        path = os.path.join(self._directory, segment_name(start))
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._current = start
        self._kept[start] = 0

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        self._current = -1

    def _drop_one(self) -> bool:
        """Delete the oldest segment that is neither the first, the last, the pinned nor the current one."""
        first = next(iter(self._kept), -1)
        last = next(reversed(self._kept), -1)
        for start in self._kept:
            if start not in {first, last, self._pinned, self._current}:
                os.unlink(os.path.join(self._directory, segment_name(start)))
                del self._kept[start]
                return True
        return False

    def _hold(self, data: bytes) -> None:
        self.total += len(data)
        self._tail += data[-self._tail_bytes :]
        if len(data) > self._tail_bytes or len(self._tail) > self._tail_bytes:
            # Only whole lines are held: forget everything up to the first newline inside the window.
            cut = self._tail.find(b"\n", len(self._tail) - self._tail_bytes)
            del self._tail[: cut + 1 if cut >= 0 else len(self._tail)]
