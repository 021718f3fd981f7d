"""A full disk or a lost database under the daemon: requests say what is wrong, and everything continues afterwards."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from tests.acceptance.control.greeting import PLAN, block
from tests.acceptance.faults.test_disk_and_database import fill, mounted
from tests.acceptance.sandbox import task
from tests.acceptance.server.conftest import Served
from tests.waiting import eventually

from loopwright.core.rows.model import Plan, Project

READS = (
    "/api/loops",
    "/api/plans",
    "/api/projects",
    "/api/events",
    "/api/needs-response",
    "/healthz",
    "/readyz",
)


def _working(served: Served) -> None:
    """Start a daemon, and a plan whose first agent waits at a gate."""
    served.play(
        {
            "a": [[{"write": "a.txt", "text": "1\n"}, served.gate("go").step]],
            "b": [[{"write": "b.txt", "text": "1\n"}]],
        }
    )
    served.serve()
    plan = served.plan("faults", [task("a", "test -s a.txt"), task("b", "test -s b.txt", depends_on=["a"])])
    assert served.run(plan, "--detach").code == 0
    served.until_started("a")


@contextmanager
def _moved_away(served: Served) -> Iterator[None]:
    """Move the files of the database away for a while."""
    away = served.place / "away"
    away.mkdir()
    names = [f"loopwright.db{ending}" for ending in ("", "-wal", "-shm")]
    for name in names:
        (served.home / name).rename(away / name)
    yield
    for name in reversed(names):
        (away / name).rename(served.home / name)


def _finished(served: Served) -> None:
    eventually(lambda: served.row(Plan).status == "VERIFIED", timeout=120)
    assert served.started() == [("a", 1), ("b", 1)]
    with closing(sqlite3.connect(served.home / "loopwright.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.more
def test_a_full_disk_under_the_daemon_refuses_changes_and_loses_nothing(served: Served) -> None:
    served.home.mkdir()
    served.program.env["LOOPWRIGHT_DISK__MIN_FREE"] = "off"
    with mounted(served.home, "-t", "tmpfs", "-o", "size=16m", "tmpfs"):
        try:
            _working(served)
            filler = fill(served.home)
            refused = [served.post("/api/tokens", {"name": f"t{n}"}) for n in range(40)]
            assert {one.status_code for one in refused} <= {201, 503}, {one.text for one in refused}
            codes = {one.json()["code"] for one in refused if one.status_code == 503}
            assert codes == {"store_unavailable"}, "the disk is full, so not all can be kept"
            for path in READS:
                assert served.ask("GET", path).status_code in (200, 503), path
            filler.unlink()
            eventually(
                lambda: served.post("/api/tokens", {"name": "room"}).status_code in (201, 409), timeout=60
            )
            served.gate("go").let_go()
            _finished(served)
        finally:
            served.clean_up()


def test_a_database_that_is_moved_away_and_back_ends_no_plan_and_no_draft(served: Served) -> None:
    steps = {"a": [[served.gate("go").step, {"write": "a.txt", "text": "1\n"}]]}
    served.play({**steps, "plan": [[served.gate("go").step, {"claim": block(PLAN)}]]})
    daemon = served.serve()
    assert served.run(served.plan("faults", [task("a", "test -s a.txt")]), "--detach").code == 0
    served.until_started("a")
    goal = {"goal": "Greet people in French"}
    draft = served.post(f"/api/projects/{served.row(Project).id}/plan", goal).json()["planId"]
    served.until_started("plan")
    with _moved_away(served):
        served.gate("go").let_go()
        daemon.until("work cannot start until the database answers again")
        ready = served.ask("GET", "/readyz")
        assert (ready.status_code, ready.json()["code"]) == (503, "not_ready")
        for path in ("/api/loops", "/api/events", f"/api/plans/{draft}"):
            refused = served.ask("GET", path)
            assert (refused.status_code, refused.json()["code"]) == (503, "database_gone"), path
        assert served.ask("GET", "/healthz").status_code == 200
        assert not list(served.home.glob("loopwright.db*.backup*")) + list(served.home.glob("loopwright.db"))
    eventually(lambda: served.ask("GET", "/readyz").status_code == 200, timeout=60)
    eventually(lambda: not served.get(f"/api/plans/{draft}")["planning"], timeout=120)
    assert served.get(f"/api/plans/{draft}")["status"] == "DRAFT"
    eventually(lambda: served.rows(Plan)[0].status == "VERIFIED", timeout=120)
    assert sorted(served.started()) == [("a", 1), ("plan", 1)], "each agent was paid once"
    assert daemon.process.poll() is None


def test_another_file_in_place_of_the_database_ends_the_daemon_with_its_reason(served: Served) -> None:
    daemon = served.serve()
    database = served.home / "loopwright.db"
    with _moved_away(served):
        shutil.copy(served.place / "away" / database.name, database)
        assert daemon.end() == 6, daemon.out
        assert json.loads(daemon.out[daemon.out.index("{\n") :])["error"]["code"] == "database_replaced"
    served.serve()
    assert served.get("/api/loops")["loops"] == []
