"""Makes complete, redacted lines of one stream, in bounded memory."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from loopwright.keeper.redact import Redactor

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
