"""A restored backup, or a database that is lost: what was bought and landed is known again before anything starts."""

import json
import shlex
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
from tests.acceptance.faults.record import Record
from tests.acceptance.sandbox import Sandbox, task
from tests.waiting import eventually

from loopwright.adapters.store.sql import SqlStore
from loopwright.core.rows.model import Plan

TASKS = [
    task("a", "grep -q right a.txt"),
    task("b", "grep -q right b.txt", depends_on=["a"]),
    task("c", "grep -q right c.txt", depends_on=["b"]),
]


def _bought(sandbox: Sandbox) -> list[str]:
    """Return the tasks that an agent was started for, in order."""
    lines = [line.split() for line in (sandbox.place / "journal.txt").read_text().splitlines()]
    return [words[0] for words in lines if words[2] == "start"]


def _sockets(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if Path(folder, name).is_socket()}


def _landed_by_export(sandbox: Sandbox) -> set[str]:
    (file,) = (sandbox.repository / ".loopwright" / "plans").glob("*.json")
    return {one["key"] for one in json.loads(file.read_text())["tasks"] if one["landed_sha"]}


def _killed_after_a_backup(sandbox: Sandbox) -> Path:
    """Carry a plan out, back it up before the second task lands, and kill it right before the third does."""
    go, exported = sandbox.place / "go", sandbox.place / "exported"
    sandbox.play(
        {
            "a": [[{"write": "a.txt", "text": "right\n"}]],
            "b": [[{"write": "b.txt", "text": "right\n"}, {"wait_for": str(go)}]],
            "c": [[{"write": "c.txt", "text": "right\n"}, {"wait_for": str(exported)}]],
        }
    )
    plan = sandbox.plan("day", TASKS)
    sandbox.program.env["LOOPWRIGHT_FAILPOINT"] = "store.attempt.landing.before:3"
    worker = sandbox.start("run", str(plan))
    try:
        worker.until("b  scripted")
        store = SqlStore.open(sandbox.home / "loopwright.db", create=False)
        anyio.run(store.back_up, datetime.now(UTC) + timedelta(days=2))
        store.close_sync()
        go.touch()
        # So that the export is newer than the backup, however busy the machine is.
        eventually(lambda: _landed_by_export(sandbox) == {"a", "b"}, timeout=60)
        exported.touch()
        worker.process.wait(timeout=60)
    finally:
        worker.kill()
        del sandbox.program.env["LOOPWRIGHT_FAILPOINT"]
    return plan


def test_a_backup_of_yesterday_or_a_lost_database_buys_and_lands_nothing_twice(sandbox: Sandbox) -> None:
    plan = _killed_after_a_backup(sandbox)
    # A process that has still to end takes files of the home away while they are copied or removed.
    sandbox.until_quiet()
    kept = {path: sandbox.place / f"kept-{path.name}" for path in (sandbox.home, sandbox.repository)}
    for path, copy in kept.items():
        shutil.copytree(path, copy, symlinks=True, ignore=_sockets)
    for loss in (
        "damaged",
        "put back by hand, without the export",
        "gone",
        "damaged, without export and recordings",
    ):
        for path, copy in kept.items():
            shutil.rmtree(path)
            shutil.copytree(copy, path, symlinks=True)
        database = sandbox.home / "loopwright.db"
        (backup,) = sandbox.home.glob("loopwright.db.backup-*")
        with database.open("r+b") as file:
            file.truncate(20_000)
        if "without" in loss:
            shutil.rmtree(sandbox.repository / ".loopwright")
        if "recordings" in loss:
            shutil.rmtree(sandbox.home / "runs")
        if loss == "gone":
            for path in sandbox.home.glob("loopwright.db*"):
                path.unlink()
            said = sandbox("run", str(plan))
            assert said.code == 2, said
            assert "loopwright projects import" in said.err
            assert "--new" in said.err
            said = sandbox("projects", "import")
        elif "hand" in loss:
            for path in sandbox.home.glob("loopwright.db-*"):
                path.unlink()
            backup.replace(database)
            said = sandbox("status")
        else:
            said = sandbox("doctor" if loss == "damaged" else "status")
            assert said.code == 6, (loss, said.out)
            assert "is damaged" in said.out + said.err
            command = (said.out + said.err).partition("to do: `loopwright ")[2].partition("`")[0]
            said = sandbox(*shlex.split(" ".join(command.split())))
        assert said.code == 0, (loss, said)
        if loss == "damaged":
            store = SqlStore.open(database, create=False)
            (row,) = store.read_sync(lambda tx: tx.find(Plan))
            store.close_sync()
            assert row.environment is not None, "no file has it, and the backup does"

        done = sandbox.run(plan)
        sandbox.until_quiet()
        record = Record(sandbox.repository, home=sandbox.home)
        assert _bought(sandbox) == ["a", "b", "c"], loss
        if "recordings" in loss:
            assert done.code == 1, (loss, done.out + done.err)
            assert record.landings() == {"a": 1, "b": 1}
            assert "left its work at refs/loopwright/attempts/" in sandbox("show", "c").out
            continue
        # The last events may be newer than the export; then the record of a check is lost, and that is a gap.
        assert done.code in ((4,) if "without" in loss else (0, 4)), (loss, done.out + done.err)
        assert record.landings() == {"a": 1, "b": 1, "c": 1}, loss
        told = [event["type"] for event in record.events()]
        assert loss == "put back by hand, without the export" or "plan_imported" in told
        if done.code == 0:
            said = sandbox("receipt", "verify", str(record.plan["id"]))
            assert said.code == 0, (loss, said.out + said.err)


def test_work_of_a_moved_copied_or_forgotten_repository_is_not_done_again(sandbox: Sandbox) -> None:
    sandbox.play({"a": [[{"write": "a.txt", "text": "right\n"}]]})
    plan = sandbox.plan("moved", TASKS[:1])
    assert sandbox.run(plan).code == 0

    moved, copied = sandbox.place / "moved", sandbox.place / "copied"
    sandbox.repository.rename(moved)
    assert "run `loopwright projects import` where the repository is now" in " ".join(
        sandbox("doctor", cwd=moved).out.split()
    )
    said = sandbox("run", str(plan), cwd=moved)
    assert said.code == 0, said
    assert f"this repository was at {sandbox.repository} before" in said.out
    assert sandbox("projects", "--json", cwd=moved).document["projects"][0]["project"]["path"] == str(moved)

    shutil.copytree(moved, copied, symlinks=True)
    said = sandbox("run", str(plan), cwd=copied)
    assert said.code == 2, said
    assert f"belongs to {moved}, of which this repository is a copy" in said.err

    shutil.rmtree(sandbox.home)
    said = sandbox("run", str(plan), "--json", cwd=moved)
    assert said.code == 2, said
    assert said.document["error"]["hint"] == (
        "`loopwright projects import` takes it up; "
        "or `loopwright run ../moved.yaml --new` starts a new plan anyway"
    )

    shutil.rmtree(moved / ".loopwright")
    said = sandbox("run", str(plan), cwd=moved)
    assert said.code == 2, said
    assert "1 task of ../moved.yaml landed on loopwright/plan_" in said.err
    assert _bought(sandbox) == ["a"]


def test_what_was_parked_in_a_home_that_is_gone_is_begun_again(sandbox: Sandbox) -> None:
    """One task waits for an answer, the other was paused at work; the files of both were in the home."""
    right = [{"write": "a.txt", "text": "right\n"}], [{"write": "b.txt", "text": "right\n"}]
    asks = [{"claim": '```loopwright-ask\n{"question": "Which colour?"}\n```\n'}]
    sandbox.play(
        {"a": [asks, right[0]], "b": [[*right[1], {"wait_for": str(sandbox.place / "no")}], right[1]]}
    )
    plan = sandbox.plan("parked", [TASKS[0], task("b", "grep -q right b.txt")])
    going = sandbox.start("run", str(plan))
    try:
        going.until("Which colour?")
        eventually(lambda: "b" in _bought(sandbox), timeout=60)
        going.interrupt()
        assert going.end() == 3, going.out
    finally:
        going.kill()

    shutil.rmtree(sandbox.home)
    said = sandbox("projects", "import")
    assert said.code == 0, said
    for key in ("a", "b"):
        assert f"attempt 1 of {key} has ended: it was at work in another home" in " ".join(said.out.split())
    assert "what it had done is at refs/loopwright/attempts/" in " ".join(said.out.split())
    done = sandbox.run(plan)
    assert done.code == 0, done.out + done.err
    assert sorted(_bought(sandbox)) == ["a", "a", "b", "b"]
    assert sandbox("questions").out == "nothing waits for an answer\n"
