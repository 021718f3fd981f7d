"""Containers that nobody is in charge of any more: of killed runs, and of before a crash of the machine."""

import fcntl
import json
import logging
import os
from pathlib import Path

from loopwright.adapters.sandbox import boxed
from loopwright.core.values.errors import CannotRun

log = logging.getLogger(__name__)


def remove_of_run(notes: Path, run_id: str, tries: int = boxed.TRIES) -> int:
    """Remove the containers of a run, whoever is in charge of them; return how many there may have been.

    Raise `CannotRun` when one may be there still: nobody may take its workspace for left.
    """
    found = list(notes.glob(f"loopwright-{run_id}-*"))
    stay = [note.name for note in found if not _remove(note, tries)]
    if stay:
        raise CannotRun(f"a container could not be removed: {', '.join(stay)}")
    return len(found)


def remove_abandoned(notes: Path) -> int:
    """Remove the containers that nobody is in charge of; return how many there may have been.

    One that stays keeps its note, and is removed the next time.
    """
    found = [note for note in notes.glob("loopwright-*") if _is_abandoned(note)]
    for note in found:
        if not _remove(note, boxed.TRIES):
            log.warning("container not removed", extra={"container": note.name})
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


def _remove(note: Path, tries: int) -> bool:
    try:
        job = json.loads(note.read_text())
    except FileNotFoundError:
        return True
    except ValueError:
        # It is written before anything is made, so there was nothing to remove.
        note.unlink(missing_ok=True)
        return True
    if not boxed.remove(job, note.name, tries):
        return False
    note.unlink(missing_ok=True)
    return True
