"""Reading a run directory from outside: who keeps it, how it ended, and its output from any position."""

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.gates.records import folder_of
from loopwright.adapters.machine.files import is_locked
from loopwright.core.gates.flakes import FOLDERS
from loopwright.keeper import home, places
from loopwright.keeper.processes import everything
from loopwright.ports import FINGERPRINT, Exit, OutputLine, Sighting

# What is written down of a run beside its output and its prompt, and one hash of all of it.

_KEPT: Final = (places.SPEC, places.EXIT, places.WRITES, FINGERPRINT)
"""How it was started, how it ended, what it was answered, and how the checkout was before. What only says how it is
going (its status, its lock, the keeper's own log) is evidence of nothing."""


def listing(directory: Path) -> bytes:
    """Return the names of these files with their hashes, as `sha256sum` lists them; commands run again are among it."""
    lines = [f"{_sha256(directory / name)}  {name}\n" for name in sorted(_names(directory))]
    return "".join(lines).encode()


def evidence_hash(directory: Path) -> str:
    """Return the hash of that list; empty where nothing is kept."""
    listed = listing(directory)
    return hashlib.sha256(listed).hexdigest() if listed else ""


def _names(directory: Path) -> Iterator[str]:
    for folder in (directory, *(directory / name for name in FOLDERS)):
        for path in (*(folder / name for name in _KEPT), *folder_of(folder).glob("*")):
            if path.is_file():
                yield str(path.relative_to(directory))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


READ_BYTES = 256 * 1024
_SEARCH_BYTES: Final = 4 << 20
_STREAMS = {b"o ": "out", b"e ": "err"}


def look(directory: Path) -> Sighting:
    """Return what can be seen of a run now: the held lock decides, never a pid alone."""
    held = is_held(directory)
    # Looked for after the lock: a run whose lock was free by then has written its exit file or never will.
    ended = read_exit(directory)
    if ended is not None:
        return Sighting(state="exited", exit=ended)
    status = read_status(directory)
    if not held:
        return Sighting(state="lost" if status is not None else "absent")
    keeper, last_sign_at = (status or {}).get("keeper") or {}, (status or {}).get("last_sign_at")
    return Sighting(
        state="alive",
        pid=keeper.get("pid"),
        last_sign_at=None if last_sign_at is None else datetime.fromisoformat(last_sign_at),
        beat_at=_beat_at(directory),
    )


def _beat_at(directory: Path) -> datetime | None:
    """Return when the heartbeat was last written; None if it is gone."""
    try:
        return datetime.fromtimestamp((directory / places.STATUS).stat().st_mtime, UTC)
    except OSError:
        return None


def is_held(directory: Path) -> bool:
    """Return whether a living keeper holds the run's lock."""
    return is_locked(f"{directory}/{places.LOCK}")


def read_status(directory: Path) -> dict[str, Any] | None:
    """Return the keeper's status file; an empty one when it is being written, None when there was never any."""
    try:
        status = json.loads(_content(directory, places.STATUS))
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    return status if isinstance(status, dict) else {}


def read_exit(directory: Path) -> Exit | None:
    """Return how the run ended, once its keeper has written that."""
    try:
        raw = json.loads(_content(directory, places.EXIT))
    except FileNotFoundError:
        return None
    started_at = raw["started_at"]
    return Exit(
        code=raw["code"],
        ended_by=raw["ended_by"],
        started_at=None if started_at is None else datetime.fromisoformat(started_at),
        ended_at=datetime.fromisoformat(raw["ended_at"]),
        output_bytes=raw["output_bytes"],
        output_sha256=raw["output_sha256"],
        dropped_bytes=raw["dropped_bytes"],
        error=raw["error"],
        login_renewed=bool(raw.get("login_renewed")),
    )


def _content(directory: Path, name: str) -> bytes:
    with open(f"{directory}/{name}", "rb") as file:  # noqa: PTH123 - looked at some twenty times per task
        return file.read()


def lost_exit(directory: Path) -> Exit:
    """Describe the end of a run whose keeper was lost, from what it left."""
    status = read_status(directory) or {}
    started_at, ended_at = None, datetime.now(UTC)
    if status.get("started_at") is not None:
        started_at = datetime.fromisoformat(status["started_at"])
        # When it was last seen alive: the time of day may have been changed since it started.
        ended_at = started_at + timedelta(seconds=status.get("lasted_s", 0.0))
    error = "the run's keeper was killed before it could say how the run ended"
    if "code" in status:
        error = "the run's keeper was killed after the run had ended"
    return Exit(
        code=status.get("code"),
        ended_by=status["ended_by"] if "code" in status else "lost",
        started_at=started_at,
        ended_at=ended_at,
        output_bytes=max((start + size for start, size in _segments(directory)), default=0),
        output_sha256=_digest(directory),
        error=error,
    )


def _digest(directory: Path) -> str:
    """Return the digest of the whole output, nothing where a part of it was left out."""
    digest, at = hashlib.sha256(), 0
    for start, size in _segments(directory):
        if start != at:
            return ""
        digest.update((directory / places.OUTPUT / places.segment_name(start)).read_bytes())
        at += size
    return digest.hexdigest()


def settle_lost(directory: Path) -> None:
    """Write the exit file of a lost run, unless another process keeps it or has settled it."""
    with (directory / places.LOCK).open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if read_exit(directory) is not None:
            return
        end = lost_exit(directory)
        places.remove_tree(str(directory / places.TMP))
        trouble = home.put_away(str(directory))
        for name in (places.RESERVE, places.SOCKET):
            places.remove(str(directory / name))
        places.write_exit(
            str(directory),
            {
                "version": 1,
                "run_id": (read_status(directory) or {}).get("run_id"),
                "code": end.code,
                "ended_by": end.ended_by,
                "started_at": None if end.started_at is None else end.started_at.isoformat(),
                "ended_at": end.ended_at.isoformat(),
                "output_bytes": end.output_bytes,
                "output_sha256": end.output_sha256,
                "dropped_bytes": end.dropped_bytes,
                "error": "; ".join(part for part in (end.error, trouble, _left_in(directory)) if part),
            },
        )


def _left_in(directory: Path) -> str:
    """Name the processes that work in the folder of a lost run although everything known of it was ended."""
    try:
        folder = json.loads(_content(directory, places.SPEC))["cwd"]
    except (OSError, ValueError, KeyError):
        return ""
    found = []
    for process in everything().values():
        try:
            where = str(Path(f"/proc/{process.pid}/cwd").readlink())
        except OSError:
            continue  # gone, or another user's
        if (where == folder or where.startswith(f"{folder}/")) and not process.zombie:
            found.append(str(process.pid))
    if not found:
        return ""
    return f"these processes still run in its folder and may be left of it: {', '.join(sorted(found))}"


def output_size(directory: Path) -> int:
    """Return the position after everything that a run printed so far."""
    return max((start + size for start, size in _segments(directory)), default=0)


def line_begin(directory: Path, position: int) -> int:
    """Return where the recorded line that holds this position begins; a position outside of what is kept stays."""
    for start, size in _segments(directory):
        if start < position < start + size:
            break
    else:
        return position
    with (directory / places.OUTPUT / places.segment_name(start)).open("rb") as file:
        end = position - start
        while end > 0:
            begin = max(0, end - READ_BYTES)
            file.seek(begin)
            at = file.read(end - begin).rfind(b"\n")
            if at >= 0:
                return start + begin + at + 1
            end = begin
    return start


def lines_with(directory: Path, wanted: re.Pattern[bytes], begin: int) -> Iterator[tuple[int, OutputLine]]:
    """Yield the recorded lines in which a pattern is found, with where each begins; letters are compared as small."""
    for start, size in _segments(directory):
        if start + size <= begin:
            continue
        try:
            file = (directory / places.OUTPUT / places.segment_name(start)).open("rb")
        except FileNotFoundError:
            continue  # left out since we looked
        with file:
            at = max(begin, start)
            file.seek(at - start)
            rest = b""
            while block := file.read(_SEARCH_BYTES):
                whole, newline, after = (rest + block).rpartition(b"\n")
                if not newline:
                    rest = after
                    continue
                yield from _found(whole, at, wanted)
                at, rest = at + len(whole) + 1, after


def _found(whole: bytes, at: int, wanted: re.Pattern[bytes]) -> Iterator[tuple[int, OutputLine]]:
    small, position = whole.lower(), 0
    while hit := wanted.search(small, position):
        first = whole.rfind(b"\n", 0, hit.start()) + 1
        last = whole.find(b"\n", hit.start())
        last = len(whole) if last < 0 else last
        stream = _STREAMS.get(whole[first : first + 2])
        if stream is not None and hit.start() >= first + 2:
            text = whole[first + 2 : last].decode(errors="replace")
            yield at + first, OutputLine(offset=at + last + 1, stream=stream, text=text)  # type: ignore[arg-type]
        position = last + 1


class OutputReader:
    """Reads a run's output from a position on, across segments and gaps."""

    def __init__(self, directory: Path, offset: int) -> None:
        self._directory = directory
        self.offset = offset

    def lines(self) -> Iterator[OutputLine]:
        """Yield the complete lines that can be read at once; nothing when there is no more yet."""
        start, size = self._segment()
        if start is None:
            return
        if start > self.offset:
            missing = start - self.offset
            self.offset = start
            text = f"[loopwright: {missing} bytes of output were left out here]"
            yield OutputLine(offset=start, stream="err", text=text)
        yield from self._read(start, size)

    def all(self) -> Iterator[OutputLine]:
        """Yield everything that was recorded so far, piece by piece."""
        position = -1
        while self.offset != position:
            position = self.offset
            yield from self.lines()

    def _segment(self) -> tuple[int | None, int]:
        """Find the segment that holds the position, else the next one after it."""
        found = _segments(self._directory)
        for start, size in found:
            if self.offset < start + size:
                return start, size
        return None, 0

    def _read(self, start: int, size: int) -> Iterator[OutputLine]:
        path = self._directory / places.OUTPUT / places.segment_name(start)
        try:
            fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            # Left out since we looked: the next call sees the gap.
            return
        try:
            wanted = READ_BYTES
            data = os.pread(fd, wanted, self.offset - start)
            while b"\n" not in data and self.offset - start + len(data) < size:
                wanted *= 2
                data = os.pread(fd, wanted, self.offset - start)
        finally:
            os.close(fd)
        complete, newline, _ = data.rpartition(b"\n")
        if not newline:
            return
        for line in complete.split(b"\n"):
            self.offset += len(line) + 1
            stream = _STREAMS.get(line[:2])
            if stream is not None:
                text = line[2:].decode(errors="replace")
                yield OutputLine(offset=self.offset, stream=stream, text=text)  # type: ignore[arg-type]


def _segments(directory: Path) -> list[tuple[int, int]]:
    found = []
    try:
        with os.scandir(directory / places.OUTPUT) as listing:
            for entry in listing:
                try:
                    found.append((int(entry.name), entry.stat().st_size))
                except FileNotFoundError:
                    continue
    except FileNotFoundError:
        return []
    return sorted(found)
