"""Work lists in JSON as projects keep them: the same work in other keys, and status in the list's own words."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import each_case
from tests.unit.sources import laws
from tests.unit.sources.laws import after, marks, refused, told, work_or_refusal
from tests.wording_plugin import Wording

from loopwright.adapters import registry
from loopwright.adapters.sources.feature_list.feature_list import FeatureListSource
from loopwright.adapters.sources.lists.status_words import StatusWords, mark_of
from loopwright.adapters.sources.prd_json.prd_json import PrdJsonSource
from loopwright.adapters.sources.text.reading import recognise
from loopwright.ports import Files, ItemProgress, Mark, PlannedWork, Source

LIST, PRD = FeatureListSource(), PrdJsonSource()
DOCS = Path(__file__).parents[4] / "docs/reference/sources"


def files(document: Any, **layout: Any) -> Files:
    return {"list.json": json.dumps(document, **layout).encode()}


def parse(document: Any, source: Source = LIST) -> PlannedWork:
    return source.parse(files(document, indent=1), "here")


def entries(content: Files) -> list[dict[str, Any]]:
    document = json.loads(content["list.json"])
    return (
        document
        if isinstance(document, list)
        else next(one for one in document.values() if isinstance(one, list))
    )


PUBLISHED = [
    {
        "category": "functional",
        "description": "New chat works",
        "steps": ["Click it", "See it"],
        "passes": False,
    },
    {"category": "style", "description": "The page is blue. It stays so.", "steps": [], "passes": True},
]
STORIES = {
    "project": "Shop",
    "branchName": "ralph/cart",
    "description": "A cart for the shop",
    "userStories": [
        {
            "id": "US-002",
            "title": "Pay",
            "acceptanceCriteria": ["`make test` passes"],
            "priority": 2,
            "passes": False,
        },
        {
            "id": "US-001",
            "title": "Cart",
            "description": "As a user",
            "priority": 1,
            "passes": False,
            "notes": "mind",
        },
        {"id": "US-003", "title": "Ship", "priority": 3, "passes": True},
    ],
}


@pytest.mark.capability("C011")
def test_the_published_form_without_ids_is_read_and_ticked() -> None:
    work = parse(PUBLISHED)
    assert marks(work) == {"new-chat-works": Mark.OPEN, "the-page-is-blue": Mark.DONE}
    first, second = work.tasks
    assert (first.title, first.criteria, first.type) == (
        "New chat works",
        ("Click it", "See it"),
        "functional",
    )
    assert (second.title, second.description) == ("The page is blue.", "The page is blue. It stays so.")
    before = files(PUBLISHED, indent=2)
    made = after(LIST, before, told({"new-chat-works": ItemProgress(mark=Mark.DONE)}))
    assert made["list.json"] == before["list.json"].replace(b'"passes": false', b'"passes": true')


def test_stories_follow_each_other_by_priority() -> None:
    work = parse(STORIES, PRD)
    assert (work.title, work.context) == ("Shop", "A cart for the shop")
    assert [(task.key, task.after) for task in work.tasks] == [
        ("US-001", ()),
        ("US-002", ("US-001",)),
        ("US-003", ("US-002",)),
    ]
    assert work.tasks[0].description == "As a user\n\nmind"
    assert [gate.command for gate in work.tasks[1].acceptance] == ["make test"]


@each_case(
    ("document", "kind"),
    [
        ({"userStories": []}, "prd_json"),
        ({"master": {"tasks": [{"id": 1, "title": "a", "testStrategy": ""}]}}, "task_master"),
        ({"issues": [{"id": 1, "title": "a"}]}, "issues_json"),
    ],
)
def test_a_list_is_recognised_by_what_is_in_it(tmp_path: Path, document: Any, kind: str) -> None:
    place = tmp_path / ("tasks.json" if kind == "task_master" else "work.json")
    place.write_text(json.dumps(document))
    assert recognise(place, registry.sources()).kind == kind
    place.write_text(json.dumps(document), encoding="utf-16")
    assert recognise(place, registry.sources()).kind == kind


@each_case(
    ("more", "mark"),
    [
        ({"status": "completed"}, Mark.DONE),
        ({"status": "Passing"}, Mark.DONE),
        ({"status": "✅ Done"}, Mark.DONE),
        ({"state": "verified"}, Mark.DONE),
        ({"complete": True}, Mark.DONE),
        ({"passes": "true"}, Mark.DONE),
        ({"passes": True, "status": "pending"}, Mark.DONE),
        ({"passes": False, "status": "done"}, Mark.BLOCKED),
        ({"status": "not_started"}, Mark.OPEN),
        ({"status": "inProgress"}, Mark.RUNNING),
        ({"started": True, "complete": False}, Mark.RUNNING),
        ({"status": "in-review"}, Mark.BLOCKED),
        ({"status": "wont-do"}, Mark.SKIPPED),
        ({"status": "quux"}, Mark.BLOCKED),
        ({"status": None}, Mark.OPEN),
    ],
)
def test_a_status_is_understood_in_other_words(more: dict[str, Any], mark: Mark) -> None:
    document = [{"id": 1, "title": "a", **more}]
    (task,) = parse(document).tasks
    assert task.mark is mark
    item = ItemProgress(mark=mark, reason=task.reason)
    assert LIST.written(files(document), told({"1": item})) == {}, "it says so already"


@each_case(
    ("given", "mark", "wanted"),
    [
        ([{"status": "passing"}, {"status": "not_started"}], Mark.DONE, "passing"),
        ([{"status": "DONE"}, {"status": "TODO"}], Mark.DONE, "DONE"),
        ([{"status": "Done"}, {"status": "To Do"}], Mark.RUNNING, "In progress"),
        ([{"status": "pending"}, {"status": "in-progress"}], Mark.OPEN, "pending"),
        ([{"status": "open"}, {"status": "open"}], Mark.SKIPPED, "cancelled"),
        ([{"status": "open"}, {"status": "open"}], Mark.BLOCKED, "blocked"),
    ],
)
def test_a_status_is_written_as_the_list_spells_it(given: list[Any], mark: Mark, wanted: str) -> None:
    before = files([{"id": n, "title": f"t{n}", **one} for n, one in enumerate(given, 1)], indent=2)
    made = after(LIST, before, told({"2": ItemProgress(mark=mark, reason="why")}))
    assert entries(made)[1]["status"] == wanted
    assert marks(LIST.parse(made, "here"))["2"] is mark
    assert entries(made)[0] == entries(before)[0]


def test_a_legend_names_the_word_that_no_item_has_yet() -> None:
    document = {
        "status_legend": {"not_started": "", "passing": ""},
        "features": [{"id": 1, "title": "a", "status": "not_started"}],
    }
    made = after(LIST, files(document), told({"1": ItemProgress(mark=Mark.DONE)}))
    assert entries(made)[0]["status"] == "passing"


def test_a_blocked_item_keeps_its_reason_and_loses_it_again() -> None:
    camel = [{"id": 1, "title": "a", "acceptanceCriteria": [], "status": "open"}]
    blocked = after(LIST, files(camel), told({"1": ItemProgress(mark=Mark.BLOCKED, reason="no key")}))
    assert entries(blocked)[0] == {**camel[0], "status": "blocked", "blockedReason": "no key"}
    assert LIST.parse(blocked, "here").tasks[0].reason == "no key"
    assert entries(after(LIST, blocked, told({"1": ItemProgress(mark=Mark.OPEN)})))[0]["status"] == "pending"
    always = [{"id": n, "title": f"t{n}", "status": "open", "blocked_reason": ""} for n in (1, 2)]
    one = after(LIST, files(always), told({"1": ItemProgress(mark=Mark.BLOCKED, reason="no key")}))
    free = after(LIST, one, told({"1": ItemProgress(mark=Mark.OPEN)}))
    assert entries(free) == always


@pytest.mark.trap("unknown dependency")
def test_dependencies_are_named_by_id_or_title_and_an_unknown_one_is_said() -> None:
    work = parse(
        [
            {"id": 1, "title": "Models"},
            {"id": "2", "title": "View", "depends_on": [1]},
            {"id": 3, "title": "Docs", "dependsOn": "models, 2"},
            {"id": 4, "title": "Rest", "dependencies": ["none", "9"]},
        ]
    )
    assert {task.key: task.depends_on for task in work.tasks} == {
        "1": (),
        "2": ("1",),
        "3": ("1", "2"),
        "4": (),
    }
    assert any('[3].dependencies: no item is called "9"' in note for note in work.notes)


def test_a_repeated_id_is_told_apart_by_the_title(wording: Wording) -> None:
    work = parse(
        [{"id": 1, "title": "A"}, {"id": 1, "title": "B"}, {"id": 2, "title": "C", "dependencies": [1]}]
    )
    assert [task.key for task in work.tasks] == ["1-a", "1-b", "2"]
    assert work.tasks[-1].depends_on == ("1-a", "1-b")
    wording(work.notes[0])


def test_items_without_an_id_that_are_called_alike_are_told_apart_by_their_steps(wording: Wording) -> None:
    document = [{"description": "Save", "steps": [step], "passes": False} for step in ("a draft", "a post")]
    first, second = (task.key for task in parse(document).tasks)
    assert first != second
    made = after(LIST, files(document), told({second: ItemProgress(mark=Mark.DONE)}))
    assert [one["passes"] for one in entries(made)] == [False, True]
    assert [task.key for task in parse(document[1:] + document[:1]).tasks] == [second, first]
    (problem,) = refused(LIST, files([document[0], document[0]], indent=1))
    wording(problem)


def test_groups_and_named_items_are_read() -> None:
    grouped = {
        "phases": [{"name": "One", "tasks": [{"id": "a", "title": "A"}]}, {"name": "Two", "tasks": []}]
    }
    (task,) = parse(grouped, PRD).tasks
    assert (task.key, task.phase) == ("a", "One")
    keyed = {"features": {"login": {"title": "Login", "status": "done"}}}
    assert marks(parse(keyed)) == {"login": Mark.DONE}
    made = after(LIST, files(keyed), told({"login": ItemProgress(mark=Mark.OPEN)}))
    assert json.loads(made["list.json"])["features"]["login"]["status"] == "pending"


@each_case("document", [[], {"features": []}, {"features": {}}, {"userStories": []}])
def test_an_empty_list_has_nothing_to_do(document: Any) -> None:
    for source in (LIST, PRD):
        work = parse(document, source)
        assert work.tasks == ()
        assert "the list is empty" in work.notes[0]


def test_an_object_of_items_or_of_lists_is_read() -> None:
    numbered = {"0": {"id": "A", "title": "a", "status": "passing"}, "1": {"title": "b", "status": "backlog"}}
    assert marks(parse(numbered)) == {"A": Mark.DONE, "1": Mark.OPEN}
    by_area = parse({"features": {"auth": [{"id": 1, "title": "a", "passes": False}], "ui": []}})
    assert [(task.key, task.phase) for task in by_area.tasks] == [("1", "auth")]
    phases = parse(
        {"title": "T", "phases": [{"name": "One", "goal": "g"}, {"name": "Two", "status": "done"}]}, PRD
    )
    assert list(marks(phases).values()) == [Mark.OPEN, Mark.DONE]


def test_a_near_miss_is_noted_once_and_an_unknown_key_never(wording: Wording) -> None:
    work = parse([{"id": n, "title": f"t{n}", "dependson": [], "x-owner": 1} for n in range(3)])
    assert len(work.notes) == 1
    wording(work.notes[0])


@each_case(
    ("document", "words"),
    [
        ({"other": 1}, 'here:1: expected a list, or an object with the list "userStories"'),
        ([1], "here:2: [0]: expected an object, got 1"),
        ([{}], "here:2: [0]: it has no title and no description"),
        (
            [{"id": 1, "title": "a", "dependencies": [2]}, {"id": 2, "title": "b", "dependencies": [1]}],
            "wait for each other",
        ),
    ],
)
@pytest.mark.capability("C004")
def test_what_cannot_be_understood_is_refused_with_its_place(document: Any, words: str) -> None:
    problems = refused(PRD, files(document, indent=1))
    assert any(words in problem for problem in problems), problems


@each_case(
    ("page", "kind", "wanted"),
    [
        ("prd-json.md", "prd_json", {"US-001": Mark.DONE, "US-002": Mark.OPEN}),
        ("task-master.md", "task_master", {"1": Mark.DONE, "2": Mark.OPEN}),
    ],
)
def test_the_samples_in_the_documentation_are_read(page: str, kind: str, wanted: dict[str, Mark]) -> None:
    text = (DOCS / page).read_text(encoding="utf-8").split("```json\n")[1].split("```")[0]
    work = registry.source(kind).parse({"tasks.json": text.encode()}, "tasks.json")
    assert (marks(work), work.notes) == (wanted, ())


@each_case(
    ("document", "words"),
    [
        ({"userStories": []}, "a Ralph prd.json; run it with `--source prd_json`"),
        ({"features": []}, "a feature list; run it"),
        ([{"number": 1, "title": "a"}], "a list of issues"),
        ([{"description": "a", "passes": False}], "a feature list"),
        ({"tag": {"tasks": [{"id": 1, "subtasks": [], "dependencies": []}]}}, "a Task Master tasks.json"),
        ({"version": "2", "tasks": [{"label": "build", "type": "shell"}]}, "a tasks.json of VS Code"),
        ({"name": "a", "version": "1", "scripts": {}}, "a package.json"),
    ],
)
def test_a_foreign_file_that_is_read_as_a_plan_is_named(document: Any, words: str, wording: Wording) -> None:
    (problem,) = refused(registry.source("yaml"), {"work.json": json.dumps(document).encode()}, "work.json")
    wording(problem)


def test_every_known_word_is_spelled_as_it_is_compared() -> None:
    assert mark_of("x" * 200) is None
    for mark in Mark:
        assert mark_of(StatusWords(["to do", "in progress"]).word(mark)) is mark
        assert mark_of(StatusWords([]).word(mark)) is mark


keys = ["1", "US-2", "c"]
STATUSES = ["pending", "done", "in-progress", "blocked", "cancelled", "odd", None]
item = st.fixed_dictionaries(
    {"title": st.sampled_from(["A", "B", "Ü"])},
    optional={
        "passes": st.sampled_from([True, False, None]),
        "status": st.sampled_from(STATUSES),
        "blocked": st.booleans(),
        "blocked_reason": st.sampled_from(["", "why"]),
        "acceptanceCriteria": st.lists(st.sampled_from(["`make`", "words"]), max_size=2),
        "own": st.integers(),
    },
)
OWNED = {"passes", "status", "blocked", "blocked_reason", "blockedReason", "blocked_at", "needs_review"}


@settings(max_examples=80, deadline=None)
@given(
    document=st.dictionaries(st.sampled_from(keys), item, min_size=1),
    progress=st.dictionaries(st.sampled_from([*keys, "gone"]), laws.items),
    edited=st.dictionaries(st.sampled_from(keys), item, min_size=1),
    layout=st.sampled_from([{}, {"indent": 2}, {"indent": "\t"}, {"separators": (",", ":")}]),
)
def test_what_was_written_is_read_again_and_edits_between_two_writes_survive(
    document: dict[str, Any],
    progress: dict[str, ItemProgress],
    edited: dict[str, Any],
    layout: dict[str, Any],
) -> None:
    for now in (document, edited):
        before = files({"userStories": [{"id": key, **one} for key, one in now.items()]}, **layout)
        made = after(PRD, before, told(progress))
        work, was = PRD.parse(made, "here"), PRD.parse(before, "here")
        assert work.sha256 == was.sha256
        for task in work.tasks:
            wanted = progress[task.key].mark if task.key in progress else marks(was)[task.key]
            without_word = {wanted, task.mark} <= {Mark.RUNNING, Mark.OPEN} or wanted is Mark.SKIPPED
            assert task.mark is wanted or (without_word and task.mark in (Mark.OPEN, Mark.BLOCKED))
        left = [
            [{k: v for k, v in one.items() if k not in OWNED} for one in entries(each)]
            for each in (before, made)
        ]
        assert left[0] == left[1]
        for one in entries(made):
            if one["id"] not in progress:
                assert one == {"id": one["id"], **now[one["id"]]}


@settings(max_examples=60, deadline=None)
@given(
    key=st.sampled_from(["id", "title", "status", "passes", "dependencies", "priority", "steps"]),
    data=st.data(),
)
def test_any_value_is_work_or_a_located_refusal(key: str, data: st.DataObject) -> None:
    anything = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=3),
        st.just([{}]),
        st.just({"a": [1]}),
    )
    document = [{"id": "a", "title": "A"}, {"id": "b", "title": "B", key: data.draw(anything)}]
    content = files(document)
    for source in (LIST, PRD):
        work = work_or_refusal(source, content)
        if work is not None:
            source.written(content, told({task.key: ItemProgress(mark=Mark.DONE) for task in work.tasks}))
