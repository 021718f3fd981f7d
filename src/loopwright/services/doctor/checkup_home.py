"""The checks of the home: its permissions and disk, its database, and leftovers."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Final

from loopwright.adapters.git.branches.quarantine import FOLDER as QUARANTINE
from loopwright.adapters.git.plumbing.runner import config_flags, user_env
from loopwright.adapters.home.membership import LockedMembership
from loopwright.adapters.store.backups import backups_of, damage, what_to_do
from loopwright.config.resolve import Settings, without_password
from loopwright.core.rows.model import Attempt, Project
from loopwright.core.rows.row_types import ROW_TYPES
from loopwright.core.values.errors import DamagedRow, LoopwrightError, NotFound
from loopwright.core.values.states import LIVE_ATTEMPT
from loopwright.core.values.wording import counted, listed, one_line
from loopwright.ports import Tx
from loopwright.services.doctor.checkup_machine import Finding, Status
from loopwright.services.gates.clean_tree import FOLDER as TRIALS

_SCARCE: Final = 5 * 1024**3
_TOO_LITTLE: Final = 512 * 1024**2
_REMOTE: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "drvfs"})
"""File systems on which SQLite's locks or shared memory are unreliable."""
_WAL: Final = 2
"""The read version in the file format while a write-ahead log is used."""


def home(settings: Settings) -> list[Finding]:
    """Check the home's folder: does it exist, is it private and writable, and is it on a local disk?"""
    root = settings.home
    if not root.exists():
        above = _existing(root)
        if not os.access(above, os.W_OK):
            fix = f"make {above} writable, or set LOOPWRIGHT_HOME to another folder"
            text = f"{root} cannot be made: {above} is not writable"
            return [Finding(name="home", status=Status.FAIL, text=text, fix=fix)]
        return [Finding(name="home", status=Status.OK, text=f"{root} is made by the first run")]
    if not root.is_dir() or not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        fix = f"chown or chmod {root}, or set LOOPWRIGHT_HOME to another folder"
        return [
            Finding(name="home", status=Status.FAIL, text=f"{root} is not a folder you can write to", fix=fix)
        ]
    kind = _file_system(root)
    if kind in _REMOTE and not settings.values.database:
        text = f"{root} is on {kind}, where SQLite's locks cannot be relied on"
        fix = "put the home on a local disk (LOOPWRIGHT_HOME), or use PostgreSQL (the setting database)"
        return [Finding(name="home", status=Status.FAIL, text=text, fix=fix)]
    mode = stat.S_IMODE(root.stat().st_mode)
    if mode & 0o077:
        text = f"{root} may be read by other users (mode {mode:o}); it holds transcripts of agents"
        return [Finding(name="home", status=Status.WARN, text=text, fix=f"chmod 700 {root}")]
    return [Finding(name="home", status=Status.OK, text=f"{root}, yours alone")]


def disk(settings: Settings) -> list[Finding]:
    """Check how much space workspaces and run files use."""
    free = shutil.disk_usage(_existing(settings.home)).free
    text = f"{free / 1024**3:.1f} GB free for the home"
    fix = "free some space, or set LOOPWRIGHT_HOME to a larger disk"
    if free < _TOO_LITTLE:
        return [Finding(name="disk", status=Status.FAIL, text=text, fix=fix)]
    if free < _SCARCE:
        return [Finding(name="disk", status=Status.WARN, text=f"{text}: workspaces may fill it", fix=fix)]
    return [Finding(name="disk", status=Status.OK, text=text)]


def database(settings: Settings) -> list[Finding]:
    """Open the database without changing it, and check the rows for leftovers."""
    # A missing home needs no database.
    from loopwright.adapters.store.sql import SqlStore
    from loopwright.adapters.store.upgrade import HISTORY

    url = settings.values.database
    place: str | Path = url or settings.home / "loopwright.db"
    shown = without_password(url) if url else str(place)
    file = None if url else Path(str(place))
    if file is not None and file.exists() and (problem := damage(file)):
        text = f"{file} is damaged: {one_line(problem, 300)}"
        return [Finding(name="database", status=Status.FAIL, text=text, fix=what_to_do(file))]
    try:
        store = SqlStore.open(place, create=False, patience=5.0)
    except NotFound:
        where = "reachable, and" if url else "SQLite,"
        text = f"{where} no database yet; the first run makes {shown}"
        return [Finding(name="database", status=Status.OK, text=text), *_leftovers(settings, None)]
    except LoopwrightError as error:
        fix = getattr(error, "hint", None)
        text = one_line(str(error), 400)
        return [Finding(name="database", status=Status.FAIL, text=text, fix=fix or "see the sentence above")]
    try:
        attempts, projects = store.read_sync(_rows)
    except DamagedRow as damaged:
        fix = what_to_do(file) if file is not None else "restore a backup of the database"
        return [Finding(name="database", status=Status.FAIL, text=f"{shown}: {damaged}", fix=fix)]
    finally:
        store.close_sync()
    kind = "PostgreSQL" if url and not url.startswith("sqlite") else _journal(Path(str(place)))
    status = Status.OK if "without" not in kind else Status.WARN
    text = f"{kind}, schema {HISTORY.head}, at {shown}"
    fix = "" if status is Status.OK else "restore the file from a backup: a home's database always has a log"
    found = [Finding(name="database", status=status, text=text, fix=fix), *_backups(file), _worker(settings)]
    return [*found, *_leftovers(settings, attempts), *_projects(projects)]


def _rows(tx: Tx) -> tuple[list[Attempt], list[Project]]:
    for kind in ROW_TYPES:
        tx.find(kind)  # each row is read once, to report unreadable ones
    return tx.find(Attempt, state=LIVE_ATTEMPT), tx.find(Project)


def _journal(path: Path) -> str:
    with path.open("rb") as file:
        header = file.read(20)
    return (
        "SQLite with a write-ahead log"
        if header[19:20] == bytes([_WAL])
        else "SQLite without a write-ahead log"
    )


def _backups(file: Path | None) -> list[Finding]:
    """Report the last backup; none is made on the first day."""
    kept = backups_of(file) if file is not None else []
    if not kept:
        return []
    text = f"{counted(len(kept), 'backup')} of the database, the last of {kept[0].made_at:%Y-%m-%d %H:%M} UTC"
    return [Finding(name="backups", status=Status.OK, text=text)]


def _worker(settings: Settings) -> Finding:
    holder = None if settings.values.database else LockedMembership(settings.home).holder()
    if holder is None:
        return Finding(name="worker", status=Status.OK, text="no process holds this home")
    text = f"process {holder.get('pid', '?')} works here ({holder.get('command', 'unknown command')})"
    return Finding(name="worker", status=Status.OK, text=text)


def _leftovers(settings: Settings, live: list[Attempt] | None) -> list[Finding]:
    """Count folders in the home that no running work needs."""
    names = {attempt.id for attempt in live or ()}
    kept = [path for path in _folders(settings.home / "workspaces") if path.name not in names]
    trials = _folders(settings.home / TRIALS)
    found = []
    if kept:
        found.append(
            Finding(
                name="workspaces",
                status=Status.WARN,
                text=f"{counted(len(kept), 'workspace')} of ended attempts: {listed([p.name for p in kept], 3)}",
                fix="`loopwright worker --until-idle` tidies up; what stays could not be proven to be kept "
                "elsewhere: look at it before you delete it",
            )
        )
    if trials:
        text = f"{counted(len(trials), 'clone')} that a killed `init` or `plan check` left"
        fix = f"rm -r {settings.home / TRIALS}"
        found.append(Finding(name="trials", status=Status.WARN, text=text, fix=fix))
    return found or [Finding(name="workspaces", status=Status.OK, text="none left behind")]


def _projects(projects: list[Project]) -> list[Finding]:
    gone = [project for project in projects if not Path(project.path).is_dir()]
    found = []
    if gone:
        text = f"moved or deleted: {listed([project.path for project in gone], 3)}"
        fix = "run `loopwright projects import` where the repository is now, or put it back, to continue its plans"
        found.append(Finding(name="projects", status=Status.WARN, text=text, fix=fix))
    pinned = {
        project.path: count
        for project in projects
        if project not in gone and (count := _quarantined(project.path))
    }
    if pinned:
        total = sum(pinned.values())
        text = f"{counted(total, 'piece')} of work in quarantine in {listed(list(pinned), 3)}"
        fix = f"git for-each-ref {QUARANTINE} there names it; merge what you need"
        found.append(Finding(name="quarantine", status=Status.WARN, text=text, fix=fix))
    return found or [Finding(name="quarantine", status=Status.OK, text="empty")]


def _quarantined(path: str) -> int:
    done = subprocess.run(
        ["git", *config_flags(), "for-each-ref", "--format=%(refname)", QUARANTINE],
        cwd=path,
        env=user_env(),
        capture_output=True,
        timeout=30,
    )
    return len(done.stdout.splitlines())


def _folders(parent: Path) -> list[Path]:
    if not parent.is_dir() or not os.access(parent, os.R_OK | os.X_OK):
        return []
    return sorted(path for path in parent.iterdir() if path.is_dir())


def _existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _file_system(path: Path) -> str:
    """Return the kind of file system that a path is on; empty if the system does not report it."""
    if sys.platform != "linux":
        return ""
    real, best, kind = path.resolve(), Path("/"), ""
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
        _, mounted, found = line.split(" ")[:3]
        point = Path(mounted.replace("\\040", " "))
        if real.is_relative_to(point) and len(point.parts) >= len(best.parts):
            best, kind = point, found
    return kind
