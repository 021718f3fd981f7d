"""A source's own sign of life: it beats while its loop is driven, says so when not, and is no work for git."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.doubles import Home, planned

from loopwright.adapters.sources.test_state.test_state import LoopTestsSource
from loopwright.adapters.sources.text.writing import put_files
from loopwright.core.rows.model import Loop, Plan, Project
from loopwright.engine.sources.source_heartbeats import show_signs
from loopwright.engine.sources.status_writeback import tell

CONFIG = {
    "name": "loop",
    "specs_dir": "specs",
    "test_state_file": "test-state.json",
    "health_check": {"enabled": True, "interval_seconds": 5},
}
STATE = {"loopName": "loop", "tests": [{"id": "A-B-1", "category": "api", "status": "pending"}]}


async def test_it_beats_while_somebody_drives_the_loop_and_stops_with_it(tmp_path: Path) -> None:
    home = Home()
    plan = home.submit(planned("A-B-1"))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "test-state.json").write_text(json.dumps(STATE))
    (project,), (loop,) = home.all(Project), home.all(Loop)
    here = {"source_path": "test-state.json", "source_kind": "test_state"}
    home.store.transact_sync("here", lambda tx: tx.update(Project, project.id, path=str(tmp_path)))
    home.store.transact_sync("file", lambda tx: tx.update(Loop, loop.id, **here))
    world = replace(home.world, source=lambda _kind: LoopTestsSource(), put_files=put_files)
    file = tmp_path / "health.json"

    def said() -> dict[str, Any]:
        return json.loads(file.read_text()) if file.exists() else {}

    await show_signs(world)
    first = said()
    assert (first["status"], first["pid"]) == ("starting", world.me.pid)
    home.clock.advance(3)
    await show_signs(world)
    assert said() == first, "it is fresh enough"
    home.clock.advance(3)
    await show_signs(world)
    assert said()["last_heartbeat"] > first["last_heartbeat"], "nothing happened but time"
    await home.command("pause", plan.id)
    await show_signs(world)
    assert said()["status"] == "starting", "whoever paused it tells"
    assert await tell(world, plan.id) is None
    assert (said()["status"], said()["pid"]) == ("stopped", None)

    await home.command("resume", plan.id)
    file.write_text('{"name": "somebody else\'s"}')
    await show_signs(world)
    assert said() == {"name": "somebody else's"}, "and nothing is stopped by it"
    file.unlink()
    home.store.transact_sync("track", lambda tx: tx.update(Plan, plan.id, books=("health.json",)))
    await show_signs(world)
    assert not file.exists(), "git tracks it: it would be a change in the checkout"
