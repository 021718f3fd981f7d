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


@app.command
def env(*, record: bool = False, json: bool = False) -> int:
    """Show the recorded environment of this project: what plans take that are made without a terminal.

    Parameters
    ----------
    record
        Record the environment of this terminal.
    json
        Print it as JSON.
    """
    found = asyncio.run(service.environment_here(record=record))
    if json:
        print_json({"environment": found})
        return ExitCode.VERIFIED
    if found is None:
        console().print("nothing is recorded yet: `loopwright projects env --record` records this terminal")
        return ExitCode.VERIFIED
    for line in columns(sorted(found.values.items()), indent=""):
        console().print(escape(line), soft_wrap=True)
    for name in found.secrets:
        console().print(escape(f"{name}  (secret: only its name is recorded)"))
    return ExitCode.VERIFIED


@app.command
def add(url: str | None = None, /, *, json: bool = False) -> int:
    """Register this repository in the home, with the environment of this terminal.

    Parameters
    ----------
    url
        Clone this repository into the home instead: an https or ssh address. It is fetched before each plan.
    json
        Print the project as JSON.
    """
    project = asyncio.run(service.add_here() if url is None else service.add_clone(url))
    if json:
        print_json({"project": project})
    else:
        console().print(escape(f"{project.name} is registered as {project.id}"))
        if url is not None:
            console().print(escape(f"its clone is {project.path}"), soft_wrap=True)
    return ExitCode.VERIFIED


@app.command(name="import")
def import_(*, json: bool = False) -> int:
    """Import the plans of this repository that the home does not know, from its state files and branches.

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
    if not (rebuilt.plans or rebuilt.loops or rebuilt.landed or rebuilt.held or rebuilt.notes):
        console().print("this home knows all plans and loops of this repository already")
        return ExitCode.VERIFIED
    console().print(escape(rebuilt.in_words()))
    console().print("`loopwright status` shows them; `loopwright resume PLAN` continues one")
    return ExitCode.VERIFIED
