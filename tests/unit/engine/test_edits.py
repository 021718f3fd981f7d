"""A source that cannot be read any more is told of once, and holds nothing up."""

from dataclasses import replace
from pathlib import Path

from tests.doubles import Home, planned

from loopwright.adapters.sources.feature_list import FeatureListSource
from loopwright.core.model import Loop, Project
from loopwright.engine.edits import Edits

GOOD = '{"features": [{"id": "a", "name": "A", "description": "Do a."}]}'


async def test_what_cannot_be_read_is_said_once_for_each_reason(tmp_path: Path) -> None:
    home = Home()
    home.submit(planned("a"))
    (project,), (loop,) = home.all(Project), home.all(Loop)
    home.store.transact_sync("here", lambda tx: tx.update(Project, project.id, path=str(tmp_path)))
    file = tmp_path / "feature_list.json"
    home.store.transact_sync("file", lambda tx: tx.update(Loop, loop.id, source_path=file.name))
    edits = Edits(replace(home.world, source=lambda _kind: FeatureListSource()))
    for _ in range(3):
        await edits.take_in()
    assert len(home.events("source_unreadable")) == 1, "it is gone"
    file.write_text("{")
    for _ in range(3):
        await edits.take_in()
    assert len(home.events("source_unreadable")) == 2, "it is broken"
    file.write_text(GOOD)
    await edits.take_in()
    file.unlink()
    await edits.take_in()
    assert len(home.events("source_unreadable")) == 3, "it was whole in between"
