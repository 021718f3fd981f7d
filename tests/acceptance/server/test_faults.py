"""A lost database under the daemon: requests say what is wrong, and everything continues when it is back."""

import sqlite3
from contextlib import closing

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


def test_a_database_that_goes_away_and_comes_back_breaks_no_request_for_good(served: Served) -> None:
    _working(served)
    away = served.place / "away"
    away.mkdir()
    moved = [path.rename(away / path.name) for path in sorted(served.home.glob("loopwright.db*"))]
    for path in READS:
        assert served.ask("GET", path).status_code in (200, 503), path
    assert served.post("/api/tokens", {"name": "meanwhile"}).status_code in (201, 503)
    for path in served.home.glob("loopwright.db*"):
        path.unlink()
    for path in moved:
        path.rename(served.home / path.name)
    eventually(lambda: served.post("/api/tokens", {"name": "back"}).status_code in (201, 409), timeout=60)
    served.gate("go").let_go()
    _finished(served)
