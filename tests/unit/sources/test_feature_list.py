"""Feature lists: what is read, in which order, what is refused, and what is written back."""

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import each_case
from tests.unit.sources import laws
from tests.unit.sources.laws import AT, LATER, after, marks, refused, told
from tests.wording_plugin import Wording

from loopwright.adapters import registry
from loopwright.adapters.sources.feature_list.feature_list import FeatureListSource
from loopwright.adapters.sources.lists.item_status import NEEDS_REVIEW
from loopwright.adapters.sources.lists.work_items import MAX_ITEMS
from loopwright.adapters.sources.text.reading import recognise
from loopwright.core.values.errors import BadPlan
from loopwright.core.values.policy import GateCommand
from loopwright.ports import (
    Discovered,
    Files,
    FixTask,
    ItemProgress,
    Mark,
    PlannedTask,
    PlannedWork,
    Progress,
)

SOURCE = FeatureListSource()
DOCS = Path(__file__).parents[3] / "docs" / "reference" / "sources" / "feature-list.md"


def feature(id: str = "f1", **more: Any) -> dict[str, Any]:
    return {"id": id, "name": f"Name of {id}", "description": "What it does.", **more}


def files(*features: Any, **top: Any) -> Files:
    return {"feature_list.json": json.dumps({**top, "features": features}, indent=2).encode()}


def parse(*features: Any, **top: Any) -> PlannedWork:
    return SOURCE.parse(files(*features, **top), "here")


@pytest.mark.capability("C011", "C015")
def test_a_feature_is_read_with_everything_in_it() -> None:
    work = parse(
        feature(
            id="login",
            priority=3,
            category="security",
            complexity="high",
            tests=["`pytest -q tests/login` passes", "`Session` is kept", "no password in a log"],
            dependencies=["db", "db"],
            owner="unknown keys are somebody's",
        ),
        feature(id="db", priority=70),
        project="Shop",
    )
    assert (work.title, work.notes) == ("Shop", ())
    assert [task.key for task in work.tasks] == ["db", "login"]
    assert work.tasks[1] == PlannedTask(
        key="login",
        title="Name of login",
        description="What it does.",
        criteria=("`pytest -q tests/login` passes", "`Session` is kept", "no password in a log"),
        acceptance=(GateCommand(name="pytest -q tests/login", command="pytest -q tests/login"),),
        depends_on=("db",),
        priority=103,
        type="security",
        complexity="high",
        line=5,
    )


def test_the_file_is_recognised_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "feature_list.json"
    path.write_bytes(files(feature())["feature_list.json"])
    assert recognise(path, registry.sources()).kind == "feature_list"
    assert not SOURCE.recognises(tmp_path)


@pytest.mark.capability("C011")
def test_every_level_comes_before_the_next_however_many_there_are() -> None:
    chain = [feature("f0"), *(feature(f"f{n}", dependencies=[f"f{n - 1}"]) for n in range(1, 12))]
    urgent = feature("urgent", priority=1, dependencies=["f11"])
    usual = feature("usual", priority=50, dependencies=["f8"])
    priorities = {task.key: task.priority for task in parse(*chain, urgent, usual).tasks}
    assert (priorities["usual"], priorities["urgent"]) == (950, 1201)


@pytest.mark.capability("C011")
def test_the_order_is_by_level_then_by_priority_then_as_in_the_file() -> None:
    work = parse(
        feature("late", priority=1, dependencies=["mid"]),
        feature("mid", priority=500, dependencies=["a"]),
        feature("side", priority=501, dependencies=["a"]),
        feature("c"),
        feature("b", priority=2.5),
        feature("a", priority=-4),
        feature("d", priority="soon"),
    )
    assert [task.key for task in work.tasks] == ["a", "b", "c", "d", "mid", "side", "late"]
    assert [task.priority for task in work.tasks] == [0, 2, 99, 99, 199, 199, 201]


@pytest.mark.capability("C011")
def test_what_is_only_odd_is_said_and_not_refused(wording: Wording) -> None:
    work = parse(feature(priority="soon", complexity="huge"))
    wording(work.notes)
    assert (work.tasks[0].priority, work.tasks[0].complexity) == (99, None)


WRONG: list[tuple[Any, str]] = [
    ({}, 'here:1: expected a list, or an object with the list "features"'),
    (7, "here:1: expected a list"),
    ({"features": "none"}, "here:1: expected a list"),
    ({"features": [7]}, "here:1: features[0]: expected an object, got 7"),
    ([[]], "here:1: [0]: expected an object, got a list"),
    ({"features": [{"passes": False}]}, "features[0]: it has no title and no description"),
    ({"features": [feature(), feature()]}, 'the item "f1" is already on line 1'),
    ({"features": [feature(dependencies=["f1"])]}, "cannot depend on itself"),
    (
        {"features": [feature("a", dependencies=["b"]), feature("b", dependencies=["a"])]},
        "these items wait for each other: a -> b -> a",
    ),
]


@each_case(("document", "words"), WRONG, ids=[words[-40:] for _, words in WRONG])
@pytest.mark.capability("C004", "C011")
def test_what_is_wrong_is_refused_with_its_place(document: Any, words: str) -> None:
    problems = refused(SOURCE, {"feature_list.json": json.dumps(document).encode()})
    assert any(words in problem for problem in problems), problems
    assert all(problem.startswith("here:1: ") for problem in problems)


def test_what_has_the_wrong_shape_hides_nothing_else_that_is_wrong() -> None:
    wrong = [{"passes": False}, feature(id="a"), feature(id="a"), 7, feature(id="b", dependencies="b")]
    problems = refused(SOURCE, {"feature_list.json": json.dumps({"features": wrong}).encode()})
    said = ("it has no title", '"a" is already on line 1', "expected an object, got 7", "depend on itself")
    assert [sum(words in problem for problem in problems) for words in said] == [1, 1, 1, 1], problems
    assert len(problems) == 4


@each_case(
    ("content", "words"),
    [
        (b'{"features": [}', "here:1: this is not JSON"),
        (b'{"features": [],\n "features": []}', 'here:2: the key "features" is here a second time'),
        (b'\n\n{"features": ["\xff"]}', "here:3: this is not UTF-8"),
        (b'{"features": ' + b"[" * 2_500_000, "here:1: nested too deeply"),
        (b'{"features": [' + b"{},\n" * 1_200_000 + b"{}]}", "too many values"),
        (b'{"features": [' + b'{"id":1},' * 20_000 + b"{}]}", "a list has at most"),
    ],
)
def test_a_hostile_file_is_refused_with_its_place(content: bytes, words: str) -> None:
    problems = refused(SOURCE, {"feature_list.json": content})
    assert len(problems) <= 51
    assert any(words in problem for problem in problems)


def test_what_would_multiply_is_refused_before_it_costs_time(wording: Wording) -> None:
    looks = [feature(f"qa-{n}") for n in range(400)]
    work = [feature(f"f{n}") for n in range(400)]
    (only,) = refused(SOURCE, files(*looks, *work))
    wording(only)
    assert len(parse(*looks[:100], *work).tasks) == 500
    (only,) = refused(SOURCE, {"feature_list.json": many(MAX_ITEMS + 1)})
    assert only == f"here:{MAX_ITEMS + 2}: features: a list has at most {MAX_ITEMS} items"


def many(count: int) -> bytes:
    lines = (json.dumps(feature(f"f{n}")) for n in range(count))
    return ('{"features": [\n' + ",\n".join(lines) + "]}").encode()


def test_a_missing_file_and_one_that_is_too_large_are_said_so(tmp_path: Path) -> None:
    with pytest.raises(BadPlan, match="there is no such file"):
        SOURCE.files(tmp_path / "feature_list.json")
    (tmp_path / "feature_list.json").write_bytes(b" " * (5 * 1024 * 1024 + 1))
    with pytest.raises(BadPlan, match="larger than 5 MB"):
        SOURCE.files(tmp_path / "feature_list.json")


@each_case(
    ("more", "mark", "reason"),
    [
        ({}, Mark.OPEN, ""),
        ({"passes": None, "blocked": False}, Mark.OPEN, ""),
        ({"passes": True, "blocked": True}, Mark.DONE, ""),
        ({"blocked": True, "blocked_reason": "no key"}, Mark.BLOCKED, "no key"),
        ({"blocked": True}, Mark.BLOCKED, "blocked in the file, without a reason"),
        (
            {"blocked": True, "blocked_reason": "x", "blocked_by": ["f2"], "suggested_fix": "y"},
            Mark.BLOCKED,
            "x (blocked by: f2) (suggested fix: y)",
        ),
        ({"needs_review": True}, Mark.BLOCKED, NEEDS_REVIEW),
        ({"needs_review": True, "passes": True}, Mark.DONE, ""),
    ],
)
@pytest.mark.capability("C011")
def test_a_feature_stands_as_it_is_marked(more: dict[str, Any], mark: Mark, reason: str) -> None:
    task = parse(feature(**more)).tasks[0]
    assert (task.mark, task.reason) == (mark, reason)
    held = files(feature(**more))
    assert SOURCE.written(held, told({"f1": ItemProgress(mark=mark, reason=reason)})) == {}


@pytest.mark.capability("C011")
@pytest.mark.trap("prefix of an id")
def test_one_feature_is_not_taken_for_another_whose_id_begins_alike() -> None:
    before = files(feature("f1"), feature("f10"), feature("f100"))
    made = after(SOURCE, before, told({"f10": ItemProgress(mark=Mark.DONE)}))
    assert marks(SOURCE.parse(made, "here")) == {"f1": Mark.OPEN, "f10": Mark.DONE, "f100": Mark.OPEN}


def test_blocking_and_unblocking_leave_no_trace_but_the_word() -> None:
    before = files(feature(suggested_fix="keep me"), feature("f2"))
    blocked = after(SOURCE, before, told({"f1": ItemProgress(mark=Mark.BLOCKED, reason="why")}))
    entry = json.loads(blocked["feature_list.json"])["features"][0]
    assert (entry["blocked"], entry["blocked_reason"]) == (True, "why")
    assert entry["blocked_at"] == "2026-03-01T10:00:00Z"
    # Told again on the next day the time of the blockage stays.
    assert SOURCE.written(blocked, told({"f1": ItemProgress(mark=Mark.BLOCKED, reason="why")}, LATER)) == {}
    free = after(SOURCE, blocked, told({"f1": ItemProgress(mark=Mark.OPEN)}))
    assert json.loads(free["feature_list.json"])["features"][0] == feature(
        suggested_fix="keep me", blocked=False
    )


@pytest.mark.capability("C032")
def test_a_look_at_the_whole_is_of_its_own_type() -> None:
    work = parse(feature("qa-all"), feature("look", category="QA"), feature("aqua", category="water"))
    assert [task.type for task in work.tasks] == ["water", "qa", "qa"]


def fixed(*fixes: FixTask, **items: ItemProgress) -> Progress:
    return Progress(plan_id="plan_1", at=AT, items=items, fixes=fixes)


@pytest.mark.capability("C032")
def test_what_a_look_found_is_added_once_and_the_look_waits_for_it() -> None:
    fixes = (
        FixTask(
            key="fix-qa-1-008",
            title="Fix: Broken link (/help)",
            issue="Broken link",
            found_by="qa-1",
            severity="critical",
            priority=45,
        ),
        FixTask(key="fix-1", title="Fix what the complete gate found"),
        FixTask(key="fix-qa-9-001", title="of a look that is not in the file", found_by="qa-9"),
    )
    for needs in ([], ["f1"], None):
        before = files(feature("f1"), feature("qa-1", passes=False, dependencies=needs))
        made = after(SOURCE, before, fixed(*fixes))
        added = json.loads(made["feature_list.json"])["features"][2:]
        assert added == [
            {
                "id": "fix-qa-1-008",
                "name": "Fix: Broken link (/help)",
                "description": "Broken link",
                "category": "fix",
                "priority": 45,
                "severity": "critical",
                "qa_origin": "qa-1",
                "passes": False,
            }
        ]
        work, was = SOURCE.parse(made, "here"), SOURCE.parse(before, "here")
        assert set(work.tasks[-1].depends_on) == {"f1", "fix-qa-1-008"}  # the look is taken again after it
        assert marks(work)["qa-1"] is Mark.OPEN
        assert work.sha256 == was.sha256, "what people ask for is the same"
        done = after(SOURCE, made, fixed(*fixes, **{"fix-qa-1-008": ItemProgress(mark=Mark.DONE)}))
        assert marks(SOURCE.parse(done, "here"))["fix-qa-1-008"] is Mark.DONE


def test_a_look_that_names_nothing_waits_for_all_that_do_not_wait_for_it() -> None:
    features = [feature("qa-1"), feature("f1"), feature("f2", dependencies=["f1"])]
    features += [
        feature("later", dependencies=["qa-1"]),
        feature("last", dependencies=["later"]),
        feature("qa-2"),
    ]
    waits = {task.key: task.depends_on for task in parse(*features).tasks}
    assert (waits["qa-1"], waits["qa-2"]) == (("f1", "f2"), ("f1", "f2", "later", "last"))


keys = ["f1", "f10", "qa-1", "é", "x/../y"]
entry = st.fixed_dictionaries(
    {
        "name": st.just("n"),
        "description": st.text(laws.letters, max_size=5),
    },
    optional={
        "passes": st.sampled_from([True, False, None]),
        "blocked": st.booleans(),
        "blocked_reason": st.sampled_from(["", "why", None]),
        "needs_review": st.booleans(),
        "priority": st.one_of(
            st.integers(-5, 2000), st.floats(allow_nan=False, allow_infinity=False), st.just("no")
        ),
        "odd": st.integers(),
        "tests": st.lists(st.sampled_from(["`make`", "words"]), max_size=2),
    },
)
documents = st.dictionaries(st.sampled_from(keys), entry, min_size=1)
layouts = st.sampled_from(
    [{}, {"indent": 2}, {"indent": "\t"}, {"separators": (",", ":")}, {"ensure_ascii": False}]
)
TOLD = {Mark.RUNNING: Mark.OPEN, Mark.SKIPPED: Mark.BLOCKED}
OWNED = {"passes", "blocked", "blocked_reason", "blocked_at", "needs_review"}


def laid_out(document: dict[str, dict[str, Any]], layout: dict[str, Any], crlf: bool, mark: bool) -> Files:
    text = json.dumps({"features": [{"id": key, **inner} for key, inner in document.items()]}, **layout)
    text = text.replace("\n", "\r\n") if crlf else text
    return {"feature_list.json": (b"\xef\xbb\xbf" if mark else b"") + text.encode()}


@settings(max_examples=60, deadline=None)
@given(
    document=documents,
    progress=st.dictionaries(st.sampled_from([*keys, "gone"]), laws.items),
    layout=layouts,
    crlf=st.booleans(),
    mark=st.booleans(),
)
def test_what_was_told_is_read_again_and_nothing_else_changed(
    document: dict[str, dict[str, Any]],
    progress: dict[str, ItemProgress],
    layout: dict[str, Any],
    crlf: bool,
    mark: bool,
) -> None:
    before = laid_out(document, layout, crlf, mark)
    made = after(SOURCE, before, told(progress))
    work, was = SOURCE.parse(made, "here"), SOURCE.parse(before, "here")
    assert work.sha256 == was.sha256
    for task in work.tasks:
        item = progress.get(task.key)
        assert task.mark is (TOLD.get(item.mark, item.mark) if item else marks(was)[task.key])
    left = [
        [
            {key: value for key, value in one.items() if key not in OWNED}
            for one in json.loads(content)["features"]
        ]
        for content in (
            before["feature_list.json"].decode("utf-8-sig"),
            made["feature_list.json"].decode("utf-8-sig"),
        )
    ]
    assert left[0] == left[1]
    assert made["feature_list.json"].startswith(b"\xef\xbb\xbf") == mark
    if crlf:
        assert b"\n" not in made["feature_list.json"].replace(b"\r\n", b"")


@settings(max_examples=40, deadline=None)
@given(document=documents, edited=documents, data=st.data())
def test_a_persons_edit_between_two_writes_survives(
    document: dict[str, dict[str, Any]], edited: dict[str, dict[str, Any]], data: st.DataObject
) -> None:
    progress = told({key: data.draw(laws.items) for key in document})
    after(SOURCE, laid_out(document, {"indent": 2}, False, False), progress)
    by_hand = laid_out(edited, {"indent": 4}, False, False)
    made = json.loads(after(SOURCE, by_hand, progress)["feature_list.json"])["features"]
    assert [one["id"] for one in made] == list(edited)
    for one in made:
        theirs = {key: value for key, value in edited[one["id"]].items() if key not in OWNED}
        assert theirs == {key: value for key, value in one.items() if key not in {*OWNED, "id"}}
        if one["id"] not in document:
            assert one == {"id": one["id"], **edited[one["id"]]}


@settings(max_examples=40, deadline=None)
@given(
    document=documents, key=st.sampled_from([*OWNED, "id", "dependencies", "tests", "odd"]), data=st.data()
)
@pytest.mark.capability("C004")
def test_any_value_replaced_is_work_or_a_located_refusal(
    document: dict[str, dict[str, Any]], key: str, data: st.DataObject
) -> None:
    anything = st.one_of(
        st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.just([{}]), st.just({"a": 1})
    )
    entries = [{"id": name, **inner} for name, inner in document.items()]
    data.draw(st.sampled_from(entries))[key] = data.draw(anything)
    content = json.dumps({"features": entries}).encode()
    laws.work_or_refusal(SOURCE, {"feature_list.json": content})
    with contextlib.suppress(BadPlan):  # such as for a character that no file may have
        SOURCE.written({"feature_list.json": content}, told({"f1": ItemProgress(mark=Mark.DONE)}, AT))


def test_the_sample_in_the_documentation_is_read() -> None:
    section = DOCS.read_text(encoding="utf-8")
    sample = section.split("```json\n")[1].split("```")[0]
    work = SOURCE.parse({"feature_list.json": sample.encode()}, "feature_list.json")
    assert [(task.key, task.mark) for task in work.tasks] == [
        ("models", Mark.DONE),
        ("checkout", Mark.OPEN),
        ("qa-1", Mark.BLOCKED),
    ]


def test_a_key_that_is_nearly_one_of_ours_is_told(wording: Wording) -> None:
    work = parse(feature(dependancies=["x"], owner="me", test=["a"], tests=["b"]))
    [note] = work.notes
    wording(note)


# --- what agents came upon -----------------------------------------------------------------------------


def came_upon(*found: Discovered, **items: ItemProgress) -> Progress:
    return replace(told(items), discovered=found)


CLOCK = Discovered(title="Mend the clock", reason="It is late.", recommendation="current", by="f1")


@pytest.mark.capability("C040")
def test_what_agents_come_upon_needs_a_review_and_is_no_task_before_it_had_one() -> None:
    before = files(feature("f1"), feature("qa-1", category="qa"))
    twice = (CLOCK, replace(CLOCK, title="mend  the Clock", by="f2"), replace(CLOCK, title="Name of F1"))
    made = after(SOURCE, before, came_upon(*twice))
    *theirs, found = json.loads(made["feature_list.json"])["features"]
    assert [one["id"] for one in theirs] == ["f1", "qa-1"], "what the list has already is not added"
    assert found == {
        "id": found["id"],
        "name": "Mend the clock",
        "description": "It is late. (found in f1; recommended: add it to this list)",
        "category": "discovered",
        "needs_review": True,
        "passes": False,
    }
    work, was = SOURCE.parse(made, "here"), SOURCE.parse(before, "here")
    assert (work.tasks, work.sha256) == (was.tasks, was.sha256)
    accepted = {**found, "needs_review": False}
    later = SOURCE.parse(files(*theirs, accepted), "here")
    assert marks(later)[found["id"]] is Mark.OPEN, "who takes the review back has taken it in"
    assert later.sha256 != was.sha256
    assert SOURCE.written(files(*theirs, accepted), came_upon(*twice)) == {}, "it is theirs now"


@pytest.mark.capability("C040")
def test_what_became_of_discovered_work_stands_beside_it(wording: Wording) -> None:
    given = after(SOURCE, files(feature("f1")), came_upon(CLOCK))
    hash_ = SOURCE.parse(given, "here").sha256

    def stands(now: Files, mark: Mark, task: str = "mend-the-clock") -> tuple[Files, dict[str, Any]]:
        made = after(SOURCE, now, came_upon(replace(CLOCK, mark=mark, task=task)))
        assert SOURCE.parse(made, "here").sha256 == hash_
        return made, json.loads(made["feature_list.json"])["features"][-1]

    unwanted, one = stands(given, Mark.SKIPPED, task="")
    assert (one["blocked"], one["needs_review"]) == (True, True)
    wording(one["blocked_reason"])
    wanted, one = stands(unwanted, Mark.RUNNING)
    assert (one["blocked"], one.get("blocked_reason"), one["needs_review"]) == (False, None, True)
    done, one = stands(wanted, Mark.DONE)
    assert (one["passes"], one["needs_review"]) == (True, True), "it is no task of the list even now"
    _, one = stands(done, Mark.OPEN)
    assert (one["passes"], one["needs_review"]) == (False, True)
    decided = came_upon(replace(CLOCK, mark=Mark.SKIPPED))
    assert SOURCE.written(files(feature("f1")), decided) == {}, "what was decided before is not added"
