"""Containers that nobody is in charge of any more: of killed runs, and of before a crash of the machine."""

import fcntl
import json
import os
from pathlib import Path

from loopwright.adapters.sandbox import boxed


def remove_of_run(notes: Path, run_id: str) -> int:
    """Remove the containers of a run, whoever is in charge of them; return how many there may have been."""
    found = list(notes.glob(f"loopwright-{run_id}-*"))
    for note in found:
        _remove(note)
    return len(found)


def remove_abandoned(notes: Path) -> int:
    """Remove the containers that nobody is in charge of; return how many there may have been."""
    found = [note for note in notes.glob("loopwright-*") if _is_abandoned(note)]
    for note in found:
        _remove(note)
    return len(found)


def _is_abandoned(note: Path) -> bool:
    """Say whether both processes that look after a container are gone: either would hold its note."""
    try:
        fd = os.open(note, os.O_RDONLY)
    except OSError:
        return False  # removed just now
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _remove(note: Path) -> None:
    try:
        job = json.loads(note.read_text())
    except FileNotFoundError:
        return
    except ValueError:
        # It is written before anything is made, so there was nothing to remove.
        note.unlink(missing_ok=True)
        return
    if boxed.remove(job, note.name):
        note.unlink(missing_ok=True)
