"""A plan file on disk: bounded, decoded, parsed by its ending."""

import hashlib
from pathlib import Path
from typing import Final

from loopwright.adapters.sources.located import Located, Unreadable, read_yaml
from loopwright.adapters.sources.located_json import read_json

MAX_BYTES: Final = 5 * 1024 * 1024


def read_document(path: Path) -> tuple[Located, str]:
    """Return what a file contains and the SHA-256 of its bytes, or raise `Unreadable`."""
    content = _content(path)
    text = _decode(content)
    document = read_json(text) if path.suffix.lower() == ".json" else read_yaml(text)
    return document, hashlib.sha256(content).hexdigest()


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise Unreadable(None, "there is no such file") from None
    except IsADirectoryError:
        raise Unreadable(None, "this is a folder, not a plan file") from None
    except (OSError, ValueError) as broken:
        reason = broken.strerror if isinstance(broken, OSError) and broken.strerror else str(broken)
        raise Unreadable(None, f"the file cannot be read: {reason}") from broken
    if len(content) > MAX_BYTES:
        raise Unreadable(None, f"the file is larger than {MAX_BYTES // 1024 // 1024} MB")
    return content


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as broken:
        line = content[: broken.start].count(b"\n") + 1
        raise Unreadable(line, "this is not UTF-8: save the file with that encoding") from broken
