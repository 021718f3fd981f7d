"""Something that takes many seconds and that many tests only look at: done once for all parallel test processes."""

import fcntl
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.loaded import Said


def once(factory: pytest.TempPathFactory, name: str, carry_out: Callable[[Path], Said]) -> tuple[Path, Said]:
    """Do it in a folder of its own, unless that was done; return the folder, and what the program said."""
    parallel = factory.getbasetemp().name.startswith("popen-")
    shared = factory.getbasetemp().parent if parallel else factory.getbasetemp()
    place, said = shared / name, shared / f"{name}.json"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not said.exists():
            place.mkdir()
            done = carry_out(place)
            said.write_text(json.dumps({"code": done.code, "out": done.out, "err": done.err}))
    return place, Said(**json.loads(said.read_text()))
