"""Making the records of a gate run from those of an earlier run on the same tree, without running anything."""

import json
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.gates.records import REUSED, evidence_file, folder_of, read_records
from loopwright.adapters.gates.text import clean_name
from loopwright.adapters.gates.within import narrowed, record
from loopwright.adapters.machine.files import write_atomically
from loopwright.core.values.policy import GateCommand
from loopwright.keeper import places
from loopwright.ports import GateRequest, ShownBy

_PARTS: Final = ("out", "seen", "xml")


def reuse(request: GateRequest, source: Path, shown: Mapping[str, ShownBy], at: datetime) -> bool:
    """Write the records of a run's commands as an earlier run has them; False when that run does not answer for them.

    It has to have run the same commands in the same environment with the programs that are there now. Commands in
    `shown` were not among them: all their tests ran in a wider one.
    """
    try:
        job = json.loads((folder_of(source) / "job.json").read_text(encoding="utf-8"))
        results = json.loads((folder_of(source) / "results.json").read_text(encoding="utf-8"))
        recorded = tuple(GateCommand(**one) for one in job["commands"])
        read_records(source, recorded)  # raises when a file was changed since
        ended = json.loads((source / places.EXIT).read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        return False  # gone, changed, or of another shape
    if job.get("conditions") != conditions(request, recorded):
        return False
    asked = [shown[one.command].gate if one.command in shown else one for one in request.commands]
    if not all(one in recorded for one in asked):
        return False
    folder = folder_of(request.directory)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    entries, names = [], []
    for n, (command, taken) in enumerate(zip(request.commands, asked, strict=True), 1):
        position = recorded.index(taken) + 1
        names.append(job["witness"]["commands"][position - 1])
        if command.command in shown:
            entries.append(_shown(source, position, command, shown[command.command], folder, n))
        else:
            entries.append({**results["commands"][position - 1], "output_file": f"{n}.out"})
            _copy(source, position, folder, n)
    ours = {
        "directory": str(folder),
        "commands": [asdict(one) for one in request.commands],
        "witness": {**job["witness"], "commands": names},
        REUSED: source.name,
    }
    write_atomically(folder / "job.json", json.dumps({**job, **ours}))
    write_atomically(folder / "results.json", json.dumps({**results, "commands": entries}))
    _end(request, source, ended, at)
    return True


def conditions(request: GateRequest, commands: tuple[GateCommand, ...]) -> dict[str, Any]:
    """Return what the result of these commands depends on besides the tree and the commands themselves."""
    return {"environment": request.environment, "programs": programs_of(commands, request.env)}


def _copy(source: Path, position: int, folder: Path, n: int) -> None:
    for part in _PARTS:
        path = evidence_file(source, f"{position}.{part}")
        if path.exists():
            shutil.copyfile(path, folder / f"{n}.{part}")


def _shown(
    source: Path, position: int, command: GateCommand, by: ShownBy, folder: Path, n: int
) -> dict[str, Any]:
    """Record a command whose tests all ran in a wider one: what was seen of them there, without its own output."""
    lines = evidence_file(source, f"{position}.seen").read_bytes()
    seen = narrowed(lines, lambda test: clean_name(test) in by.tests)
    return record(n, asdict(command), folder, seen=seen, tests=len(by.tests), by=by.gate.name)


def _end(request: GateRequest, source: Path, ended: dict[str, Any], at: datetime) -> None:
    """Write how the run ended, last: from then on it has. What it printed is what the earlier run printed."""
    shutil.copytree(source / places.OUTPUT, request.directory / places.OUTPUT, dirs_exist_ok=True)
    now = {"run_id": request.run_id, "started_at": at.isoformat(), "ended_at": at.isoformat()}
    write_atomically(request.directory / places.EXIT, json.dumps({**ended, **now}))


# What a gate's result depends on besides the tree and the commands: the programs that the commands start.

Programs = list[list[str | int]]


def programs_of(commands: Sequence[GateCommand], env: Mapping[str, str]) -> Programs:
    """Return each program that a command names, with what changes when it, or a package beside it, is replaced."""
    found: dict[str, list[str | int]] = {}
    for command in commands:
        for word in _words(command.command):
            if (
                not word.startswith("-")
                and word not in found
                and (place := shutil.which(word, path=env.get("PATH", "")))
            ):
                found[word] = [word, os.path.realpath(place), *_stamps(Path(place))]
    return list(found.values())


@lru_cache(maxsize=256)
def _words(command: str) -> tuple[str, ...]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return tuple(lexer)
    except ValueError:
        return tuple(command.split())


def _stamps(program: Path) -> list[int]:
    # An installer touches the folder of the packages that belong to an interpreter, so its time shows their changes.
    packages = sorted(program.parent.parent.glob("lib/python*/site-packages"))
    stats = [path.stat() for path in (program, *packages)]
    return [number for one in stats for number in (one.st_size, one.st_mtime_ns)]
