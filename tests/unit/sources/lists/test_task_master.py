"""Task Master's tasks.json: tags, subtasks, dependencies, and the status of a task with that of its subtasks."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.sources import laws
from tests.unit.sources.laws import after, marks, refused, told
from tests.wording_plugin import Wording

from loopwright.adapters import registry
from loopwright.adapters.sources.task_master.task_master import TaskMasterSource
from loopwright.adapters.sources.text.reading import read, recognise
from loopwright.ports import Files, ItemProgress, Mark

SOURCE = TaskMasterSource()


def task(id: Any, status: str = "pending", **more: Any) -> dict[str, Any]:
    return {"id": id, "title": f"Task {id}", "description": "d", "status": status, "dependencies": [], **more}


def files(document: Any, state: Any = None, **layout: Any) -> Files:
    found = {"tasks.json": json.dumps(document, **layout).encode()}
    return found if state is None else {**found, "../state.json": json.dumps(state).encode()}


@pytest.mark.capability("C015")
def test_a_task_is_read_with_everything_in_it() -> None:
    given = task(
        2,
        details="Use SQL.",
        testStrategy="`make test` passes",
        priority="high",
        dependencies=[1, "1.2"],
        subtasks=[
            {"id": 1, "title": "Schema", "description": "Tables", "status": "done", "dependencies": []}
        ],
    )
    one, two = SOURCE.parse(files({"master": {"tasks": [task(1, "done"), given]}}), "tasks.json").tasks
    assert (one.mark, two.key, two.depends_on, two.priority) == (Mark.DONE, "2", ("1",), 25)
    assert two.description == "d\n\nUse SQL.\n\nSubtasks:\n\n- 2.1 Schema (done: leave it)\n  Tables"
    assert [gate.command for gate in two.acceptance] == ["make test"]


def test_the_current_tag_is_read_and_the_others_are_named(wording: Wording) -> None:
    document = {
        "master": {"tasks": [task(1)], "metadata": {"description": "Tasks for master context"}},
        "feature": {"tasks": [task(1, "done"), task(2)]},
        "old": {"tasks": [task(9, "done")]},
    }
    work = SOURCE.parse(files(document), "tasks.json")
    assert (work.title, marks(work)) == ("Tasks of master", {"1": Mark.OPEN})
    (note,) = work.notes
    wording(note)
    assert "old" not in note
    held = files(document, {"currentTag": "feature"})
    switched = SOURCE.parse(held, "tasks.json")
    assert (switched.part, marks(switched)) == ("feature", {"feature:1": Mark.DONE, "feature:2": Mark.OPEN})
    done = ItemProgress(mark=Mark.DONE)
    made = after(SOURCE, held, told({"feature:1": done, "feature:2": done}))
    now = json.loads(made["tasks.json"])
    assert now["master"] == document["master"]
    assert now["feature"]["tasks"][1]["status"] == "done"
    assert SOURCE.status_files(held) == ("tasks.json",)
    # A plan of another tag than the current one writes to its own tag alone.
    now = json.loads(after(SOURCE, held, told({"1": done}))["tasks.json"])
    assert now["master"]["tasks"][0]["status"] == "done"
    assert now["feature"] == document["feature"]


def test_a_done_task_has_no_open_subtask() -> None:
    subtasks = [
        {"id": n, "title": "s", "status": one} for n, one in ((1, "pending"), (2, "cancelled"), (3, "done"))
    ]
    before = files({"tasks": [task(1, subtasks=subtasks), task(2, subtasks=subtasks)]}, indent=2)
    made = after(
        SOURCE, before, told({"1": ItemProgress(mark=Mark.DONE), "2": ItemProgress(mark=Mark.RUNNING)})
    )
    one, two = json.loads(made["tasks.json"])["tasks"]
    assert (one["status"], [each["status"] for each in one["subtasks"]]) == (
        "done",
        ["done", "cancelled", "done"],
    )
    assert (two["status"], two["subtasks"]) == ("in-progress", subtasks)


def test_folder_and_file_are_recognised_and_other_files_are_not(tmp_path: Path) -> None:
    folder = tmp_path / ".taskmaster"
    (folder / "tasks").mkdir(parents=True)
    place = folder / "tasks" / "tasks.json"
    place.write_bytes(files({"tag": {"tasks": [task(1)]}})["tasks.json"])
    (folder / "state.json").write_text('{"currentTag": "gone"}')
    for one in (folder, place):
        assert recognise(one, registry.sources()).kind == "task_master"
        work = read(SOURCE, one)
        assert marks(work) == {"tag:1": Mark.OPEN}
        assert any('state.json names the tag "gone"' in note for note in work.notes)
    (tmp_path / "tasks.json").write_text(
        '{"version": "2.0.0", "tasks": [{"label": "build", "type": "shell"}]}'
    )
    assert not SOURCE.recognises(tmp_path / "tasks.json")
    assert not SOURCE.recognises(tmp_path)


@pytest.mark.capability("C004")
def test_what_is_wrong_is_located() -> None:
    for content, words in (
        (b"{", "tasks.json:1: this is not JSON"),
        (b'{"a": 1}', "tasks.json:1: expected an object with tasks, or one with a tag"),
        (b'{"tasks": [\n1]}', "tasks.json:2: tasks[0]: expected an object, got 1"),
    ):
        assert refused(SOURCE, {"tasks.json": content}, "tasks.json")[0].startswith(words)


STATUSES = ["pending", "in-progress", "done", "review", "deferred", "cancelled", "blocked"]
entry = st.fixed_dictionaries(
    {"title": st.sampled_from(["A", "é"]), "status": st.sampled_from(STATUSES)},
    optional={
        "own": st.integers(),
        "details": st.text(laws.letters, max_size=3),
        "priority": st.sampled_from(["low"]),
    },
)
tasks = st.dictionaries(st.sampled_from([1, 2, 10]), entry, min_size=1)
OWNED = {"status", "blocked_reason"}


def unowned(held: Files) -> list[dict[str, Any]]:
    entries = json.loads(held["tasks.json"])["master"]["tasks"]
    return [{key: value for key, value in one.items() if key not in OWNED} for one in entries]


@settings(max_examples=60, deadline=None)
@given(
    given_tasks=tasks,
    edited=tasks,
    progress=st.dictionaries(st.sampled_from(["1", "2", "10", "gone"]), laws.items),
    layout=st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}]),
)
def test_what_was_written_is_read_again_and_edits_survive(
    given_tasks: dict[int, Any],
    edited: dict[int, Any],
    progress: dict[str, ItemProgress],
    layout: dict[str, Any],
) -> None:
    for now in (given_tasks, edited):
        before = files({"master": {"tasks": [{"id": key, **one} for key, one in now.items()]}}, **layout)
        made = after(SOURCE, before, told(progress))
        work, was = SOURCE.parse(made, "here"), SOURCE.parse(before, "here")
        assert work.sha256 == was.sha256
        for one in work.tasks:
            assert one.mark is (progress[one.key].mark if one.key in progress else marks(was)[one.key])
        assert unowned(made) == unowned(before)


def test_a_deferred_task_is_skipped_with_a_note_and_stays_as_it_is(wording: Wording) -> None:
    held = files({"master": {"tasks": [task(1), task(2, "deferred")]}})
    work = SOURCE.parse(held, "tasks.json")
    assert marks(work) == {"1": Mark.OPEN, "2": Mark.SKIPPED}
    (note,) = work.notes
    wording(note)
    progress = {"1": ItemProgress(mark=Mark.DONE), "2": ItemProgress(mark=Mark.SKIPPED)}
    made = after(SOURCE, held, told(progress))
    assert [one["status"] for one in json.loads(made["tasks.json"])["master"]["tasks"]] == [
        "done",
        "deferred",
    ]


def test_subtasks_that_are_settled_are_named_and_keep_their_status() -> None:
    statuses = ["pending", "done", "cancelled", "deferred"]
    subtasks = [{"id": n, "title": f"Part {n}", "status": one} for n, one in enumerate(statuses, start=1)]
    held = files({"master": {"tasks": [task(1, subtasks=subtasks)]}})
    work = SOURCE.parse(held, "tasks.json")
    assert work.tasks[0].description.splitlines()[-4:] == [
        "- 1.1 Part 1",
        "- 1.2 Part 2 (done: leave it)",
        "- 1.3 Part 3 (cancelled: leave it)",
        "- 1.4 Part 4 (deferred: leave it)",
    ]
    made = after(SOURCE, held, told({"1": ItemProgress(mark=Mark.DONE)}))
    (one,) = json.loads(made["tasks.json"])["master"]["tasks"]
    assert [part["status"] for part in one["subtasks"]] == ["done", "done", "cancelled", "deferred"]
    assert SOURCE.parse(made, "tasks.json").sha256 == work.sha256
