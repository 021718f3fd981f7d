"""What people change in a source is taken in, what we told it ourselves is not, and what is broken is told of once."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.doubles import Home, planned

from loopwright.adapters.sources.beads import BeadsSource
from loopwright.adapters.sources.feature_list import FeatureListSource
from loopwright.core.failures import Failure
from loopwright.core.model import Loop, Project, Run
from loopwright.core.states import TaskState
from loopwright.engine.books import tell
from loopwright.engine.edits import Edits
from loopwright.ports import Mark
from loopwright.testing import fake_bd

GOOD = '{"features": [{"id": "a", "name": "A", "description": "Do a."}]}'


def lies_at(home: Home, place: Path) -> None:
    (project,), (loop,) = home.all(Project), home.all(Loop)
    home.store.transact_sync("here", lambda tx: tx.update(Project, project.id, path=str(place.parent)))
    home.store.transact_sync("file", lambda tx: tx.update(Loop, loop.id, source_path=place.name))


async def test_what_cannot_be_read_is_said_once_for_each_reason(tmp_path: Path) -> None:
    home = Home()
    home.submit(planned("a"))
    file = tmp_path / "feature_list.json"
    lies_at(home, file)
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


@pytest.mark.trap("lost resume")
@pytest.mark.parametrize("said", [{"mark": Mark.RUNNING}, {"first": True}], ids=["running", "next"])
async def test_what_the_source_says_was_under_way_or_next_goes_on_first(
    tmp_path: Path, said: dict[str, Any]
) -> None:
    home = await Home(slots=1).launch()
    under_way = planned("b", title="B", description="Do b.", priority=199, **said)
    home.submit(planned("a", title="A", description="Do a.", priority=99), under_way)
    lies_at(home, tmp_path / "feature_list.json")
    (tmp_path / "feature_list.json").write_text(
        GOOD.replace("]", ', {"id": "b", "name": "B", "description": "Do b."}]')
    )
    assert await Edits(replace(home.world, source=lambda _kind: FeatureListSource())).take_in()
    assert home.events("source_edited") == []
    first, *_ = await home.turn()
    assert first.subject == home.attempt("b").id


async def test_what_a_tracker_was_told_is_not_taken_for_a_person_s_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told that an issue is blocked, and nobody looked since: that does not undo a retry."""
    monkeypatch.setenv("PATH", str(fake_bd.install(tmp_path / "bin").parent), prepend=":")
    home = await Home().launch()
    plan = home.submit(planned("bd-1", max_attempts=1), planned("bd-2", "bd-1"))
    tracker = tmp_path / ".beads"
    tracker.mkdir()
    issues = [{"id": key, "title": f"Do {key}", "status": "open"} for key in ("bd-1", "bd-2")]
    (tracker / "tracker.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in issues))
    lies_at(home, tracker)
    world = replace(home.world, source=lambda _kind: BeadsSource())
    (leg,) = await home.turn()
    home.hand.fail(leg, Failure.GATE)
    assert await tell(world, plan.id) == ""
    assert BeadsSource().parse(BeadsSource().files(tracker), "x").tasks[0].mark is Mark.BLOCKED
    await home.command("retry", home.task("bd-1").id)
    assert await Edits(world).take_in()
    assert home.task("bd-1").status is TaskState.QUEUED


@pytest.mark.parametrize("sandbox", ["none", "bubblewrap", None])
@pytest.mark.capability("C040")
async def test_checks_are_taken_over_only_where_no_agent_could_have_written_them(
    sandbox: str | None, tmp_path: Path
) -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    file = tmp_path / "feature_list.json"
    lies_at(home, file)
    await home.turn()
    home.store.transact_sync("ran", lambda tx: tx.update(Run, home.all(Run)[0].id, sandbox=sandbox))
    before = home.task("a").acceptance
    feature = {"id": "a", "name": "Other", "description": "Do a.", "tests": ["`test -f a`"]}
    file.write_text(json.dumps({"features": [feature]}))
    edits = Edits(replace(home.world, source=lambda _kind: FeatureListSource()))
    await edits.take_in()
    file.write_text(json.dumps({"features": [feature]}, indent=1))
    await edits.take_in()
    assert home.task("a").title == "Other"
    if sandbox == "none":
        assert home.task("a").acceptance == before
        [kept] = home.events("checks_kept")
        assert kept.payload["reason"].startswith("acceptance of a changed in feature_list.json")
    else:
        assert [one.command for one in home.task("a").acceptance] == ["test -f a"]
        assert home.events("checks_kept") == []
