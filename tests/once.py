"""Something that takes many seconds and that many tests only look at: done once for all parallel test processes."""

import fcntl
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from tests.loaded import Said

T = TypeVar("T")


def once(factory: pytest.TempPathFactory, name: str, carry_out: Callable[[Path], Said]) -> tuple[Path, Said]:
    """Do it in a folder of its own, unless that was done; return the folder, and what the program said."""
    shared = _shared(factory)
    place, said = shared / name, shared / f"{name}.json"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not said.exists():
            place.mkdir()
            done = carry_out(place)
            said.write_text(json.dumps({"code": done.code, "out": done.out, "err": done.err}))
    return place, Said(**json.loads(said.read_text()))


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[], T]) -> T:
    """Make a value unless another process has made it; return the value."""
    shared = _shared(factory)
    kept = shared / f"{name}.pickle"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_bytes(pickle.dumps(make()))
    found: T = pickle.loads(kept.read_bytes())
    return found


def _shared(factory: pytest.TempPathFactory) -> Path:
    """Return the folder that all parallel test processes share."""
    parallel = factory.getbasetemp().name.startswith("popen-")
    return factory.getbasetemp().parent if parallel else factory.getbasetemp()
