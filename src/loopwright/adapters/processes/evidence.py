"""What is written down of a run beside its output and its prompt, and one hash of all of it."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from loopwright.adapters.gates.records import folder_of
from loopwright.core.gates.flakes import FOLDERS
from loopwright.keeper import places
from loopwright.ports import FINGERPRINT

_KEPT: Final = (places.SPEC, places.EXIT, places.WRITES, FINGERPRINT)
"""How it was started, how it ended, what it was answered, and how the checkout was before. What only says how it is
going (its status, its lock, the keeper's own log) is evidence of nothing."""


def listing(directory: Path) -> bytes:
    """Return the names of these files with their hashes, as `sha256sum` lists them; commands run again are among it."""
    lines = [f"{_sha256(directory / name)}  {name}\n" for name in sorted(_names(directory))]
    return "".join(lines).encode()


def evidence_hash(directory: Path) -> str:
    """Return the hash of that list; empty where nothing is kept."""
    listed = listing(directory)
    return hashlib.sha256(listed).hexdigest() if listed else ""


def _names(directory: Path) -> Iterator[str]:
    for folder in (directory, *(directory / name for name in FOLDERS)):
        for path in (*(folder / name for name in _KEPT), *folder_of(folder).glob("*")):
            if path.is_file():
                yield str(path.relative_to(directory))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
