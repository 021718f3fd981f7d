"""Put a backup in the place of a damaged database, and compare it with what happened since."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from loopwright.adapters.home.membership import LockedMembership
from loopwright.adapters.store.backups import damage, put_back
from loopwright.core.values.errors import Held, NotFound, Refused
from loopwright.engine.plans.row_rebuild import Rebuilt
from loopwright.services.homes.context import called_as, look_settings
from loopwright.services.projects.projects import compare_backup


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A database that was restored."""

    backup: Path
    kept: Path
    """The database from before; it is not there if there was none."""
    since: Rebuilt
    """What the repositories had that the backup did not."""


async def restore(backup: Path) -> Restored:
    """Put a backup in the place of the home's database."""
    settings = look_settings()
    if settings.values.database:
        raise Refused(
            "a home in PostgreSQL is restored with the means of its server",
            code="restore_not_for_postgresql",
            hint="restore it there, then run `loopwright projects import` in each repository",
        )
    if not backup.is_file():
        raise NotFound(
            f"there is no backup {backup}",
            code="backup_not_found",
            hint="`loopwright doctor` names the last one",
        )
    if problem := damage(backup):
        raise Refused(
            f"the backup {backup} is damaged: {problem}",
            code="backup_damaged",
            hint="`loopwright doctor` names the last good one",
        )
    database = settings.home / "loopwright.db"
    membership = LockedMembership(settings.home)
    if not membership.acquire({"command": called_as()}):
        holder = membership.holder() or {}
        raise Held(
            f"process {holder.get('pid', '?')} works in this home",
            code="home_in_use",
            hint="end it, then run the command again",
        )
    try:
        kept = put_back(database, backup, datetime.now(UTC))
    finally:
        membership.release()
    return Restored(backup=backup, kept=kept, since=await compare_backup(settings))
