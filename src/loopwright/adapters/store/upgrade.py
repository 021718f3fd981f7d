"""Creating a home's database, and bringing an older one up to date.

Alembic is imported only when there is something to migrate: a new database is created from the tables at once, and a
current one is recognised by its revision alone. SQLAlchemy is not imported for either in SQLite.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loopwright.adapters.store.backend import Backend, Seen
from loopwright.adapters.store.tables import ALL, REVISIONS, VERSION_TABLE
from loopwright.core.values.errors import NewerDatabase, NotFound, StoreUnavailable

if TYPE_CHECKING:
    from sqlalchemy import Connection


CREATE_VERSIONS: Final = (
    f"CREATE TABLE {VERSION_TABLE} "
    f"(version_num VARCHAR(32) NOT NULL, CONSTRAINT {VERSION_TABLE}_pkc PRIMARY KEY (version_num))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The migrations of a program, and the revisions they lead through, oldest first."""

    location: Path
    revisions: tuple[str, ...]

    @property
    def head(self) -> str:
        """The revision that the program reads and writes."""
        return self.revisions[-1]


HISTORY: Final = History(location=Path(__file__).parent / "migrations", revisions=REVISIONS)


def prepare(backend: Backend, *, create: bool, history: History = HISTORY) -> None:
    """Make sure that the database is there and current; create or upgrade it only if asked to."""
    seen = backend.look()
    found = _revision(backend, seen, history)
    if found == history.head and (seen.settled or not create):
        return
    if not create:
        if found is None:
            raise NotFound(
                f"There is no home at {backend.where} yet.",
                code="no_home",
                hint="Run `loopwright run FILE` to make one.",
            )
        raise StoreUnavailable(
            f"The database {backend.where} was written by an older Loopwright (schema {found}). "
            "Run `loopwright worker --until-idle`, which upgrades it after a backup."
        )
    if found is None and backend.make(history.head):
        return
    with backend.upgrading() as connection:
        # Another process may have done it while we waited.
        found = _revision(backend, backend.look(), history)
        if found is None:
            create_new(connection, history.head)
        elif found != history.head:
            _upgrade(backend, connection, found, history)


def create_new(connection: "Connection", head: str) -> None:
    """Create every table as the migrations would leave it, and say so in the version table."""
    # Only a new home needs the tables.
    from sqlalchemy import insert, text

    from loopwright.adapters.store.schema import counters, metadata

    metadata.create_all(connection, checkfirst=False)
    connection.execute(insert(counters).values(id="events", n=0))
    connection.execute(text(CREATE_VERSIONS))
    connection.execute(text(f"INSERT INTO {VERSION_TABLE} VALUES (:head)"), {"head": head})  # noqa: S608 - a constant


def migrate(connection: "Connection", history: History) -> None:
    """Run the migrations that are missing, inside the caller's transaction."""
    # It takes long to load, and only a home of an older version needs it.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(history.location).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, history.head)


def _revision(backend: Backend, seen: Seen, history: History) -> str | None:
    """Return the revision of the database, None when there is nothing in it."""
    if VERSION_TABLE not in seen.tables:
        if taken := sorted(seen.tables & ALL):
            raise StoreUnavailable(
                f"The database {backend.where} has tables of another program ({', '.join(taken)}). "
                "Use a separate database for Loopwright."
            )
        return None
    found = max(seen.versions, default=None)
    if found is not None and found not in history.revisions:
        raise NewerDatabase(
            f"The database {backend.where} was written by a newer Loopwright (schema {found}; this one knows "
            f"{history.head}). Install the newer version; nothing was changed."
        )
    return found


def _upgrade(backend: Backend, connection: "Connection", found: str, history: History) -> None:
    kept = backend.backup(found)
    try:
        migrate(connection, history)
    except Exception as error:
        advice = f"The copy from before is {kept}." if kept else "The transaction was rolled back."
        raise StoreUnavailable(
            f"The database {backend.where} could not be upgraded from schema {found} to {history.head}; it is as it "
            f"was. {advice} The cause: {error}"
        ) from error
