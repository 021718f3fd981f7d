"""The disk that a home is on, as the system tells it."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from loopwright.adapters.machine.files import write_atomically
from loopwright.keeper import places

_GOING: Final = f"{places.OUTPUT}.removed"
_NOTE: Final = "recording-removed"
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")


class HomeDisk:
    """Measures one home."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def free(self) -> int:
        """Return how many bytes can still be written to the home."""
        return shutil.disk_usage(self._root).free

    def taken(self, *folders: Path) -> int:
        """Return how many bytes these folders take; what vanishes in the meantime counts for nothing."""
        return sum(size for folder in folders for size in _sizes(str(folder)))

    def recorded(self, run: Path) -> int:
        """Return how many bytes the recording in a run's folder takes."""
        return self.taken(run / places.OUTPUT, run / _GOING)

    def forget(self, run: Path, since: str) -> None:
        """Delete the recording in a run's folder, and leave a note of the day."""
        # The note first: a recording that is gone without one looks as if it had been stolen. And all of it at once:
        # half of one, after a kill, would look like a change.
        write_atomically(run / _NOTE, f"{since}\n")
        shutil.rmtree(run / _GOING, ignore_errors=True)
        with suppress(FileNotFoundError):
            (run / places.OUTPUT).rename(run / _GOING)
        shutil.rmtree(run / _GOING, ignore_errors=True)


def forgotten_since(run: Path) -> str | None:
    """Return the day since which a run's recording is no longer kept; None if it was not deleted."""
    try:
        text = (run / _NOTE).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
    return text if _DAY.fullmatch(text) and not (run / places.OUTPUT).exists() else None


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
