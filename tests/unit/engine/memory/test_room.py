"""How much room on the disk there has to be, and who has to leave when there is too little."""

from dataclasses import dataclass
from pathlib import Path

from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.engine.memory.worker_facts import Room

GB = 1 << 30


@dataclass
class Disk:
    """A disk with so much free, on which every folder takes as much."""

    left: int
    each: int

    def free(self) -> int:
        return self.left

    def taken(self, *folders: Path) -> int:
        return self.each * len(folders)


def room(left: int, each: int = 0, *, keep: int | None = GB, most: int | None = 4 * GB) -> Room:
    return Room(disk=Disk(left, each), min_free=keep, max_workspace=most)


@each_case(("left", "keep", "lacks"), [(GB, GB, False), (GB - 1, GB, True), (0, None, False)])
def test_another_agent_needs_what_has_to_stay_free(left: int, keep: int | None, lacks: bool) -> None:
    assert bool(room(left, keep=keep).lacking()) is lacks


def test_what_is_lacking_names_the_setting(wording: Wording) -> None:
    wording(room(300 << 20).lacking())


@each_case(
    ("left", "each", "words"),
    [
        (9 * GB, GB, ""),
        (9 * GB, 3 * GB, "disk.max_workspace allows 4.0 GB"),
        (GB // 5, GB, "the disk is nearly full, and the workspace alone takes 2.0 GB"),
        (GB // 5, GB // 4, ""),
        (GB // 3, GB, ""),
    ],
    ids=[
        "fits",
        "over the quota",
        "takes the last room",
        "is small while others take it",
        "some room is left",
    ],
)
def test_whoever_takes_too_much_has_to_stop(left: int, each: int, words: str) -> None:
    why = room(left, each).excess(Path("workspace"), Path("run"))
    assert words in why
    assert bool(why) is bool(words)


def test_without_limits_nothing_is_measured() -> None:
    assert not room(0, keep=None, most=None).is_limited
    assert room(0, 9 * GB, keep=None, most=None).excess(Path("workspace")) == ""
