"""`report`: what happened since the last report, on one page."""

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.errors import UserError
from loopwright.core.values.wording import drawable
from loopwright.services.homes.caller import write_whole
from loopwright.services.homes.read_only_home import project_here
from loopwright.services.homes.session import session
from loopwright.services.reports.report import WorkReport, owner_of, report_since_last
from loopwright.services.reports.report import report as report_since
from loopwright.services.reports.report_texts import Format, as_text

LAST = "last"


def report(
    *,
    since: str = LAST,
    form: Annotated[Format, Parameter(name="--format")] = "markdown",
    out: Path | None = None,
    json: bool = False,
) -> int:
    """Report what was verified, what waits for you, what failed, what it cost, and what is next.

    In a repository it is about its plans, elsewhere about all.

    Parameters
    ----------
    since
        From when on: `last` for what happened since you last asked so (at first, a day), or a time such as
        2031-05-06 or 2031-05-06T22:00.
    form
        Write Markdown, one HTML file without links to a network, or JSON.
    out
        Write it into this file.
    json
        Print JSON, the same as `--format json`.
    """
    moment = None if since == LAST else _moment(since)
    made = asyncio.run(_made(moment))
    if json or (form == "json" and out is None):
        print_json(made)
        return ExitCode.VERIFIED
    text = as_text(made, form)
    if out is None:
        sys.stdout.write("\n".join(map(drawable, text.split("\n"))))
    else:
        write_whole(out, text, hint="choose another file with --out")
        console(stderr=True).print(f"wrote {out}", markup=False)
    return ExitCode.VERIFIED


async def _made(since: datetime | None) -> WorkReport:
    checkouts = project_here()
    async with session() as at:
        owner = await at.home.store.read(lambda tx: owner_of(tx, checkouts))
        if since is None:
            return await report_since_last(at, owner)
        return await report_since(at, owner.caller, since=since)


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as wrong:
        raise UserError(
            f"--since {text!r} is not a time",
            code="flag_value_wrong",
            hint="use `last`, or a time such as 2031-05-06T22:00",
        ) from wrong
    return found.astimezone(UTC)
