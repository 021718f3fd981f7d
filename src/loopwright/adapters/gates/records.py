"""What the runner left in a run's directory, read with distrust."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.gates.witnesses import read_witness
from loopwright.core.values.findings import CheckStatus, Witnessed
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.wording import clean
from loopwright.keeper import places

SCHEMA: Final = "loopwright.gate/1"
REUSED: Final = "reused"
"""Names the earlier run in the job of a run that was made from its records."""
_MAX_RESULTS: Final = 64 * 1024 * 1024
_REMEMBERED: Final = 256 * 1024
"""What a witness wrote is parsed again each time if it is larger than this."""
_SUMMARY: Final = re.compile(
    r"^(?:=+ )?(?:(?:\d+ (?:passed|failed|skipped|errors?|xfailed|xpassed|deselected|warnings?)(?:, )?)+|no tests ran)"
    r" in \d+\.\d\ds\b[^\n]*$",
    re.MULTILINE,
)
"""The last line of pytest: it may have run too shortly to be seen."""
_WORDS: Final = frozenset({"PASS", "FAIL", "SKIP", "ERROR"})


class NoRecords(ValueError):
    """The runner's records cannot be used: nothing was learned about the tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What one command did, with its kept output and the report that it wrote."""

    name: str
    command: str
    exit_code: int | None
    duration_s: float
    timed_out: bool
    output_sha256: str
    output_bytes: int
    tail: str
    kept: str
    kept_sha256: str
    seen_sha256: str
    report_sha256: str
    """Empty, like the one before, where there is no such file."""
    lost: Mapping[str, int]
    """How many check lines of each kind did not fit on disk."""
    report: bytes | None
    report_problem: str
    changed: tuple[str, ...] = ()
    """Files of the tree that git knows and that it changed."""
    touched: tuple[str, ...] = ()
    """Those that it wrote, and that are what they were."""
    unwatched: tuple[str, ...] = ()
    """Test runners that ran below it and did not report to the witness."""


def folder_of(directory: Path) -> Path:
    """Return where the runner of a run keeps its files."""
    return directory / "gate"


def evidence_file(directory: Path, part: str) -> Path:
    """Return the file of one command that a part of a receipt's key means: its position, and what of it."""
    position, _, kind = part.partition(".")
    return folder_of(directory) / f"{position}.{'out' if kind in ('', 'kept') else kind}"


def read_records(directory: Path, commands: Sequence[GateCommand]) -> tuple[Record, ...]:
    """Return one record for each command, or raise `NoRecords` with the reason."""
    folder = folder_of(directory)
    data = _results(folder)
    try:
        if data["schema"] != SCHEMA or data["complete"] is not True or len(data["commands"]) != len(commands):
            raise NoRecords("the gate did not run all of its commands")
        return tuple(
            _record(folder, n, command, data["commands"][n - 1]) for n, command in enumerate(commands, 1)
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise NoRecords(f"the gate's results have another shape: {error!r}") from error


def witness_of(folder: Path) -> Any:
    """Return how a run's commands are seen, if that was settled: a run that is taken over keeps it."""
    try:
        job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    # Made from the records of another run, and broken off before that was finished: it begins again.
    broken_off = REUSED in job and not (folder.parent / places.EXIT).exists()
    return None if broken_off else job["witness"]


def read_seen(directory: Path, count: int) -> list[Witnessed | None]:
    """Return what was seen inside the test runners of each command, or raise `NoRecords`."""
    folder = folder_of(directory)
    entries, settled = _results(folder)["commands"], witness_of(folder)
    if settled is None or len(entries) != count:
        raise NoRecords("the gate did not run all of its commands")
    found: list[Witnessed | None] = []
    for n, (entry, how) in enumerate(zip(entries, settled["commands"], strict=True), 1):
        seen = entry["seen"] and _file(folder / f"{n}.seen", entry["seen"]["sha256"])
        watched = _watched(seen, how["names"]) if seen else None
        reported = _reported(folder / f"{n}.xml", entry["junit"])
        if watched is not None and watched.tried and reported is not None:
            watched = replace(reported, problems=watched.problems, tried=True)
        found.append(watched or reported)
    return found


def _watched(seen: bytes, names: Mapping[str, str]) -> Witnessed | None:
    """Read what a witness wrote: of a run, and each time of the base that it is compared with."""
    if len(seen) > _REMEMBERED:
        return read_witness(seen, dict(names))
    return _remembered(seen, tuple(names.items()))


@lru_cache(maxsize=16)
def _remembered(seen: bytes, names: tuple[tuple[str, str], ...]) -> Witnessed | None:
    return read_witness(seen, dict(names))


def _reported(path: Path, taken: Mapping[str, Any] | None) -> Witnessed | None:
    """Return what a command's own report says of its tests; None when there is none that can be used."""
    if taken is None or taken["problem"]:
        return None
    from loopwright.adapters.gates.junit import Unreadable, junit_checks  # few gates write a report

    try:
        checks = junit_checks(_file(path, taken["sha256"]), prefix="")
    except Unreadable:
        return None  # the verdict says so
    ended: dict[CheckStatus, set[str]] = {status: set() for status in CheckStatus}
    for check in checks:
        ended[check.status].add(check.name)
    failed = ended[CheckStatus.FAILED] | ended[CheckStatus.ERROR]
    return Witnessed(
        passed=frozenset(ended[CheckStatus.PASSED] - failed),
        failed=frozenset(failed),
        skipped=frozenset(ended[CheckStatus.SKIPPED] - failed - ended[CheckStatus.PASSED]),
        reported=True,
    )


def _results(folder: Path) -> Any:
    try:
        with (folder / "results.json").open("rb") as file:
            return json.loads(file.read(_MAX_RESULTS))
    except FileNotFoundError:
        raise NoRecords("the gate left no results") from None
    except (OSError, ValueError) as error:
        raise NoRecords(f"the gate's results cannot be read: {error}") from error


def _record(folder: Path, position: int, command: GateCommand, entry: Mapping[str, Any]) -> Record:
    if (entry["name"], entry["command"]) != (command.name, command.command):
        raise NoRecords(f"the results of command {position} belong to another command")
    if entry["error"]:
        raise NoRecords(f'command "{command.name}": {entry["error"]}')
    report, problem = None, ""
    if command.junit is not None:
        problem = str(entry["junit"]["problem"])
        if not problem:
            report = _file(folder / f"{position}.xml", entry["junit"]["sha256"])
    kept = _file(folder / f"{position}.out", entry["kept_sha256"]).decode("utf-8", "replace")
    unwatched = {_typed(name, str) for name in entry["unwatched"]}
    seen = _file(folder / f"{position}.seen", entry["seen"]["sha256"]) if entry["seen"] else b""
    if b'"session"' not in seen and _SUMMARY.search(clean(kept)):
        unwatched.add("pytest")
    return Record(
        name=command.name,
        command=command.command,
        exit_code=_typed(entry["exit_code"], int),
        duration_s=float(_typed(entry["duration_s"], float, int)),
        timed_out=_typed(entry["timed_out"], bool),
        output_sha256=_typed(entry["output_sha256"], str),
        output_bytes=_typed(entry["output_bytes"], int),
        tail=_typed(entry["tail"], str),
        kept=kept,
        kept_sha256=entry["kept_sha256"],
        seen_sha256=entry["seen"]["sha256"] if entry["seen"] else "",
        report_sha256=entry["junit"]["sha256"] if report is not None else "",
        lost={word: _typed(n, int) for word, n in entry["lost"].items() if word in _WORDS},
        report=report,
        report_problem=problem,
        changed=tuple(_typed(path, str) for path in entry["changed"]),
        touched=tuple(_typed(path, str) for path in entry["touched"]),
        unwatched=tuple(sorted(unwatched)),
    )


def _typed(value: Any, *kinds: type) -> Any:
    if not isinstance(value, kinds):
        raise TypeError(f"{value!r} is not {kinds[0].__name__}")
    return value


def _file(path: Path, sha256: str) -> bytes:
    """Return a file of the runner, provided that it did not change since."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise NoRecords(f"{path.name} of the gate cannot be read: {error}") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise NoRecords(f"{path.name} of the gate was changed after it was recorded")
    return data
