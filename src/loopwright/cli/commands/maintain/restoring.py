"""`doctor --restore`: put a backup in the place of a damaged database, and compare it with what happened since."""

import asyncio
import shlex
from pathlib import Path

from rich.markup import escape

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.services.projects import projects


def restore(backup: Path, *, as_json: bool) -> int:
    """Put a backup in the place of the home's database; return the exit code."""
    done = asyncio.run(projects.restore(backup))
    if as_json:
        facts = {"restored": str(backup), "kept": str(done.kept), "since": done.since}
        print_json({**facts, "exit_code": int(ExitCode.VERIFIED)})
        return ExitCode.VERIFIED
    out = console()
    out.print(f"restored {escape(str(backup))}")
    if done.kept.exists():
        out.print(f"the database from before is {escape(shlex.quote(str(done.kept)))}")
    out.print(escape(f"compared with the repositories: {done.since.in_words()}"))
    out.print("`loopwright status` shows the plans; `loopwright resume PLAN` continues a plan")
    return ExitCode.VERIFIED
