"""A loop's health file: fresh while someone drives the loop, stale within two beats of the driver's death."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.arena import TASKS, Arena, kill
from tests.waiting import eventually

from loopwright.engine.worker.worker import TICK_S


@pytest.mark.capability("C104")
@pytest.mark.trap("dead heartbeat")
@pytest.mark.timeout(300)
def test_the_health_file_beats_while_an_agent_runs_and_stops_with_its_worker(tmp_path: Path) -> None:
    arena = Arena.make(tmp_path, work_s=90.0)
    folder = arena.repository / ".loopwright" / "health"
    process = arena.start()

    def health() -> dict[str, Any]:
        (file,) = folder.glob("*.json") if folder.is_dir() else [None]
        return json.loads(file.read_text()) if file else {}

    eventually(lambda: arena.journal.exists() and health(), timeout=30)
    first = health()
    assert (first["status"], first["pid"]) == ("RUNNING", process.pid)
    assert first["progress"] == {"passed": 0, "settled": 0, "failed": 0, "total": TASKS}
    second = eventually(
        lambda: (now := health())["last_heartbeat"] != first["last_heartbeat"] and now, timeout=20
    )
    kill(process)
    last = health()
    assert last["last_heartbeat"] >= second["last_heartbeat"]
    beat, deadline = (
        datetime.fromisoformat(last[key]) for key in ("last_heartbeat", "next_heartbeat_before")
    )
    assert timedelta() < deadline - beat <= 2 * timedelta(seconds=TICK_S), "it says itself when it is stale"
    plan = last["plan_id"]
    cancelled = arena.start("cancel", plan)
    out, err = cancelled.communicate(timeout=60)
    assert cancelled.returncode == 0, out + err
    eventually(lambda: not arena.processes(), timeout=15)
