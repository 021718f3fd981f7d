"""Open a home only to read it: quickly, without a worker's parts, and without changing anything."""

import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from loopwright.adapters.home.membership import LockedMembership
from loopwright.adapters.store.sqlite_links import Glimpse
from loopwright.config.home import default_home, expand, user_file
from loopwright.core.rows.model import Plan, Project, Run, Task
from loopwright.core.values.errors import Ambiguous, NotFound
from loopwright.core.values.wording import to_type
from loopwright.engine.rows.plan_states_text import attended
from loopwright.engine.rows.projects import recent_plans
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.views.overview import PlanSummary
from loopwright.engine.views.targets import obvious_target, resolve_target
from loopwright.engine.views.views import PlanView
from loopwright.engine.views.worker_views import leased_workers
from loopwright.ports import Tx
from loopwright.services.homes.caller import current_folder, environment
from loopwright.services.homes.repository import checkouts, repository_around

if TYPE_CHECKING:
    from loopwright.adapters.store.sql import SqlStore

DATABASE: Final = "loopwright.db"
"""The file of a home that has no database elsewhere."""

T = TypeVar("T")
V = TypeVar("V", PlanView, PlanSummary)
_POSTGRES: Final = ("postgresql://", "postgres://", "postgresql+", "postgres+")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSeen:
    """A process that works in the home now."""

    pid: int | None
    hostname: str
    command: str
    plan: str | None = None


class Reads(Protocol):
    """What a reader needs from a store."""

    def read_sync(self, work: Callable[[Tx], T]) -> T:
        """Run `work` on one state of the home."""

    def close_sync(self) -> None:
        """Close the home."""


S = TypeVar("S", bound=Reads)


@dataclass(frozen=True, kw_only=True)
class Look(Generic[S]):
    """An open home that is only read."""

    root: Path
    store: S
    shared: bool
    """Whether there may be many workers, known by their leases, or one, known by its lock."""

    @property
    def paths(self) -> HomePaths:
        """Where the home keeps its files."""
        return HomePaths(root=self.root)

    def workers(self, tx: Tx, project_id: str | None = None) -> tuple[WorkerSeen, ...]:
        """Return the current workers of the home, or those that start the work of one project."""
        if self.shared:
            return tuple(
                WorkerSeen(pid=one.pid, hostname=one.hostname, command=f"{one.slots} slots")
                for one in leased_workers(tx)
                if project_id is None or one.project_id in (None, project_id)
            )
        membership = LockedMembership(self.root)
        note = membership.holder()
        if note is None or (project_id is not None and not membership.serves(project_id)):
            return ()
        pid, plan = note.get("pid"), note.get("plan")
        return (
            WorkerSeen(
                pid=pid if isinstance(pid, int) else None,
                hostname="",
                command=_command(str(note.get("command") or "")),
                plan=plan if isinstance(plan, str) else None,
            ),
        )

    def is_worked_on(self, tx: Tx, plan_id: str) -> bool:
        """Return whether a live process starts the work of a plan's project."""
        plan = tx.get(Plan, plan_id)
        return plan is not None and bool(self.workers(tx, plan.project_id))

    def seen(self, tx: Tx, view: V) -> V:
        """Return a plan with its state, which depends on its workers too."""
        return replace(view, state=attended(view.state, worked=self.is_worked_on(tx, view.id)))


def _command(text: str) -> str:
    """Return a command line with only the program's name: its folder does not help the user."""
    program, space, rest = text.partition(" ")
    return Path(program).name + space + rest


@contextmanager
def looking() -> Iterator["Look[SqlStore]"]:
    """Open the existing home to follow what happens in it, and close it afterwards."""
    root, database = _present_home()
    with _open(root, database, _store(root, database)) as look:
        yield look


@contextmanager
def glancing() -> Iterator["Look[Glimpse] | Look[SqlStore]"]:
    """Open the existing home for one quick read, and close it afterwards."""
    root, database = _present_home()
    glimpse = None if database else Glimpse.open(root / DATABASE)
    store = glimpse if glimpse is not None else _store(root, database)
    with _open(root, database, store) as look:
        yield look  # type: ignore[misc] # one of the two, as the store is


def _present_home() -> tuple[Path, str | None]:
    root, database = whereabouts(environment(), sys.platform)
    if not database and not (root / DATABASE).exists() and not any(root.glob(f"{DATABASE}.backup-*")):
        raise NotFound(
            "nothing has run here yet",
            code="no_home",
            hint="`loopwright run plan.yaml`, or `loopwright demo` to see it",
        )
    return root, database


def _store(root: Path, database: str | None) -> "SqlStore":
    # SQLAlchemy takes long to import, and a quick read of SQLite does not need it.
    from loopwright.adapters.store.sql import SqlStore

    return SqlStore.open(database or root / DATABASE, create=False)


@contextmanager
def _open(root: Path, database: str | None, store: S) -> Iterator[Look[S]]:
    try:
        yield Look(root=root, store=store, shared=bool(database))
    finally:
        store.close_sync()


def whereabouts(env: Mapping[str, str], platform: str) -> tuple[Path, str | None]:
    """Return a home's folder and, if it has one, the URL of its database.

    Only the environment and the user's own file may set this, and loading every setting takes longer than the
    rest of a quick read. Anything unusual uses the full settings, which explain what is wrong.
    """
    said = _plain(env)
    if said is None:
        # Loading every setting takes longer than the rest of a quick look.
        from loopwright.services.homes.context import look_settings

        settings = look_settings()
        return settings.home, settings.values.database
    home, database = said
    return (expand(Path(home), env) if home else default_home(env, platform)), database or None


def _plain(env: Mapping[str, str]) -> tuple[str, str] | None:
    written: Mapping[str, Any] = {}
    path = user_file(env)
    if path is not None and path.is_file():
        try:
            written = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
    home = env.get("LOOPWRIGHT_HOME", "").strip() or written.get("home", "")
    database = env.get("LOOPWRIGHT_DATABASE", "").strip() or written.get("database", "")
    if not isinstance(home, str) or not isinstance(database, str):
        return None
    if (home and not home.startswith(("/", "~/"))) or (database and not database.startswith(_POSTGRES)):
        return None
    return home, database


def project_here() -> tuple[str, ...] | None:
    """Return the checkouts of the repository around the current folder, that one first."""
    # Not by `context.here`: that module loads every setting.
    root = repository_around(current_folder())
    return tuple(map(str, checkouts(root))) if root else None


def refuse_elsewhere(tx: Tx, project_id: str, text: str) -> None:
    """Refuse to change work outside the user's current repository, even if it is named by its id."""
    here, project = project_here(), tx.get(Project, project_id)
    if here is not None and project is not None and project.path not in here:
        raise NotFound(
            f"nothing here is called {text!r}",
            code="target_not_found",
            hint=f"it belongs to {project.path}: type the command there",
        )


def find_target(tx: Tx, text: str) -> Plan | Task | Run:
    """Find what a user names, first in the current repository and then in the whole home."""
    try:
        return find_here(tx, text)
    except Ambiguous:
        raise
    except NotFound:
        return resolve_target(tx, text)


def find_here(tx: Tx, text: str, fits: Callable[[Task], bool] | None = None) -> Plan | Task | Run:
    """Find what a user names in the current checkout, and then in the repository's other checkouts."""
    project = project_here()
    if project is None:
        return resolve_target(tx, text, fits=fits)
    own, others = project[:1], project[1:]
    try:
        return resolve_target(tx, text, project_path=own, fits=fits)
    except Ambiguous:
        raise
    except NotFound:
        if not others:
            raise
        return resolve_target(tx, text, project_path=others, fits=fits)


def wanted(
    tx: Tx,
    text: str | None,
    *,
    verb: str = "status",
    with_output: bool = False,
    tell: Callable[[str], None],
) -> Plan | Task | Run:
    """Find what a user names; without a name, use the default target and `tell` which."""
    if text is not None:
        return find_target(tx, text)
    project = project_here()
    if project is None:
        raise nothing_named(verb)
    obvious = obvious_target(tx, project_path=project, with_output=with_output)
    row = obvious.row
    name = f"the task {row.key}" if isinstance(row, Task) else f"the plan {row.title}"
    tell(f"nothing is named, so this is {name}: {obvious.why}")
    return row


def nothing_named(verb: str) -> NotFound:
    """Return the error for a call outside every repository that names no plan."""
    return NotFound(
        "this folder is in no git repository, so no plan is meant by itself",
        code="plan_not_named",
        hint=f"`{to_type(verb, 'PLAN')}`; `loopwright status --all` lists the plans",
    )


def find_plan(tx: Tx, text: str | None) -> Plan:
    """Find a plan: the one that is named (or that a named task belongs to), else the newest of this repository."""
    if text is None:
        plan = newest_plan(tx)
        if plan is None:
            raise NotFound("there is no plan yet", code="no_plan", hint="`loopwright run plan.yaml`")
        return plan
    row = find_target(tx, text)
    if isinstance(row, Plan):
        return row
    found = tx.get(Plan, row.plan_id)
    assert found is not None, "a task and a run always have their plan"
    return found


def newest_plan(tx: Tx) -> Plan | None:
    """Return the newest plan of this repository, else of the whole home."""
    project = project_here()
    plans = recent_plans(tx, project_path=project, limit=1) if project else []
    plans = plans or recent_plans(tx, limit=1)
    return plans[0] if plans else None
