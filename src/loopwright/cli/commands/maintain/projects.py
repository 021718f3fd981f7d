"""`projects`: the repositories of a home, and the import of their plans."""

import asyncio

from cyclopts import App
from rich.markup import escape

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import columns
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.wording import counted
from loopwright.services.projects import projects as service

app = App(
    name="projects",
    help="List the repositories of this home, or import plans that it does not know.",
    help_format="plaintext",
)


@app.default
def projects(*, json: bool = False) -> int:
    """List the repositories of this home.

    Parameters
    ----------
    json
        Print them as JSON.
    """
    found = service.list_projects()
    if json:
        print_json({"projects": found})
        return ExitCode.VERIFIED
    rows = [
        (
            one.project.name,
            counted(one.plans, "plan"),
            f"{one.project.path}/{one.project.subfolder}".rstrip("/"),
        )
        for one in found
    ]
    for line in columns(rows, indent=""):
        console().print(escape(line))
    return ExitCode.VERIFIED


@app.command(name="import")
def import_(*, json: bool = False) -> int:
    """Import the plans of this repository that the home does not know, from .loopwright/ and the plan branches.

    It also records the new place of a repository that was moved.

    Parameters
    ----------
    json
        Print what was imported as JSON.
    """
    rebuilt = asyncio.run(service.import_here())
    if json:
        print_json(rebuilt)
        return ExitCode.VERIFIED
    if not (rebuilt.plans or rebuilt.landed or rebuilt.held or rebuilt.notes):
        console().print("this home knows all plans of this repository already")
        return ExitCode.VERIFIED
    console().print(escape(rebuilt.in_words()))
    console().print("`loopwright status` shows them; `loopwright resume PLAN` continues one")
    return ExitCode.VERIFIED
