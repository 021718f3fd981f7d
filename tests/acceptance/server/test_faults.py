"""A full disk under the daemon: requests say what is wrong, and everything continues afterwards."""

import sqlite3
from contextlib import closing

import pytest
from tests.acceptance.faults.test_disk_and_database import fill, mounted
from tests.acceptance.sandbox import task
from tests.acceptance.server.conftest import Served
from tests.waiting import eventually

from loopwright.core.rows.model import Plan

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
