"""A wall clock that really jumps, for every Python process of a test and what those start.

A small library in front of the C library shifts the time of day by what stands in a file that all of them share.
Keepers and agents get an environment of their own, so it is the interpreter itself that loads it: a copy of this
virtual environment whose `python` is a script.
"""

import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
MISSING = "clock jumps need Linux, a C compiler and bash" * (
    not (sys.platform == "linux" and shutil.which("cc") and shutil.which("bash"))
)
HOUR = 3600


class WallClock:
    """The clock, and the interpreter that sees it."""

    def __init__(self, place: Path) -> None:
        place.mkdir()
        self._shift = place / "shift"
        self._shift.write_bytes(bytes(8))
        library = place / "wall_clock.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE], check=True)
        real = Path(sys.executable)
        (place / "pyvenv.cfg").write_text((Path(sys.prefix) / "pyvenv.cfg").read_text())
        (place / "lib").symlink_to(Path(sys.prefix) / "lib")
        self.python = place / "bin" / "python"
        self.python.parent.mkdir()
        self.python.write_text(
            f"#!/bin/bash\nexport LD_PRELOAD={library} WALL_CLOCK_SHIFT={self._shift}\n"
            f'exec -a "$0" {real} "$@"\n'
        )
        self.python.chmod(0o755)

    def jump(self, seconds: int) -> None:
        """Move the clock of everyone at once, from where it stands."""
        with self._shift.open("r+b") as file:
            now = int.from_bytes(file.read(8), sys.byteorder, signed=True)
            file.seek(0)
            file.write((now + seconds).to_bytes(8, sys.byteorder, signed=True))
