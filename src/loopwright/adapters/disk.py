"""The disk that a home is on, as the system tells it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


class HomeDisk:
    """Measures one home."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def free(self) -> int:
        """Return how many bytes can still be written to the home."""
        return shutil.disk_usage(self._root).free

    def taken(self, *folders: Path) -> int:
        """Return how many bytes these folders take; what vanishes meanwhile counts for nothing."""
        return sum(size for folder in folders for size in _sizes(str(folder)))


def _sizes(folder: str) -> Iterator[int]:
    inner = []
    with suppress(OSError), os.scandir(folder) as listing:
        for entry in listing:
            with suppress(OSError):
                # Blocks, not length: a file with holes takes only what is written in it.
                yield entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    inner.append(entry.path)
    for each in inner:
        yield from _sizes(each)
