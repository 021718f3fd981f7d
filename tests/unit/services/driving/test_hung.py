"""A process that waits for a home notices that the one which holds it does nothing any more."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopwright.adapters.home.membership import LockedMembership
from loopwright.services.driving.hung import HungHolder

_HOLDS = """
import sys
from pathlib import Path
from loopwright.adapters.home.membership import LockedMembership
held = LockedMembership(Path(sys.argv[1]))
assert held.acquire({"pid": int(sys.argv[2]) or __import__("os").getpid()})
print("held", flush=True)
for line in sys.stdin:
    held.beat()
    print("beat", flush=True)
"""


class Holder:
    """A process that holds a home, and makes progress when it is told to."""

    def __init__(self, home: Path, note: int = 0) -> None:
        command = [sys.executable, "-c", _HOLDS, str(home), str(note)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._until("held")

    def beat(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("now\n")
        self.process.stdin.flush()
        self._until("beat")

    def _until(self, word: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"{word}\n"

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def holders() -> Iterator[list[Holder]]:
    """The processes that a test starts."""
    made: list[Holder] = []
    yield made
    for one in made:
        one.end()


def test_a_holder_that_makes_no_progress_is_ended_and_one_that_does_is_not(
    tmp_path: Path, holders: list[Holder]
) -> None:
    holders.append(holder := Holder(tmp_path))
    waiting = LockedMembership(tmp_path)
    hung = HungHolder(waiting, patience_s=60)
    assert hung.look(0) is None
    assert hung.look(59) is None
    holder.beat()
    assert hung.look(61) is None
    assert hung.look(120) is None
    assert holder.process.poll() is None
    assert hung.look(121) == holder.process.pid
    holder.process.wait()
    assert hung.ended == {holder.process.pid}
    assert waiting.acquire({"pid": os.getpid()})
    waiting.release()


def test_a_process_that_only_has_the_noted_number_is_left_alone(
    tmp_path: Path, holders: list[Holder]
) -> None:
    holders.append(other := Holder(tmp_path / "other"))
    holders.append(Holder(tmp_path / "home", note=other.process.pid))
    hung = HungHolder(LockedMembership(tmp_path / "home"), patience_s=60)
    assert [hung.look(now) for now in (0, 60, 120)] == [None, None, None]
    assert other.process.poll() is None
