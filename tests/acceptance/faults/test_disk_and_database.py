"""A full disk, a locked or damaged database, a read-only repository: told in a sentence, and nothing is lost."""

import os
import sqlite3
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from tests.acceptance.faults.record import Record
from tests.acceptance.sandbox import Sandbox, task
from tests.waiting import eventually

from loopwright.adapters.store.sql import SqlStore


@contextmanager
def mounted(place: Path, *arguments: str) -> Iterator[None]:
    """Mount something on a folder, or skip the test where that is not permitted."""
    done = subprocess.run(["mount", *arguments, str(place)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(folder: Path) -> Path:
    """Take all the space that is left."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return filler


def _plan(sandbox: Sandbox, **more: object) -> Path:
    sandbox.play(
        {"a": [[{"write": "a.txt", "text": "right\n"}]], "b": [[{"write": "b.txt", "text": "right\n"}]]}
    )
    tasks = [task("a", "grep -q right a.txt"), task("b", "grep -q right b.txt", depends_on=["a"])]
    return sandbox.plan("disk", tasks, **more)


def test_a_disk_that_is_full_is_waited_for_and_told_and_nothing_is_lost(sandbox: Sandbox) -> None:
    plan, go = _plan(sandbox), sandbox.place / "go"
    sandbox.play(
        {
            "a": [[{"write": "a.txt", "text": "right\n"}, {"wait_for": str(go)}]],
            "b": [[{"write": "b.txt", "text": "right\n"}]],
        }
    )
    sandbox.home.mkdir()
    sandbox.program.env["LOOPWRIGHT_DISK__MIN_FREE"] = "off"
    with mounted(sandbox.home, "-t", "tmpfs", "-o", "size=8m", "tmpfs"):
        worker = sandbox.start("run", str(plan))
        try:
            worker.until("a  scripted")
            filler = fill(sandbox.home)
            go.touch()
            told = worker.until("the disk is full")
            assert "free some space" in told
            assert "Traceback" not in told
            worker.process.kill()
            worker.process.wait()

            # Whether the database still has room in its log decides if a new worker waits or ends at once.
            worker = sandbox.start("run", str(plan))
            assert "free some space" in worker.until("the disk is full")
            filler.unlink()
            if worker.end() == 6:
                worker = sandbox.start("run", str(plan))
            assert worker.end() == 0, worker.out
        finally:
            worker.kill()
        record = Record(sandbox.repository, home=sandbox.home)
        assert record.plan["status"] == "VERIFIED"
        assert record.landings() == {"a": 1, "b": 1}
        with sqlite3.connect(sandbox.home / "loopwright.db") as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        database.close()
        assert (
            sandbox("receipt", "verify", str(record.folder / "receipts" / f"{record.plan['id']}.json")).code
            == 0
        )


def test_without_room_on_the_disk_nothing_new_is_started_and_with_room_it_goes_on_by_itself(
    sandbox: Sandbox,
) -> None:
    sandbox.home.mkdir()
    sandbox.program.env["LOOPWRIGHT_DISK__MIN_FREE"] = "8MB"
    with mounted(sandbox.home, "-t", "tmpfs", "-o", "size=16m", "tmpfs"):
        filler = sandbox.home / "filler"
        filler.write_bytes(bytes(10 << 20))
        worker = sandbox.start("run", str(_plan(sandbox)))
        try:
            told = " ".join(worker.until("nothing new is started until there is room").split())
            assert "are free on the disk, and disk.min_free asks for 8.0 MB" in told
            assert not (sandbox.home / "workspaces").exists()
            filler.unlink()
            assert worker.end() == 0, worker.out
        finally:
            worker.kill()
        record = Record(sandbox.repository, home=sandbox.home)
        assert record.landings() == {"a": 1, "b": 1}
        told_of = [event["type"] for event in record.events() if event["type"].startswith("disk_")]
        assert told_of == ["disk_low", "disk_free"]


@pytest.mark.more
def test_a_database_that_someone_else_holds_for_a_while_is_waited_for(sandbox: Sandbox) -> None:
    plan, held = _plan(sandbox), sandbox.place / "held"
    sandbox.play(
        {
            "a": [[{"write": "a.txt", "text": "right\n"}, {"wait_for": str(held)}, {"say": "on"}]],
            "b": [[{"write": "b.txt", "text": "right\n"}]],
        }
    )
    worker = sandbox.start("run", str(plan))
    try:
        worker.until("a  scripted")
        database = sqlite3.connect(sandbox.home / "loopwright.db", isolation_level=None)
        database.execute("BEGIN IMMEDIATE")
        held.touch()
        with pytest.raises(subprocess.TimeoutExpired):
            worker.process.wait(timeout=2)
        database.execute("ROLLBACK")
        database.close()
        assert worker.end() == 0, worker.out
    finally:
        worker.kill()
    record = Record(sandbox.repository, home=sandbox.home)
    assert record.failures("a") == record.failures("b") == [None]


def test_a_damaged_database_is_told_and_left_as_it_is(sandbox: Sandbox) -> None:
    plan, path = _plan(sandbox), sandbox.home / "loopwright.db"
    sandbox.home.mkdir()
    SqlStore.open(path).close_sync()
    whole = path.read_bytes()
    for damaged, expected in (
        (os.urandom(len(whole)), "the file is not a database"),
        (whole[:8192] + os.urandom(len(whole) - 8192), "the file is damaged"),
    ):
        path.write_bytes(damaged)
        said = sandbox("run", str(plan), "--json")
        assert said.code == 6
        assert said.document["error"]["code"] == "damaged_database"
        assert expected in said.document["error"]["message"]
        assert str(path) in said.document["error"]["message"]
        assert path.read_bytes() == damaged


def test_a_repository_that_cannot_be_written_is_refused_before_anything_is_made(sandbox: Sandbox) -> None:
    plan, folder = _plan(sandbox), sandbox.repository
    with mounted(folder, "--bind", str(folder)):
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
        said = sandbox("run", str(plan))
    assert said.code == 2
    assert "the repository cannot be written" in said.err
    assert "to do: Make it writable" in said.err
    assert not (sandbox.home / "loopwright.db").exists()


def test_finished_work_that_nothing_can_save_waits_for_the_machine_and_is_not_done_again(
    sandbox: Sandbox,
) -> None:
    plan, go, inside = _plan(sandbox), sandbox.place / "go", sandbox.repository / ".git"
    sandbox.play(
        {
            "a": [[{"write": "a.txt", "text": "right\n"}, {"wait_for": str(go)}]],
            "b": [[{"write": "b.txt", "text": "right\n"}]],
        }
    )
    worker = sandbox.start("run", str(plan))
    try:
        worker.until("a  scripted")
        with mounted(inside, "--bind", str(inside)):
            subprocess.run(["mount", "-o", "remount,bind,ro", str(inside)], check=True)
            go.touch()
            assert worker.end() == 3, worker.out
    finally:
        worker.kill()
    assert "a: what its agent left cannot be saved: " in worker.out
    assert "Read-only file system" in worker.out

    said = sandbox("resume")
    assert said.code == 0, said.out
    record = Record(sandbox.repository, home=sandbox.home)
    assert record.landings() == {"a": 1, "b": 1}
    assert record.failures("a") == [None]
    assert len(record.runs("a", "implementer")) == 1, "its agent was paid once"


def test_a_workspace_that_its_agent_wrecked_holds_up_nobody_else(sandbox: Sandbox) -> None:
    plan = _plan(sandbox)
    sandbox.play(
        {
            "a": [[{"run": 'rm -rf "$PWD"'}], [{"write": "a.txt", "text": "right\n"}]],
            "b": [[{"write": "b.txt", "text": "right\n"}]],
        }
    )
    said = sandbox.run(plan)
    assert said.code == 0, said.out
    record = Record(sandbox.repository, home=sandbox.home)
    assert record.failures("a") == ["environment", None]
    assert "loop_paused" not in [event["type"] for event in record.events()]


@pytest.mark.more
def test_state_files_that_could_not_be_written_are_written_later(sandbox: Sandbox) -> None:
    plan = _plan(sandbox)
    in_the_way = sandbox.repository / ".loopwright"
    in_the_way.write_text("a file, where a folder should be")
    said = sandbox.run(plan)
    assert said.code == 0, "the work goes on\n" + said.out
    assert "note: state files not written" in said.out
    in_the_way.unlink()
    assert sandbox.run(plan).code == 0
    record = Record(sandbox.repository, home=sandbox.home)
    assert record.plan["status"] == "VERIFIED"
    assert (record.folder / "receipts" / f"{record.plan['id']}.json").exists()
    told = [event["type"] for event in record.events()]
    assert told.index("plan_created") < told.index("task_completed") < told.index("plan_verified")
    assert len(record.runs()) == 5, "two agents, two gates and the verification"


def test_work_that_git_cannot_record_is_run_once_kept_as_an_archive_and_never_verified(
    sandbox: Sandbox,
) -> None:
    encoded = "echo '*.txt working-tree-encoding=UTF-16' > .gitattributes; echo right > a.txt"
    deep = "for _ in range(25): os.mkdir('x' * 200); os.chdir('x' * 200)"
    long = f"echo right > b.txt; python3 -c \"import os\n{deep}\nopen('f', 'w')\""
    sandbox.play({"a": [[{"run": encoded}]] * 2, "b": [[{"run": long}]] * 2})
    tasks = [task(key, f"grep -q right {key}.txt", max_attempts=1) for key in ("a", "b")]
    said = sandbox.run(sandbox.plan("unrecordable", tasks))
    assert said.code == 1, said.out + said.err
    archives = {}
    for archive in (sandbox.home / "archives").iterdir():
        with tarfile.open(archive) as tar:
            archives |= {key: archive for key in ("a", "b") if f"{key}.txt" in tar.getnames()}
    assert sorted(archives) == ["a", "b"], "each was worked on once"
    for key, why in (("a", "BOM is required in"), ("b", "paths that are this long: xxx")):
        shown = sandbox("show", key).out
        assert why in shown
        assert archives[key].name in shown.replace("\n", "").replace(" ", "")
        assert "pinned" not in shown
    assert list((sandbox.home / "workspaces").iterdir()) == []


def test_ctrl_c_ends_a_run_and_its_agents_when_the_wal_or_the_whole_database_is_lost(
    sandbox: Sandbox,
) -> None:
    pids = sandbox.place / "pids"
    steps = [{"write": "a.txt", "text": "right\n"}, {"run": f"echo $PPID >> {pids}"}, {"hang": 300}]
    sandbox.play({"a": [steps]})
    plan = sandbox.plan("lost", [task("a", "grep -q right a.txt")])
    database = sandbox.home / "loopwright.db"

    def lose_wal() -> None:
        for ending in ("-wal", "-shm"):
            Path(f"{database}{ending}").unlink()

    def lose_everything() -> None:
        for ending in ("", "-wal", "-shm"):
            path = Path(f"{database}{ending}")
            with path.open("r+b") as file:
                file.write(b"\x55" * path.stat().st_size)

    for lose, code, said in (
        (lose_wal, 3, "paused from the terminal"),
        (lose_everything, 6, "The pause cannot be recorded: The database"),
    ):
        pids.write_text("")
        worker = sandbox.start("run", str(plan))
        try:
            eventually(lambda: pids.read_text().strip(), timeout=60)
            lose()
            worker.interrupt()
            assert worker.end() == code, worker.out
        finally:
            worker.kill()
        assert said in worker.out
        eventually(lambda: not psutil.pid_exists(int(pids.read_text())))
