"""Which pins keep the work of attempts, as we left them: a list of ours, so that what others take away is known.

It lies in our own git dir, one line for each change: a restart does not forget it, and nobody has to go through all
pins of a plan to note one more.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

FOLDER: Final = "refs/loopwright/attempts/"
_GONE: Final = "-"


class PinList:
    """The pins of attempts that we made and did not let go of; several processes may write it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._known: dict[str, str] = {}

    def note(self, pins: Mapping[str, str]) -> None:
        """Add pins, each with the commit that it is at."""
        self._write({name: sha for name, sha in pins.items() if name.startswith(FOLDER)})

    def forget(self, names: Collection[str]) -> None:
        """Take pins off the list that are to go."""
        self._write({name: _GONE for name in names if name.startswith(FOLDER)})

    def below(self, folder: str) -> dict[str, str]:
        """Return the pins in a folder, each with the commit that it has to be at."""
        self._catch_up()
        return {name: sha for name, sha in self._known.items() if name.startswith(folder)}

    def _write(self, changes: Mapping[str, str]) -> None:
        if changes:
            with self._path.open("a", encoding="utf-8") as file:
                file.write("".join(f"{sha} {name}\n" for name, sha in changes.items()))

    def _catch_up(self) -> None:
        if not self._path.is_file():
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            # One that is being written, or was cut short by a kill, has no end yet.
            whole, end, _ = file.read().rpartition(b"\n")
        self._read += len(whole + end)
        for line in whole.decode("utf-8", "replace").splitlines():
            sha, _, name = line.partition(" ")
            if sha == _GONE:
                self._known.pop(name, None)
            elif " " not in name:
                # Otherwise a full disk cut a line short, and the next one went on where it ended: who looks at the
                # pins that are there notes them again.
                self._known[name] = sha
