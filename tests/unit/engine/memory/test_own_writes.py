"""What the worker itself wrote into a checkout is nobody's stray change; what came over it is."""

from pathlib import Path

from loopwright.engine.memory.worker_facts import OwnWrites
from loopwright.ports import Tripwire


def taken(**status: str) -> Tripwire:
    return Tripwire(head="main", refs={}, status=status, config={})


def test_only_what_is_still_as_it_was_written_here_is_spared(tmp_path: Path) -> None:
    own = OwnWrites()
    for name in ("mine", "theirs", "other"):
        (tmp_path / name).write_bytes(b"new")
    own.note(tmp_path, {"mine": b"new", "theirs": b"ours", "gone": b"new"})
    before = taken(mine="1", other="1", gone="1")
    after = taken(mine="2", other="2", theirs="2", gone="2")
    spared = own.spare(tmp_path, before, after)
    assert spared == (taken(other="1", gone="1"), taken(other="2", theirs="2", gone="2"))


def test_a_draft_of_a_file_that_was_written_here_is_spared_once_it_is_gone(tmp_path: Path) -> None:
    own = OwnWrites()
    own.note(tmp_path, {"mine.json": b"new"})
    (tmp_path / ".mine.json.abcd_123").write_bytes(b"left")
    names = (".mine.json.5qvkxqtg", ".theirs.json.5qvkxqtg", ".mine.json.abcd_123", "mine.json.5qvkxqtg")
    status = dict.fromkeys(names, "1")
    kept = dict.fromkeys(names[1:], "1")
    assert own.spare(tmp_path, taken(**status), taken()) == (taken(**kept), taken())
    assert own.spare(tmp_path, taken(), taken(**status)) == (taken(), taken(**kept))
