"""Copies of a SQLite home beside it: made while others write, complete or not at all, and never of a damaged file."""

import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import quote

from loopwright.core.rows.model import RESTORED
from loopwright.core.values.errors import DamagedDatabase, StoreUnavailable
from loopwright.core.values.wording import to_type

DAILY: Final = "daily"
EVERY: Final = timedelta(days=1)
_KEPT: Final = 3
"""How many are kept of each kind: of every day, and of each schema that an upgrade left."""
_SPARE: Final = 3
"""So many times the size of a database has to be free: its backup must not take the last room from the work."""
_STAMP: Final = "%Y%m%dT%H%M%S%fZ"
_AWAY: Final = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")
_NAME: Final = re.compile(r".*\.backup-(?P<kind>.+)-(?P<stamp>\d{8}T\d{12}Z)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A copy of a database."""

    path: Path
    kind: str
    """`daily`, or the schema that it was made of before an upgrade."""
    made_at: datetime


def backups_of(database: Path) -> list[Backup]:
    """Return the copies of a database, the newest first."""
    found = []
    for path in database.parent.glob(f"{database.name}.backup-*"):
        if match := _NAME.fullmatch(path.name):
            made_at = datetime.strptime(match["stamp"], _STAMP).replace(tzinfo=UTC)
            found.append(Backup(path=path, kind=match["kind"], made_at=made_at))
    return sorted(found, key=lambda one: one.made_at, reverse=True)


def is_due(database: Path, now: datetime) -> bool:
    """Return whether a day has passed since the last copy, or since the database was made."""
    newest = next((one.made_at for one in backups_of(database) if one.kind == DAILY), None)
    if newest is None:
        # The lock file is as old as the database.
        lock = Path(f"{database}.upgrade-lock")
        newest = datetime.fromtimestamp((lock if lock.exists() else database).stat().st_mtime, UTC)
    return now - newest >= EVERY


def make(database: Path, kind: str, connect: Callable[[], sqlite3.Connection], now: datetime) -> Path:
    """Copy a database aside with SQLite's own means; raise `DamagedDatabase` instead of keeping a damaged copy.

    One step reads one state of a write-ahead log, so that no writer has to wait.
    """
    target = database.with_name(f"{database.name}.backup-{kind}-{now.strftime(_STAMP)}")
    draft = target.with_name(f"{target.name}.unfinished")
    if shutil.disk_usage(database.parent).free < _SPARE * database.stat().st_size:
        raise StoreUnavailable(f"There is no room for a backup of {database}. Free some space on its disk.")
    try:
        with closing(connect()) as source, closing(sqlite3.connect(draft, isolation_level=None)) as copy:
            source.backup(copy)
            # One file, without a log beside it, until it is used again.
            copy.execute("PRAGMA journal_mode = DELETE")
            _mark(copy)
        if problem := damage(draft):
            raise DamagedDatabase(
                f"The database {database} is damaged, so no backup of it is kept: {problem}.",
                hint=what_to_do(database),
            )
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.rename(target)
    finally:
        draft.unlink(missing_ok=True)
    for old in [one for one in backups_of(database) if one.kind == kind][_KEPT:]:
        old.path.unlink(missing_ok=True)
    return target


def _mark(copy: sqlite3.Connection) -> None:
    """Mark the copy as one: the first process that opens it compares it with what happened since."""
    tables = {name for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if {"cursors", "counters"} <= tables:
        copy.execute(
            "INSERT OR REPLACE INTO cursors (id, n) SELECT ?, n FROM counters WHERE id = 'events'",
            (RESTORED,),
        )


def damage(path: Path) -> str:
    """Return what is wrong with a database's file as far as a quick look tells; empty if nothing is."""
    if not path.exists():
        return "it is not there"
    if path.stat().st_size == 0:
        return "it is empty"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            lines = [line for (line,) in connection.execute("PRAGMA quick_check(5)")]
            if lines == ["ok"]:
                lines = [
                    f"row without the row it belongs to in {row[0]}"
                    for row in connection.execute("PRAGMA foreign_key_check")
                ]
    except sqlite3.Error as error:
        if error.sqlite_errorname.startswith(_AWAY):
            return ""  # it cannot be read now, which says nothing about it
        lines = [str(error)]
    return "" if lines in ([], ["ok"]) else "; ".join(lines[:5])


def good_backup(database: Path) -> Backup | None:
    """Return the newest copy that is not damaged."""
    return next((one for one in backups_of(database) if not damage(one.path)), None)


def what_to_do(database: Path) -> str:
    """Return the command that restores the newest good copy of a damaged database, or what to do without one."""
    found = good_backup(database)
    if found is not None:
        made = f"made {found.made_at:%Y-%m-%d %H:%M} UTC"
        return f"`{to_type('doctor', restore=str(found.path))}` restores the last backup ({made})"
    return (
        f"there is no backup: move {database} away, then `loopwright projects import` in each repository rebuilds "
        "its plans from .loopwright/"
    )


def lost(database: Path) -> DamagedDatabase:
    """Return the error for a database that is not there, or is empty, while there are backups of it."""
    hint = f"{what_to_do(database)}; to start with an empty one, move the backups away"
    return DamagedDatabase(
        f"The database {database} is gone or empty, and there are backups of it.", hint=hint
    )


def put_back(database: Path, backup: Path, now: datetime) -> Path:
    """Put a copy in the place of a database, which is kept beside it; return where."""
    aside = database.with_name(f"{database.name}.damaged-{now.strftime(_STAMP)}")
    draft = database.with_name(f"{database.name}.restoring")
    draft.unlink(missing_ok=True)
    with (
        closing(sqlite3.connect(f"file:{quote(str(backup))}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(draft, isolation_level=None)) as copy,
    ):
        source.backup(copy)
        _mark(copy)
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    for suffix in ("-wal", "-shm"):
        beside = Path(f"{database}{suffix}")
        if beside.exists():
            beside.rename(f"{aside}{suffix}")
    if database.exists():
        # A link, so that there is a database at every moment: a command in between must not make an empty one.
        os.link(database, aside)
    draft.replace(database)
    return aside
