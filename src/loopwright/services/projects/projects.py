"""List the repositories of a home, import the plans of one that the home does not know, and restore a backup."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loopwright.adapters.git.cloning import clone
from loopwright.adapters.home.membership import LockedMembership
from loopwright.adapters.home.statefiles import ProjectStateFiles
from loopwright.adapters.store.backups import damage, put_back
from loopwright.app import Home, make_world, open_home
from loopwright.config.resolve import Settings
from loopwright.core.rows.model import Loop, Plan, Project
from loopwright.core.values.environments import PlanEnvironment
from loopwright.core.values.errors import Held, NotFound, Refused
from loopwright.engine.plans.row_rebuild import Rebuilt, import_project, reconcile_backup
from loopwright.engine.rows.projects import project_ids
from loopwright.ports import Tx
from loopwright.services.driving.recorded_environments import record_environment, record_once
from loopwright.services.homes.caller import called_from, environment
from loopwright.services.homes.context import called_as, glance_at, look_settings, needed_place
from loopwright.services.homes.read_only_home import glancing, project_here
from loopwright.services.homes.session import opened
from loopwright.services.runs.unknown_work import note_move

__all__ = [
    "LoopPlans",
    "ProjectPlans",
    "Rebuilt",
    "import_here",
    "import_plans",
    "list_loops",
    "list_projects",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectPlans:
    """A repository of the home, and how many plans it has."""

    project: Project
    plans: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPlans:
    """The loop of one work source, and how many plans it had."""

    loop: Loop
    plans: int


def list_projects() -> tuple[ProjectPlans, ...]:
    """Return the repositories of this home, by their paths."""

    def load(tx: Tx) -> tuple[ProjectPlans, ...]:
        found = tx.find(Project, order_by=("path", "subfolder"))
        return tuple(ProjectPlans(project=one, plans=tx.count(Plan, project_id=one.id)) for one in found)

    with glancing() as look:
        return look.store.read_sync(load)


async def add_here() -> Project:
    """Register this repository, and record the environment of this terminal for it."""
    settings, place = look_settings(), needed_place()
    async with opened(settings) as at:
        return await record_environment(at.home, place, settings.policy(), settings.values.state_folder)


async def add_clone(url: str) -> Project:
    """Clone a repository into the home, or fetch its clone, and register it with the environment of this terminal."""
    folder = await clone(look_settings().home, url)
    with called_from(folder, environment()):
        return await add_here()


def known_here() -> Project | None:
    """Return the project of the current folder; None if the home does not know it."""
    place = needed_place()
    with glancing() as look:
        found = look.store.read_sync(
            lambda tx: tx.find(Project, path=str(place.root), subfolder=place.subfolder, limit=1)
        )
    return found[0] if found else None


def needed_here() -> Project:
    """Return the project of the current folder; refuse one that the home does not know."""
    if (found := known_here()) is None:
        raise NotFound(
            "this folder is not a project of the daemon",
            code="project_not_found",
            hint="register it: `loopwright projects add`",
        )
    return found


def named(which: str) -> Project:
    """Return the one project of this home with a name, a path or an id."""
    paths = {which, str(Path(which).resolve())}
    found = [one.project for one in list_projects()]
    fitting = [one for one in found if which in (one.id, one.name) or one.path in paths]
    if len(fitting) == 1:
        return fitting[0]
    hint = "name it by its id; `loopwright projects --json` lists them"
    if fitting:
        raise Refused(f"several projects are called {which}", code="project_ambiguous", hint=hint)
    raise NotFound(f"there is no project {which}", code="project_not_found", hint=hint)


async def environment_here(*, record: bool = False) -> PlanEnvironment | None:
    """Return the recorded environment of this project; with `record`, record this terminal first."""
    if record:
        return (await add_here()).environment
    found = known_here()
    return found.environment if found else None


def list_loops(*, everywhere: bool = False) -> tuple[LoopPlans, ...]:
    """Return the loops of this repository, the oldest first; `everywhere` or outside one, of the whole home."""

    def load(tx: Tx) -> tuple[LoopPlans, ...]:
        project = None if everywhere else project_here()
        where: dict[str, Any] = {} if project is None else {"project_id": project_ids(tx, project)}
        loops = tx.find(Loop, order_by=("created_at",), **where)
        return tuple(LoopPlans(loop=one, plans=tx.count(Plan, loop_id=one.id)) for one in loops)

    with glancing() as look:
        return look.store.read_sync(load)


async def import_here() -> Rebuilt:
    """Import the plans of this repository that the home does not know; note where a moved repository is now."""
    settings, place = look_settings(), needed_place()
    home = open_home(settings, environment())
    try:
        rebuilt = await import_plans(home, settings, place.root)
        if rebuilt.plans or rebuilt.loops:
            # No file has it, and without it nothing can start over HTTP.
            await record_once(home, place, settings.policy())
        return rebuilt
    finally:
        await home.store.close()


async def import_plans(home: Home, settings: Settings, root: Path) -> Rebuilt:
    """Import the plans of a repository, while no worker works in the home."""
    with _alone(home):
        world = make_world(home, settings, environment(), slots=1)
        with glance_at(root) as repository:
            was = await note_move(home, repository, root)
        rebuilt = await import_project(world, ProjectStateFiles(), root)
    notes = [f"this repository was at {was} before", *rebuilt.notes] if was else rebuilt.notes
    return replace(rebuilt, notes=notes)


async def compare_backup(settings: Settings) -> Rebuilt:
    """Compare a restored database with its repositories."""
    home = open_home(settings, environment())
    try:
        with _alone(home):
            world = make_world(home, settings, environment(), slots=1)
            return await reconcile_backup(world, ProjectStateFiles())
    finally:
        await home.store.close()


@contextmanager
def _alone(home: Home) -> Iterator[None]:
    """Hold a home, so that no worker starts anything in it."""
    if not home.membership.acquire({"pid": os.getpid(), "command": called_as()}):
        holder = home.membership.holder() or {}
        raise Held(
            f"process {holder.get('pid', '?')} works in this home",
            code="home_in_use",
            hint="end it with Ctrl-C, or wait for it, then run the command again",
        )
    try:
        yield
    finally:
        home.membership.release()


# Replace a damaged database with a backup, and compare it with what happened since.


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A database that was restored."""

    backup: Path
    kept: Path
    """The old database; it does not exist if there was none."""
    since: Rebuilt
    """What the repositories had and the backup did not."""


async def restore(backup: Path) -> Restored:
    """Replace the home's database with a backup."""
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
