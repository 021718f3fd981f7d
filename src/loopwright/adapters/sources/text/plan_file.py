"""The files of a source on disk: bounded, decoded, parsed by their ending."""

import codecs
import errno
from pathlib import Path
from typing import Final

from loopwright.adapters.sources.text.located import Located, read_yaml
from loopwright.adapters.sources.text.located_json import read_json
from loopwright.adapters.sources.text.problems import Unreadable

MAX_BYTES: Final = 5 * 1024 * 1024
MAX_LINES: Final = 50_000
_MACHINE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors of the machine, which say nothing about the file."""
_UTF_16: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def document(name: str, content: bytes) -> Located:
    """Return what a file contains, or raise `Unreadable`."""
    return (
        read_json(decoded_json(content)[0]) if name.lower().endswith(".json") else read_yaml(decoded(content))
    )


def content(path: Path) -> bytes:
    """Return the bytes of a file that is not too large, or raise `Unreadable`."""
    try:
        with path.open("rb") as file:
            found = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise Unreadable(None, "there is no such file") from None
    except IsADirectoryError:
        raise Unreadable(None, "this is a folder, not a plan file") from None
    except (OSError, ValueError) as broken:
        if isinstance(broken, OSError) and broken.errno in _MACHINE:
            raise
        reason = broken.strerror if isinstance(broken, OSError) and broken.strerror else str(broken)
        raise Unreadable(None, f"the file cannot be read: {reason}") from broken
    if len(found) > MAX_BYTES:
        raise Unreadable(None, f"the file is larger than {MAX_BYTES // 1024 // 1024} MB")
    return found


def decoded(content: bytes) -> str:
    """Return the text of a file, or raise `Unreadable`."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as broken:
        line = content[: broken.start].count(b"\n") + 1
        raise Unreadable(line, "this is not UTF-8: save the file with that encoding") from broken


def decoded_json(content: bytes) -> tuple[str, bytes, str]:
    """Return the text of a JSON file, its byte order mark and its encoding, or raise `Unreadable`.

    PowerShell writes UTF-16 when the output of a command goes to a file.
    """
    for mark, codec in _UTF_16.items():
        if content.startswith(mark):
            try:
                return content[len(mark) :].decode(codec), mark, codec
            except UnicodeDecodeError as broken:
                line = content[: broken.start].count(b"\n") + 1
                raise Unreadable(line, "this is not UTF-16: save the file as UTF-8") from broken
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    return decoded(content), mark, "utf-8"


def decoded_lines(content: bytes) -> str:
    """Return the text of a file that is read line by line, or raise `Unreadable`."""
    text = decoded(content)
    if text.count("\n") >= MAX_LINES:
        raise Unreadable(MAX_LINES, f"the file has more than {MAX_LINES} lines")
    return text
