"""When the database is in trouble: a sentence that says what to do, and nothing lost."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.contracts.store.rows import event, project
from tests.refusals import raises_code

from loopwright.adapters.store.sql import SqlStore
from loopwright.core.rows.model import Cursor, Project
from loopwright.core.values.errors import BadConfig, StoreUnavailable

ROOT = Path(__file__).parents[3]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "loopwright.db"


def put(tx: Any) -> None:
    tx.insert(project())
    tx.append(event())


def projects(store: SqlStore) -> int:
    return store.read_sync(lambda tx: tx.count(Project))


@pytest.fixture
def mount() -> Iterator[Path]:
    """A file system of two megabytes, where mounting is permitted."""
    place = Path(tempfile.mkdtemp(prefix="lw-disk-"))
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        place.rmdir()
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)
    place.rmdir()


def test_a_lock_held_by_another_process_is_named_and_nothing_is_lost(path: Path) -> None:
    store = SqlStore.open(path, patience=0.2)
    store.transact_sync("put", put)
    script = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('BEGIN IMMEDIATE'); print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with raises_code("store_unavailable") as caught:
        store.transact_sync("put", put)
    locks = Path("/proc/locks")
    if locks.exists() and f" {holder.pid} " in locks.read_text():
        assert f"process {holder.pid} (python" in str(caught.value)
    else:
        assert "another process has held" in str(caught.value)
    assert projects(store) == 1  # reading goes on beside the writer
    holder.communicate()
    store.transact_sync("put", put)
    assert projects(store) == 2
    store.close_sync()


def test_a_writer_waits_for_another_one_as_long_as_there_is_patience(path: Path) -> None:
    store = SqlStore.open(path, patience=30)
    script = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('BEGIN IMMEDIATE'); print('held', flush=True); sys.stdin.readline(); c.execute('COMMIT')"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert holder.stdout.readline() == "held\n"
    holder.stdin.write("go\n")
    holder.stdin.flush()
    store.transact_sync("put", put)
    assert projects(store) == 1
    holder.communicate()
    store.close_sync()


def test_a_full_disk_is_said_and_what_was_there_stays(mount: Path) -> None:
    store = SqlStore.open(mount / "loopwright.db")
    store.transact_sync("put", put)

    def fill() -> None:
        for _ in range(30):
            store.transact_sync("fill", lambda tx: tx.insert(project(name="x" * 100_000)))

    with raises_code("store_unavailable"):
        fill()
    kept = projects(store)
    assert kept >= 1
    last = store.read_sync(lambda tx: tx.events())[-1]
    store.close_sync()
    subprocess.run(["mount", "-o", "remount,size=8m", str(mount)], check=True)
    store = SqlStore.open(mount / "loopwright.db")
    store.transact_sync("put", put)
    assert projects(store) == kept + 1
    assert [one.n for one in store.read_sync(lambda tx: tx.events())] == [last.n, last.n + 1]
    store.close_sync()


def test_a_disk_that_is_full_from_the_start_is_said_too(mount: Path) -> None:
    (mount / "ballast").write_bytes(b"x" * (2 * 1024 * 1024 - 8192))
    with raises_code("store_unavailable"):
        SqlStore.open(mount / "loopwright.db")


def test_a_file_that_cannot_be_written_is_said(mount: Path) -> None:
    store = SqlStore.open(mount / "loopwright.db")
    store.transact_sync("put", put)
    subprocess.run(["mount", "-o", "remount,ro", str(mount)], check=False)
    if os.access(mount, os.W_OK):
        # The store has files open for writing, and then the system may refuse; try it closed.
        store.close_sync()
        subprocess.run(["mount", "-o", "remount,ro", str(mount)], check=True)
        with pytest.raises(StoreUnavailable, match=r"writable"):
            SqlStore.open(mount / "loopwright.db").transact_sync("put", put)
        return
    with pytest.raises(StoreUnavailable, match=r"writable"):
        store.transact_sync("put", put)
    store.close_sync()


def test_a_folder_that_another_user_owns_is_said() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    place = Path(tempfile.mkdtemp(prefix="lw-denied-"))
    place.chmod(0o755)
    path = place / "loopwright.db"
    store = SqlStore.open(path)
    store.transact_sync("put", put)
    store.close_sync()
    script = (
        "import os, sys\n"
        "from loopwright.adapters.store.sql import SqlStore\n"
        "from loopwright.core.values.errors import StoreUnavailable\n"
        "from loopwright.core.rows.model import Cursor\n"
        "import loopwright.adapters.store.sqlite\n"
        "os.setuid(65534)\n"
        "try:\n"
        "    SqlStore.open(sys.argv[1]).transact_sync('put', lambda tx: tx.insert(Cursor(id='c', n=1)))\n"
        "except StoreUnavailable as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True)
    assert "writable for this user" in done.stdout, done.stderr
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT count(*) FROM projects").fetchone() == (1,)
    for file in (*place.iterdir(), place):
        file.rmdir() if file.is_dir() else file.unlink()


def test_a_file_that_is_no_database_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("This is my diary, and not a database at all. " * 50)
    before = path.read_bytes()
    with raises_code("damaged_database"):
        SqlStore.open(path)
    assert path.read_bytes() == before


def test_a_damaged_database_is_said(path: Path) -> None:
    store = SqlStore.open(path)
    for _ in range(20):
        store.transact_sync("put", lambda tx: tx.insert(project(name="x" * 5000)))
    store.close_sync()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(StoreUnavailable, match=r"damaged"):
        projects(SqlStore.open(path))


def test_a_database_of_another_program_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("CREATE TABLE events (what TEXT)")
    with raises_code("store_unavailable"):
        SqlStore.open(path)
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT name FROM sqlite_master").fetchall() == [("events",)]


async def test_a_newer_database_is_refused_and_left_alone(shared_home: Any) -> None:
    from sqlalchemy import text

    store = shared_home.open()
    store.transact_sync("put", put)
    with store._backend.engine.begin() as connection:
        connection.execute(text("UPDATE schema_version SET version_num = '9999'"))
    for create in (True, False):
        with raises_code("newer_database"):
            SqlStore.open(shared_home.address, create=create)
    assert projects(store) == 1


async def test_a_home_that_is_not_there_is_not_made_by_looking(tmp_path: Path, postgres_url: str) -> None:
    with raises_code("no_home"):
        SqlStore.open(postgres_url, create=False)
    with raises_code("no_home"):
        SqlStore.open(tmp_path / "a" / "b.db", create=False)
    assert not (tmp_path / "a").exists()


async def test_a_home_can_be_opened_for_looking_once_it_is_there(shared_home: Any) -> None:
    shared_home.open().transact_sync("put", put)
    looking = shared_home.open(create=False)
    assert projects(looking) == 1


def test_a_path_with_odd_characters_is_a_path(tmp_path: Path) -> None:
    path = tmp_path / "100% my home?#&" / "löop.db"
    store = SqlStore.open(path)
    store.transact_sync("put", put)
    store.close_sync()
    assert path.exists()
    again = SqlStore.open(f"sqlite:///{tmp_path}/plain.db")
    again.close_sync()
    assert (tmp_path / "plain.db").exists()


@pytest.mark.parametrize("address", ["mysql://localhost/x", "postgresql://host:port/x", "://", "sqlite://"])
def test_an_address_that_makes_no_sense_is_said(address: str) -> None:
    with pytest.raises(BadConfig):
        SqlStore.open(address)


def test_a_server_that_is_not_there_is_said_without_the_password() -> None:
    with raises_code("store_unavailable") as caught:
        SqlStore.open("postgresql://someone:hunter2@127.0.0.1:1/home")
    assert "hunter2" not in str(caught.value)


def test_a_database_that_is_not_there_is_said(postgres_url: str) -> None:
    from sqlalchemy import make_url

    missing = make_url(postgres_url).set(database="nothing_here").render_as_string(hide_password=False)
    with raises_code("store_unavailable"):
        SqlStore.open(missing)


def test_work_is_run_again_after_a_conflict(postgres_home: str) -> None:
    store = SqlStore.open(postgres_home)
    with psycopg.connect(postgres_home, autocommit=True) as raw:
        raw.execute("CREATE SEQUENCE tries")
        raw.execute(
            "CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "IF nextval('tries') < 3 THEN RAISE EXCEPTION 'conflict' USING ERRCODE = '40001'; END IF; "
            "RETURN NEW; END $$"
        )
        raw.execute(
            "CREATE TRIGGER conflict BEFORE INSERT ON cursors FOR EACH ROW EXECUTE FUNCTION conflict()"
        )
    runs = 0

    def work(tx: Any) -> None:
        nonlocal runs
        runs += 1
        tx.append(event())
        tx.insert(Cursor(id="c", n=1))

    store.transact_sync("work", work)
    assert runs == 3
    assert store.read_sync(lambda tx: (tx.count(Cursor), tx.last_event())) == (1, 1)
    store.close_sync()


def test_a_conflict_that_never_ends_is_said(postgres_home: str) -> None:
    store = SqlStore.open(postgres_home)
    with psycopg.connect(postgres_home, autocommit=True) as raw:
        raw.execute(
            "CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION 'conflict' USING ERRCODE = '40001'; END $$"
        )
        raw.execute(
            "CREATE TRIGGER conflict BEFORE INSERT ON cursors FOR EACH ROW EXECUTE FUNCTION conflict()"
        )
    with raises_code("store_unavailable"):
        store.transact_sync("work", lambda tx: tx.insert(Cursor(id="c", n=1)))
    store.close_sync()


def test_a_connection_lost_in_the_middle_is_replaced_and_the_work_done_once(postgres_home: str) -> None:
    store = SqlStore.open(postgres_home)
    runs = 0

    def work(tx: Any) -> None:
        nonlocal runs
        runs += 1
        tx.insert(Cursor(id="c", n=1))
        tx.append(event())
        if runs == 1:
            _end_sessions(postgres_home)
        tx.now()

    store.transact_sync("work", work)
    assert runs == 2
    assert store.read_sync(lambda tx: (tx.count(Cursor), tx.last_event())) == (1, 1)
    _end_sessions(postgres_home)
    assert store.read_sync(lambda tx: tx.last_event()) == 1
    store.close_sync()


def test_a_connection_lost_while_committing_is_not_tried_again(postgres_home: str) -> None:
    store = SqlStore.open(postgres_home, failpoint=lambda name: _end_sessions(postgres_home))
    with raises_code("store_unavailable"):
        store.transact_sync("work", lambda tx: tx.insert(Cursor(id="c", n=1)))
    assert store.read_sync(lambda tx: tx.count(Cursor)) == 0
    store.close_sync()


def test_a_stuck_worker_is_said(postgres_home: str) -> None:
    store = SqlStore.open(postgres_home, patience=0.2)
    with psycopg.connect(postgres_home) as stuck:
        stuck.execute("SELECT * FROM counters FOR UPDATE")
        with raises_code("store_unavailable"):
            store.transact_sync("work", put)
    store.transact_sync("work", put)
    assert projects(store) == 1
    store.close_sync()


def test_a_stuck_thread_of_this_process_is_said(path: Path) -> None:
    store = SqlStore.open(path, patience=0.1)
    with raises_code("store_unavailable"):
        store.transact_sync("outer", lambda tx: store.transact_sync("inner", put))
    store.close_sync()


async def test_wake_ups_come_back_after_the_server_ended_the_connection(postgres_home: str) -> None:
    store = SqlStore.open(postgres_home)
    await store.read(lambda tx: tx.last_event())
    _end_sessions(postgres_home)
    assert await store.changed(60)  # it may have missed something
    other = SqlStore.open(postgres_home)
    other.transact_sync("put", put)
    began = time.monotonic()
    assert await store.changed(60)
    assert time.monotonic() - began < 30
    other.close_sync()
    await store.close()


def test_the_clock_of_a_server_is_the_servers(postgres_home: str) -> None:
    store = SqlStore.open(postgres_home)
    with psycopg.connect(postgres_home) as raw:
        before = raw.execute("SELECT clock_timestamp()").fetchone()
        now = store.transact_sync("now", lambda tx: tx.now())
        after = raw.execute("SELECT clock_timestamp()").fetchone()
    assert before is not None
    assert after is not None
    assert before[0] <= now <= after[0]
    store.close_sync()


def _end_sessions(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
