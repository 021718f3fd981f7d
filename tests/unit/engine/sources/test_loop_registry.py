"""The registry of loops as a file: its shape, its heartbeat, and what is left when the worker ends."""

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.doubles import Home, planned

from loopwright.adapters.home.statefiles import ProjectStateFiles
from loopwright.config.publish import identified
from loopwright.core.rows.loop_files import LOOP_CONFIG, LOOP_HEALTH, LOOP_REGISTRY
from loopwright.core.rows.model import Loop, Project
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.sources.loop_registry import LoopRegistry
from loopwright.engine.sources.source_heartbeats import beat, last_words

PROBABLY = jsonschema.FormatChecker()


def _read(path: Path, schema: Any) -> Any:
    found = json.loads(path.read_text())
    jsonschema.validate(found, schema, format_checker=PROBABLY)
    return found


@pytest.mark.capability("C095", "C104")
async def test_the_registry_beats_while_a_loop_is_driven_and_says_when_it_is_stale(tmp_path: Path) -> None:
    home = await Home().launch()
    place, project = tmp_path / "home", tmp_path / "repo"
    place.mkdir()
    project.mkdir()
    home.submit(planned("a"), planned("b"))
    (row,), (loop,) = home.all(Project), home.all(Loop)
    home.store.transact_sync("here", lambda tx: tx.update(Project, row.id, path=str(project)))
    world = replace(home.world, paths=HomePaths(root=place))
    files = ProjectStateFiles()
    registry = LoopRegistry(world, files)
    await home.turn()
    await registry.write()
    mine = project / ".loopwright" / "loop_registry.json"
    first = _read(mine, LOOP_REGISTRY)
    entry = first["loops"][loop.id]
    assert {key: entry[key] for key in ("status", "pid", "current_test", "progress", "priority")} == {
        "status": "running",
        "pid": 1,
        "current_test": "a",
        "progress": {"passed": 0, "total": 2},
        "priority": 5,
    }
    assert entry["resources"] == {"agent": "claude", "model": None, "max_concurrent": 2}
    assert entry["last_heartbeat"].endswith("Z")
    assert first["next_update_before"] > first["updated_at"]
    written = json.loads((project / ".loopwright" / "loop_config.schema.json").read_text())
    assert written == identified("loop_config", LOOP_CONFIG)
    whole = place / "loop_registry.json"
    assert _read(whole, LOOP_REGISTRY) == first
    assert stat.S_IMODE(whole.stat().st_mode) == 0o600, "it is about all projects"
    home.clock.advance(5)
    await registry.write()
    assert _read(mine, LOOP_REGISTRY)["loops"][loop.id]["last_heartbeat"] > entry["last_heartbeat"]

    await beat(world, files)
    health = project / ".loopwright" / "health" / f"{loop.id}.json"
    assert _read(health, LOOP_HEALTH)["current_test"] == "a"

    await home.command("stop", home.plan().id)
    words = home.store.read_sync(lambda tx: last_words(tx, loop.id))
    jsonschema.validate(words, LOOP_HEALTH, format_checker=PROBABLY)
    await registry.write(ends=True)
    last = _read(mine, LOOP_REGISTRY)
    assert (last["loops"][loop.id]["status"], last["loops"][loop.id]["pid"]) == ("stopped", None)
    assert last["next_update_before"] is None, "no pid of a dead worker is left"


async def test_loops_at_rest_are_read_once_and_deleted_ones_are_left_out(tmp_path: Path) -> None:
    home = Home()
    home.submit(planned("a"))
    await home.command("stop", home.plan().id)
    registry = LoopRegistry(replace(home.world, paths=HomePaths(root=tmp_path)), ProjectStateFiles())
    await registry.write()
    file = tmp_path / "loop_registry.json"
    (loop,) = home.all(Loop)
    before = json.loads(file.read_text())["loops"]
    assert before[loop.id]["status"] == "stopped"
    await registry.write()
    assert json.loads(file.read_text())["loops"] == before
    home.store.transact_sync("start", lambda tx: tx.update(Loop, loop.id, start={"actor": "me", "flags": {}}))
    await registry.write()
    assert json.loads(file.read_text())["loops"][loop.id]["status"] == "starting"
    home.store.transact_sync("gone", lambda tx: tx.update(Loop, loop.id, deleted_at=tx.now()))
    await registry.write()
    assert json.loads(file.read_text())["loops"] == {}


async def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    home = Home()
    home.submit(planned("a"))
    registry = LoopRegistry(replace(home.world, paths=HomePaths(root=tmp_path / "gone")), ProjectStateFiles())
    await registry.write()
    assert not (tmp_path / "gone").exists()
