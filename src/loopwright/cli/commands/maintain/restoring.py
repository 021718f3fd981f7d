"""`doctor --restore`: put a backup in the place of a damaged database, and compare it with what happened since."""

import shlex
from datetime import UTC, datetime
from pathlib import Path

from rich.markup import escape

from loopwright.adapters.home.membership import LockedMembership
from loopwright.adapters.store.backups import damage, put_back
from loopwright.cli.commands.maintain.projects import compare_backup
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.errors import Held, NotFound, Refused
from loopwright.services.homes.context import called_as, look_settings


def restore(backup: Path, *, as_json: bool) -> int:
    """Put a backup in the place of the home's database; return the exit code."""
    settings = look_settings()
    if settings.values.database:
        raise Refused(
            "a home in PostgreSQL is restored with the means of its server",
            hint="restore it there, then run `loopwright projects import` in each repository",
        )
    if not backup.is_file():
        raise NotFound(f"there is no backup {backup}", hint="`loopwright doctor` names the last one")
    if problem := damage(backup):
        raise Refused(
            f"the backup {backup} is damaged: {problem}", hint="`loopwright doctor` names the last good one"
        )
    database = settings.home / "loopwright.db"
    membership = LockedMembership(settings.home)
    if not membership.acquire({"command": called_as()}):
        holder = membership.holder() or {}
        raise Held(
            f"process {holder.get('pid', '?')} works in this home", hint="end it, then run the command again"
        )
    try:
        aside = put_back(database, backup, datetime.now(UTC))
    finally:
        membership.release()
    rebuilt = compare_backup(settings)
    if as_json:
        print_json(
            {
                "restored": str(backup),
                "kept": str(aside),
                "since": rebuilt,
                "exit_code": int(ExitCode.VERIFIED),
            }
        )
        return ExitCode.VERIFIED
    out = console()
    out.print(f"restored {escape(str(backup))}")
    if aside.exists():
        out.print(f"the database from before is {escape(shlex.quote(str(aside)))}")
    out.print(escape(f"compared with the repositories: {rebuilt.in_words()}"))
    out.print("`loopwright status` shows how things stand; `loopwright resume PLAN` continues a plan")
    return ExitCode.VERIFIED
