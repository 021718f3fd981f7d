"""`projects`: the repositories of a home, and how one that lost its rows gets them again."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from cyclopts import App
from rich.markup import escape

from loopwright.adapters.home.statefiles import ProjectStateFiles
from loopwright.app import Home, make_world, open_home
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import columns
from loopwright.cli.shell.output import console, print_json
from loopwright.config.resolve import Settings
from loopwright.core.rows.model import Plan, Project
from loopwright.core.values.errors import Held
from loopwright.core.values.wording import counted
from loopwright.engine.plans.row_rebuild import Rebuilt, import_project, reconcile_backup
from loopwright.ports import Tx
from loopwright.services.homes.context import called_as, look_settings
from loopwright.services.homes.read_only_home import glancing
from loopwright.services.homes.repository_glance import glance_at, needed_place
from loopwright.services.runs.unknown_work import note_move

app = App(
    name="projects",
    help="List the repositories of this home, or take up plans that it does not know.",
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
    with glancing() as look:
        found = look.store.read_sync(_listed)
    if json:
        print_json({"projects": [{"project": one, "plans": plans} for one, plans in found]})
        return ExitCode.VERIFIED
    rows = [
        (one.name, counted(plans, "plan"), f"{one.path}/{one.subfolder}".rstrip("/")) for one, plans in found
    ]
    for line in columns(rows, indent=""):
        console().print(escape(line))
    return ExitCode.VERIFIED


def _listed(tx: Tx) -> list[tuple[Project, int]]:
    found = tx.find(Project, order_by=("path", "subfolder"))
    return [(one, tx.count(Plan, project_id=one.id)) for one in found]


@app.command(name="import")
def import_(*, json: bool = False) -> int:
    """Take up the plans of this repository that the home does not know, from .loopwright/ and the plan branches.

    It also notes where a repository that was moved is now.

    Parameters
    ----------
    json
        Print what was taken up as JSON.
    """
    settings, place = look_settings(), needed_place()
    home = open_home(settings, os.environ)
    rebuilt = asyncio.run(_closing(home, lambda: take_up(home, settings, place.root)))
    if json:
        print_json(rebuilt)
        return ExitCode.VERIFIED
    if not (rebuilt.plans or rebuilt.landed or rebuilt.held or rebuilt.notes):
        console().print("this home knows all plans of this repository already")
        return ExitCode.VERIFIED
    console().print(escape(rebuilt.in_words()))
    console().print("`loopwright status` shows them; `loopwright resume PLAN` continues one")
    return ExitCode.VERIFIED


async def take_up(home: Home, settings: Settings, root: Path) -> Rebuilt:
    """Take up the plans of a repository, while no worker works in the home."""
    with _alone(home):
        world = make_world(home, settings, os.environ, slots=1)
        with glance_at(root) as repository:
            was = await note_move(home, repository, root)
        rebuilt = await import_project(world, ProjectStateFiles(), root)
        return (
            replace(rebuilt, notes=[f"this repository was at {was} before", *rebuilt.notes])
            if was
            else rebuilt
        )


def compare_backup(settings: Settings) -> Rebuilt:
    """Compare a restored database with its projects."""
    home = open_home(settings, os.environ)

    async def compare() -> Rebuilt:
        with _alone(home):
            world = make_world(home, settings, os.environ, slots=1)
            return await reconcile_backup(world, ProjectStateFiles())

    return asyncio.run(_closing(home, compare))


async def _closing(home: Home, work: Callable[[], Awaitable[Rebuilt]]) -> Rebuilt:
    try:
        return await work()
    finally:
        await home.store.close()


@contextmanager
def _alone(home: Home) -> Iterator[None]:
    """Hold a home, so that no worker starts anything in it."""
    if not home.membership.acquire({"pid": os.getpid(), "command": called_as()}):
        holder = home.membership.holder() or {}
        raise Held(
            f"process {holder.get('pid', '?')} works in this home",
            hint="end it with Ctrl-C, or wait for it, then run the command again",
        )
    try:
        yield
    finally:
        home.membership.release()
