"""A source that is run again: what was done before it is there, or it is said that it is not."""

import json

import pytest
from tests.acceptance.control.sources.test_sources import SETTINGS, feature, makes, passes, written
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task

from loopwright.core.rows.model import Plan
from loopwright.core.values.ids import short_id


def plain(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.capability("C011")
@pytest.mark.parametrize(
    "tracked", [pytest.param(False, id="in place", marks=pytest.mark.more), pytest.param(True, id="tracked")]
)
def test_a_new_plan_does_not_start_without_what_the_last_one_landed(shop: Workshop, *, tracked: bool) -> None:
    """`two` builds on `one`, which is done and on a branch that nobody merged."""
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    path = (shop.repository if tracked else shop.place) / "feature_list.json"
    written(path, feature("one"))
    shop.git("add", "-A")
    shop.git("commit", "-qm", "the work")
    shop.play(makes("one", "two"))
    assert shop.run(path).code == 0
    first = shop.row(Plan)
    done = not tracked
    written(path, feature("one", passes=done), feature("two", "one", check="test -s one && test -s two"))
    said = shop.run(path)
    assert said.code == 2, said.out
    assert f"landed 1 task on {first.branch}, which is not merged into trunk" in plain(said.err)
    assert f"git merge {first.branch}" in plain(said.err)
    assert (f"--base {first.branch}" in plain(said.err)) is done, (
        "ticks that are on the branch come by merging"
    )
    assert len(shop.rows(Plan)) == 1
    if tracked:
        shop.git("stash", "-q")
        shop.git("merge", "-q", "--ff-only", first.branch)
        shop.git("stash", "drop", "-q")
        assert passes(path.read_text()) == {"one": True}
        written(path, feature("one", passes=True), feature("two", "one", check="test -s one && test -s two"))
        said = shop.run(path)
    else:
        said = shop.run(path, "--base", first.branch)
    assert said.code == 0, said.out + said.err
    assert shop.started_keys() == ["one", "two"], "what is done is not done again"
    assert shop.landed() == ["two"]
    if not tracked:
        said = shop.run(path, "--new", "--json")
        counts = {"nothing_to_do": True, "done": 2, "skipped": 0, "open_ends": []}
        assert said.document == {"plan": None, **counts, "exit_code": 0}
        written(path, feature("two", passes=True))
        said = shop.run(path)
        assert (said.code, len(shop.rows(Plan))) == (0, 2)
        assert "Nothing is left to do in ../feature_list.json: 1 item done." in plain(said.out)
        return
    unmerged = shop.run(path)
    assert "--new starts over with the 1 item still open" in plain(unmerged.out)
    assert "merge it:" in unmerged.out
    second = shop.rows(Plan)[-1]
    shop.git("checkout", "-q", "--", path.name)
    shop.git("merge", "-q", "--ff-only", second.branch)
    merged = shop.run(path)
    assert (merged.code, len(shop.rows(Plan))) == (0, 2)
    assert "every item is done or skipped" in plain(merged.out)
    assert "merge it:" not in merged.out
    unticked = json.loads(path.read_text())
    unticked["features"][0]["passes"] = False
    path.write_text(json.dumps(unticked))
    shop.play({"one": [[{"write": "one", "text": "better\n"}]]})
    said = shop.run(path)
    assert said.code == 0, said.out + said.err
    assert shop.landed() == ["one"], "what was set open again, and nothing else"


def test_checks_that_are_mended_after_a_failure_are_taken_in_by_cancelling_first(shop: Workshop) -> None:
    shop.play({"one": [[{"write": "other", "text": "x\n"}]]})
    path = shop.plan("mended", [task("one", "test -s one")], settings={"max_attempts": 1})
    assert shop.run(path).code == 1
    plan = shop.row(Plan)
    begun = path.read_text()
    path.write_text(begun.replace("test -s one", "test -s other"))
    way = f"`loopwright cancel {short_id(plan.id)}`, then `loopwright run ../mended.yaml` takes the change in"
    for said in (shop.run(path), shop("retry", "one")):
        assert said.code == 2, said.out
        assert way in plain(said.err)
    path.write_text(begun)
    assert shop("cancel", plan.id).code == 0
    again = shop.run(path)
    assert (again.code, again.out.splitlines()[0]) == (3, "This plan was cancelled; --new starts it over.")
    assert shop("status", "--exit-code").code == 3


def test_checks_that_are_mended_in_a_source_that_an_agent_could_have_written_are_those_of_the_next_plan(
    shop: Workshop,
) -> None:
    path = written(shop.place / "feature_list.json", feature("one", check="test -s other"))
    shop.play({"one": [[{"write": "one", "text": "x\n"}]] * 2})
    flags = ("--allow-unverified", "--max-attempts", "1")
    assert shop.run(path, *flags).code == 1
    path.write_text(path.read_text().replace("test -s other", "test -s one"))
    plan = shop.row(Plan)
    way = f"`loopwright cancel {short_id(plan.id)}`, then"
    said = shop.run(path)
    assert said.code == 1, said.out + said.err
    assert way in plain(said.out)
    refused = shop("retry", "one")
    assert refused.code == 2
    assert way in plain(refused.err)
    assert shop.started() == [("one", 1)]
    assert shop("cancel", plan.id).code == 0
    said = shop.run(path, "--allow-unverified")
    assert "it is marked as blocked" in plain(said.out), "it was told so when it failed"
    said = shop("retry", "one", timeout=90)
    assert said.code == 0, said.out + said.err


@pytest.mark.capability("C011")
@pytest.mark.parametrize(
    "tracked", [pytest.param(False, id="in place", marks=pytest.mark.more), pytest.param(True, id="tracked")]
)
def test_a_task_that_was_put_off_is_done_once_it_is_set_to_pending(shop: Workshop, *, tracked: bool) -> None:
    """The second task is deferred when the plan begins, and pending when the user runs the source again."""
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    path = (shop.repository if tracked else shop.place) / ".taskmaster/tasks/tasks.json"
    path.parent.mkdir(parents=True)
    tasks = [
        {"id": number, "title": f"Make {number}", "status": status, "dependencies": [], "subtasks": []}
        for number, status in ((1, "pending"), (2, "deferred"))
    ]
    path.write_text(json.dumps({"master": {"tasks": tasks}}, indent=2))
    shop.git("add", "-A")
    shop.git("commit", "-qm", "the work")
    shop.play(makes("1", "2"))
    assert shop.run(path).code == 0
    shop.git("merge", "-q", "--ff-only", shop.row(Plan).branch)
    path.write_text(path.read_text().replace("deferred", "pending"))
    said = shop.run(path)
    assert said.code == 0, said.out + said.err
    assert shop.started_keys() == ["1", "2"], "what is done is not done again"
