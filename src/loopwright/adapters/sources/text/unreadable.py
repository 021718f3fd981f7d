"""A text that cannot be read: where, and why."""

from typing import Final

MAX_DEPTH: Final = 50


class Unreadable(Exception):
    """The text cannot be read; where, and why."""

    def __init__(self, line: int | None, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message
