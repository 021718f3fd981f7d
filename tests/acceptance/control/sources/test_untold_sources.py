"""A source that takes in no status is owed it: that is named, told later, and nothing is done twice."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.control.sources.test_sources import feature, makes, passes, written
from tests.acceptance.control.workshop import Workshop, kill
from tests.fakes import fake_bd
from tests.waiting import eventually

from loopwright.core.rows.model import Plan
from loopwright.core.rows.source_rows import SourceDebt

SETTINGS = '[[gates]]\nname = "greeting"\nrun = "grep -q hello greet.txt"\n'


def issue(key: str) -> dict[str, Any]:
    checks = f"- `test -s made-{key}`"
    return {"id": key, "title": f"Make {key}", "status": "open", "priority": 1, "acceptance_criteria": checks}


def put_issues(shop: Workshop, *issues: dict[str, Any]) -> None:
    folder = shop.repository / ".beads"
    folder.mkdir(exist_ok=True)
    with (folder / "tracker.jsonl").open("a") as file:
        file.writelines(json.dumps(one) + "\n" for one in issues)


def statuses(shop: Workshop) -> dict[str, str]:
    lines = (shop.repository / ".beads/tracker.jsonl").read_text().splitlines()
    return {one["id"]: one["status"] for one in map(json.loads, lines)}


@pytest.fixture
def tracked_by_bd(shop: Workshop) -> Workshop:
    """A project whose tracker keeps its issues to itself, and refuses to close any."""
    (shop.repository / ".git/info/exclude").write_text(".beads/\n")
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    shop.git("add", "-A")
    shop.git("commit", "-qm", "settings")
    put_issues(shop, issue("bd-a1"))
    shop.play({key: [[{"write": f"made-{key}", "text": "x\n"}]] for key in ("bd-a1", "bd-a2")})
    path = fake_bd.install(shop.place / "bin").parent
    shop.program.env |= {"PATH": f"{path}:{shop.program.env['PATH']}", "FAKE_BD": "refuse=closed"}
    return shop


@pytest.mark.capability("C054")
def test_a_tracker_that_refuses_to_close_an_issue_is_named_and_told_later_and_nothing_is_done_twice(
    tracked_by_bd: Workshop,
) -> None:
    shop = tracked_by_bd
    said = shop("run", ".beads", timeout=100)
    assert said.code == 6, "verified, and its source does not say so"
    assert "VERIFIED" in said.out
    words = " ".join(said.out.split())
    assert "not written back: .beads lacks the status of bd-a1" in words
    assert "invalid status: closed" in words.rpartition("not written back:")[2]
    seen = shop("status", "--json", "--exit-code")
    owed = seen.document["plan"]["untold"]
    assert (owed["source"], owed["items"], seen.code) == (".beads", ["bd-a1"], 6)
    assert "invalid status: closed" in owed["reason"]
    assert seen.document["untold"] == [owed]
    assert "not written back: .beads" in " ".join(shop("status").out.split())

    # The work is merged, so that nothing else keeps it from being done again.
    shop.git("merge", "-q", "--ff-only", shop.row(Plan).branch)
    again = shop("run", ".beads", timeout=100)
    assert (again.code, len(shop.rows(Plan)), shop.started()) == (6, 1, [("bd-a1", 1)])
    put_issues(shop, issue("bd-a2"))
    more = shop("run", ".beads", timeout=100)
    assert (more.code, len(shop.rows(Plan))) == (2, 1), more.out + more.err
    assert "a new plan would do again what is done" in " ".join(more.err.split())

    shop.program.env["FAKE_BD"] = ""
    mended = shop("run", ".beads", timeout=100)
    assert mended.code == 0, mended.out + mended.err
    assert statuses(shop) == {"bd-a1": "closed", "bd-a2": "closed"}
    assert shop.started() == [("bd-a1", 1), ("bd-a2", 1)], "what was done is not done again"
    assert not shop.rows(SourceDebt)
    assert [one.type for one in shop.events("source_not_told", "source_told")][-1] == "source_told"


@pytest.mark.more
def test_what_a_tracker_is_owed_outlives_a_kill_in_the_moment_of_the_refusal(tracked_by_bd: Workshop) -> None:
    """Killed when the debt is about to be written, then when it is; a worker that finds nothing else to do pays it."""
    shop = tracked_by_bd
    for moment in ("before", "after"):
        shop.program.env["LOOPWRIGHT_FAILPOINT"] = f"store.source.debt.{moment}"
        assert shop("run", ".beads", timeout=100).code == -9
    del shop.program.env["LOOPWRIGHT_FAILPOINT"]
    assert shop("run", ".beads", timeout=100).code == 6
    worker = shop.start("worker")
    eventually(lambda: "working in" in worker.out, timeout=30)
    kill(worker)
    assert statuses(shop)["bd-a1"] != "closed"
    assert [one.items for one in shop.rows(SourceDebt)] == [("bd-a1",)]
    shop.program.env["FAKE_BD"] = ""
    assert shop("worker", "--until-idle", timeout=60).code == 0
    assert statuses(shop) == {"bd-a1": "closed"}
    assert not shop.rows(SourceDebt)
    assert shop("run", ".beads", timeout=60).code == 0
    assert shop.started() == [("bd-a1", 1)]


def broken_at_the_end(shop: Workshop) -> tuple[Path, bytes]:
    """Carry out a list that is broken when its plan ends; return where it is, and what it was."""
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    path = written(shop.place / "feature_list.json", feature("one"))
    whole = path.read_bytes()
    gate = shop.gate("gate")
    shop.play({"one": [[{"run": gate.shell}, *makes("one")["one"][0]]]})
    run = shop.start("run", str(path))
    gate.until_reached()
    path.write_text('{"features": [')
    gate.let_go()
    assert run.end() == 6, run.out
    assert "../feature_list.json lacks the status of one" in " ".join(run.out.split())
    return path, whole


def test_a_file_that_was_broken_when_its_plan_ended_is_told_once_it_is_mended(shop: Workshop) -> None:
    """By a worker that is there all the time, without anybody asking for it."""
    path, whole = broken_at_the_end(shop)
    worker = shop.start("worker")
    eventually(lambda: "working in" in worker.out, timeout=30)
    path.write_bytes(whole)
    eventually(lambda: passes(path.read_text()) == {"one": True}, timeout=60)
    eventually(lambda: not shop.rows(SourceDebt), timeout=30)
    assert shop("status", "--exit-code").code == 0
    kill(worker)
    assert shop.run(path).code == 0
    assert shop.started() == [("one", 1)]


def test_a_source_that_was_mended_is_told_at_once_by_a_worker_that_rests(shop: Workshop) -> None:
    """It would ask again by itself much later: `run` has it ask now, and goes by what comes of it."""
    path, _ = broken_at_the_end(shop)
    log = shop.home / "loopwright.log"
    before = log.read_text().count("status not written back")
    worker = shop.start("worker")
    eventually(lambda: log.read_text().count("status not written back") > before, timeout=60)
    shop.git("merge", "-q", "--ff-only", shop.row(Plan).branch)
    shop.play(makes("one", "two"))
    written(path, feature("one"), feature("two"))
    again = shop.run(path)
    assert again.code == 0, again.out + again.err
    assert shop.started() == [("one", 1), ("two", 1)], "what was done is not done again"
    assert passes(path.read_text()) == {"one": True, "two": True}
    kill(worker)


def test_a_source_that_is_away_troubles_nobody_and_is_told_when_it_is_back(shop: Workshop) -> None:
    """Deleted for good or stashed for a moment: nobody can tell, and what is done is not done again."""
    path, _ = broken_at_the_end(shop)
    path.unlink()
    assert shop("worker", "--until-idle", timeout=60).code == 0
    (given_up,) = shop.events("source_given_up")
    assert "feature_list.json is missing" in given_up.payload["reason"]
    seen = shop("status", "--json", "--exit-code")
    assert (seen.code, seen.document["plan"]["untold"], seen.document["untold"]) == (0, None, [])

    written(path, feature("one"), feature("two"))
    shop.git("merge", "-q", "--ff-only", shop.row(Plan).branch)
    shop.play(makes("one", "two"))
    again = shop.run(path)
    assert again.code == 0, again.out + again.err
    assert shop.started() == [("one", 1), ("two", 1)], "what was done is not done again"
    assert passes(path.read_text()) == {"one": True, "two": True}
    assert not shop.rows(SourceDebt)
