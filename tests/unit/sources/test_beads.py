"""Issues of a beads tracker: read from its file, written back line by line, or told through its own program."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import each_case
from tests.fakes import fake_bd
from tests.refusals import raises_code
from tests.unit.sources import laws
from tests.unit.sources.laws import AT, after, marks, refused, told
from tests.wording_plugin import Wording

from loopwright.adapters import registry
from loopwright.adapters.sources.beads.bd import Bd, tell
from loopwright.adapters.sources.beads.beads import BeadsSource
from loopwright.adapters.sources.text.reading import recognise
from loopwright.core.values.errors import BadPlan, Refused
from loopwright.core.values.policy import GateCommand
from loopwright.ports import Discovered, Files, ItemProgress, Mark, PlannedTask, Progress

SOURCE = BeadsSource()
DOCS = Path(__file__).parents[3] / "docs" / "reference" / "sources" / "beads.md"


def issue(id: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "title": f"Title of {id}", "status": "open", **more}


def needs(key: str, kind: str = "blocks") -> dict[str, str]:
    return {"issue_id": "x", "depends_on_id": key, "type": kind, "created_at": "2026-01-01T00:00:00Z"}


def files(*issues: Any) -> Files:
    return {"issues.jsonl": "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in issues).encode()}


def edges(*issues: Any) -> dict[str, tuple[str, ...]]:
    return {task.key: task.depends_on for task in SOURCE.parse(files(*issues), "x").tasks}


@pytest.mark.capability("C012", "C015")
def test_an_issue_is_read_with_everything_in_it() -> None:
    held = files(
        issue("bd-1", status="closed", closed_at="2026-01-01T00:00:00Z"),
        issue(
            "bd-2",
            description="What.",
            design="How.",
            acceptance_criteria="- [ ] `make test` passes\n* quick\n\n3. `Name` stays",
            notes="mine",
            priority=0,
            issue_type="bug",
            dependencies=[needs("bd-1"), needs("bd-1", "discovered-from")],
            labels=["unknown keys are somebody's"],
        ),
    )
    assert SOURCE.parse(held, ".beads").tasks[1] == PlannedTask(
        key="bd-2",
        title="Title of bd-2",
        description="What.\n\nHow.\n\nmine\n\nFound while working on bd-1.",
        criteria=("`make test` passes", "quick", "`Name` stays"),
        acceptance=(GateCommand(name="make test", command="make test"),),
        depends_on=("bd-1",),
        priority=0,
        type="bug",
        line=2,
    )


def test_the_place_is_the_folder_or_its_file(tmp_path: Path) -> None:
    folder = tmp_path / ".beads"
    folder.mkdir()
    assert not SOURCE.recognises(folder)
    (folder / "issues.jsonl").write_bytes(files(issue("bd-1"))["issues.jsonl"])
    for place in (folder, folder / "issues.jsonl"):
        assert recognise(place, registry.sources()).kind == "beads"
        assert list(SOURCE.files(place)) == ["issues.jsonl"]


@each_case(
    ("status", "mark", "reason"),
    [
        ("open", Mark.OPEN, ""),
        ("in_progress", Mark.RUNNING, ""),
        ("hooked", Mark.RUNNING, ""),
        ("closed", Mark.DONE, ""),
        ("blocked", Mark.BLOCKED, "blocked in the file, without a reason"),
        ("deferred", Mark.BLOCKED, "it is deferred"),
    ],
)
def test_the_trackers_statuses_are_known(status: str, mark: Mark, reason: str) -> None:
    task = SOURCE.parse(files(issue("bd-1", status=status)), "x").tasks[0]
    assert (task.mark, task.reason) == (mark, reason)


@pytest.mark.capability("C012")
def test_what_waits_for_what() -> None:
    assert edges(issue("a"), issue("b", dependencies=[needs("a"), needs("a")])) == {"a": (), "b": ("a",)}
    # What was deleted keeps nobody waiting; what is only related never does.
    gone = issue("gone", status="tombstone")
    assert edges(gone, issue("b", dependencies=[needs("gone"), needs("b2", "related")])) == {"b": ()}


def test_an_issue_that_is_not_there_is_noted_once_and_holds_nothing_up(wording: Wording) -> None:
    held = files(
        issue("a", dependencies=[needs("zz"), needs("yy")]),
        issue(
            "b",
            dependencies=[needs("zz"), {"depends_on_id": "a"}, needs("a", "thread"), needs("b1", "thread")],
        ),
        issue("e", issue_type="epic"),
    )
    work = SOURCE.parse(held, "x")
    assert {task.key: task.depends_on for task in work.tasks} == {"a": (), "b": ("a",)}
    wording([note.partition(": ")[2] for note in work.notes])


def test_the_file_of_an_older_tracker_is_found(tmp_path: Path) -> None:
    (tmp_path / ".beads").mkdir()
    (tmp_path / ".beads/beads.jsonl").write_bytes(files(issue("a"))["issues.jsonl"])
    for place in (tmp_path / ".beads", tmp_path / ".beads/beads.jsonl"):
        assert SOURCE.recognises(place)
        made = after(SOURCE, SOURCE.files(place), told({"a": ItemProgress(mark=Mark.DONE)}))
        assert marks(SOURCE.parse(made, ".beads")) == {"a": Mark.DONE}
    assert not SOURCE.recognises(tmp_path / "beads.jsonl")


def test_an_epic_is_a_container() -> None:
    found = edges(
        issue("first"),
        issue("epic", issue_type="epic", dependencies=[needs("first")]),
        issue("inner", issue_type="epic", dependencies=[needs("epic", "parent-child")]),
        issue("c1", dependencies=[needs("epic", "parent-child")]),
        issue("c2", dependencies=[needs("inner", "parent-child"), needs("c1")]),
        issue("last", dependencies=[needs("epic")]),
        issue("alone", issue_type="epic"),
    )
    assert found == {
        "first": (),
        "c1": ("first",),
        "c2": ("c1", "first"),
        "last": ("c1", "c2"),
    }


OWN_CHILD = files(
    issue("e", issue_type="epic", dependencies=[needs("c")]),
    issue("c", dependencies=[needs("e", "parent-child")]),
)
WRONG: list[tuple[bytes, str]] = [
    (b'{"id": "a", "title": "t"}\n{"id": "b"', "x/issues.jsonl:2: this is not JSON"),
    (b"[]\n", "x/issues.jsonl:1: expected an object"),
    (
        b'\n\n{"id": "a", "title": "t", "status": 7}',
        "x/issues.jsonl:3: status: expected a text",
    ),
    (b'{"id": "a", "title": "t", "priority": 9}', "priority: expected 0 to 4"),
    (b'{"id": "a"}', "title: missing"),
    (b'{"id": "a", "title": "t"}\n{"id": "a", "title": "u"}', '"a" is already on line 1'),
    (b'{"id": "a", "id": "b"}', "a second time"),
    (
        files(issue("a", dependencies=[needs("b")]), issue("b", dependencies=[needs("a")]))["issues.jsonl"],
        "wait for",
    ),
    (
        files(
            issue("e", issue_type="epic", dependencies=[needs("c")]),
            issue("c", dependencies=[needs("e", "parent-child")]),
        )["issues.jsonl"],
        "cannot depend on itself",
    ),
    (b'{"id": "\xff"}', "x/issues.jsonl:1: this is not UTF-8"),
    (b"{}\n" * 1_600_000, "x/issues.jsonl:25: title: missing"),
    (
        b"".join(b'{"id":"%d","title":"t","labels":[%s0]}\n' % (n, b"0," * 20_000) for n in range(12)),
        "x/issues.jsonl:11: too many issues, or too much in them",
    ),
    (b'{"id":"a","title":"t"}\n' * 200_000, "is already on line 1"),
    (b'{"a":' * 1_000_000, "nested too deeply"),
]


@each_case(("content", "words"), WRONG, ids=[words[-30:] for _, words in WRONG])
@pytest.mark.capability("C004", "C012")
def test_what_is_wrong_is_refused_with_its_place(content: bytes, words: str) -> None:
    problems = refused(SOURCE, {"issues.jsonl": content}, "x")
    assert len(problems) <= 52
    assert any(words in problem for problem in problems), problems


def test_epics_that_multiply_into_too_many_dependencies_are_refused(wording: Wording) -> None:
    children = [issue(f"c{n}", dependencies=[needs("e", "parent-child")]) for n in range(500)]
    waiting = [issue(f"w{n}", dependencies=[needs("e")]) for n in range(500)]
    problems = refused(SOURCE, files(issue("e", issue_type="epic"), *children, *waiting), "x")
    wording(problems[0])


@pytest.mark.capability("C012")
def test_a_deleted_issue_is_an_error_when_it_is_told_unless_it_is_over() -> None:
    held = files(issue("bd-1", status="tombstone"), issue("bd-2"))
    with pytest.raises(BadPlan, match=r'issues\.jsonl:1: the status "tombstone" cannot be changed'):
        SOURCE.written(held, told({"bd-1": ItemProgress(mark=Mark.RUNNING)}))
    for over in (Mark.DONE, Mark.SKIPPED):
        # Trackers turn what was closed into such lines when they tidy up.
        done = ItemProgress(mark=Mark.DONE)
        [made] = SOURCE.written(held, told({"bd-1": ItemProgress(mark=over), "bd-2": done})).values()
        [first, second, *_] = made.splitlines()
        assert first == held["issues.jsonl"].splitlines()[0]
        assert json.loads(second)["status"] == "closed"


@pytest.mark.capability("C012")
def test_a_status_of_the_trackers_own_making_waits_for_a_person_and_stays(wording: Wording) -> None:
    held = files(issue("bd-1"), issue("bd-2", status="moon"), issue("bd-3", status="moon"))
    work = SOURCE.parse(held, "x")
    assert (work.tasks[1].mark, work.tasks[1].reason) == (Mark.BLOCKED, "its status is moon")
    assert len(work.notes) == 1, "one note for all of a kind"
    wording(work.notes[0])
    waits = ItemProgress(mark=Mark.BLOCKED, reason=work.tasks[1].reason)
    assert after(SOURCE, held, told({"bd-2": waits})) == held
    made = after(SOURCE, held, told({"bd-2": ItemProgress(mark=Mark.DONE)}))
    assert marks(SOURCE.parse(made, "x"))["bd-2"] is Mark.DONE, "a person wanted it all the same"


@pytest.mark.capability("C012")
def test_what_somebody_else_has_claimed_is_left_to_them() -> None:
    held = files(
        issue("bd-1", status="in_progress", assignee="alice"),
        issue("bd-2", status="in_progress", assignee="loopwright"),
        issue("bd-3", status="hooked"),
        issue("bd-4", assignee="alice"),
    )
    work = SOURCE.parse(held, "x")
    assert [task.mark for task in work.tasks] == [Mark.BLOCKED, Mark.RUNNING, Mark.RUNNING, Mark.OPEN]
    assert work.tasks[0].reason.startswith("claimed by alice: ")
    for item in (
        ItemProgress(mark=Mark.BLOCKED, reason=work.tasks[0].reason),
        ItemProgress(mark=Mark.SKIPPED),
    ):
        assert after(SOURCE, held, told({"bd-1": item})) == held
    made = after(SOURCE, held, told({"bd-4": ItemProgress(mark=Mark.RUNNING)}))
    assert marks(SOURCE.parse(made, "x"))["bd-4"] is Mark.RUNNING, "it is ours now"


@pytest.mark.capability("C012")
def test_a_closed_issue_has_the_time_of_it_and_an_open_one_has_not() -> None:
    done = ItemProgress(mark=Mark.DONE, commit="a91c2e4", summary="it\ncounts")
    closed = after(SOURCE, files(issue("bd-1"), issue("bd-10")), told({"bd-1": done}))
    first, second = (json.loads(line) for line in closed["issues.jsonl"].splitlines())
    assert (first["status"], first["closed_at"]) == ("closed", "2026-03-01T10:00:00Z")
    assert first["close_reason"] == "Done in a91c2e4: it counts"
    assert [task.commit for task in SOURCE.parse(closed, "x").tasks] == ["a91c2e4", None]
    assert second == issue("bd-10")
    again = after(SOURCE, closed, told({"bd-1": ItemProgress(mark=Mark.OPEN)}))
    assert json.loads(again["issues.jsonl"].splitlines()[0]) == issue(
        "bd-1", updated_at="2026-03-01T10:00:00Z"
    )


keys = ["bd-1", "bd-10", "é-2"]
entry = st.fixed_dictionaries(
    {
        "title": st.just("t"),
        "status": st.sampled_from(["open", "in_progress", "blocked", "closed", "deferred", "hooked"]),
    },
    optional={
        "notes": st.sampled_from(["", "mine", "Blocked: old"]),
        "updated_at": st.just("2026-01-01T00:00:00Z"),
        "odd": st.floats(0, 1),
    },
)
TOLD = {Mark.SKIPPED: Mark.DONE}
OWNED = {"status", "updated_at", "closed_at", "close_reason", "notes", "assignee"}


@settings(max_examples=60, deadline=None)
@given(
    document=st.dictionaries(st.sampled_from(keys), entry, min_size=1),
    progress=st.dictionaries(st.sampled_from([*keys, "gone"]), laws.items),
    ending=st.sampled_from(["\n", "\r\n", "\n\n"]),
    last=st.booleans(),
    spaced=st.booleans(),
)
def test_what_was_told_is_read_again_and_nothing_else_changed(
    document: dict[str, dict[str, Any]],
    progress: dict[str, ItemProgress],
    ending: str,
    last: bool,
    spaced: bool,
) -> None:
    separators = (", ", ": ") if spaced else (",", ":")
    lines = [json.dumps({"id": key, **inner}, separators=separators) for key, inner in document.items()]
    before = {"issues.jsonl": (ending.join(lines) + (ending if last else "")).encode()}
    made = after(SOURCE, before, told(progress))
    work, was = SOURCE.parse(made, "x"), SOURCE.parse(before, "x")
    assert work.sha256 == was.sha256
    for task in work.tasks:
        item = progress.get(task.key)
        assert task.mark is (TOLD.get(item.mark, item.mark) if item else marks(was)[task.key])
    old, new = (content["issues.jsonl"].split(b"\n") for content in (before, made))
    assert len(old) == len(new)
    for one, other in zip(old, new, strict=True):
        if not one.strip():
            assert one == other
            continue
        was_there, is_there = json.loads(one), json.loads(other)
        assert one == other or was_there["id"] in progress
        assert {k: v for k, v in was_there.items() if k not in OWNED} == {
            k: v for k, v in is_there.items() if k not in OWNED
        }
        assert ("closed_at" in is_there) <= (is_there["status"] == "closed")
        if was_there.get("notes") == "mine":
            assert is_there["notes"].partition(" | Blocked: ")[0] == "mine"


@settings(max_examples=40, deadline=None)
@given(moved=st.permutations(keys), data=st.data())
def test_a_persons_edit_between_two_writes_survives(moved: list[str], data: st.DataObject) -> None:
    progress = told({"bd-1": data.draw(laws.items)})
    after(SOURCE, files(*(issue(key) for key in keys)), progress)
    by_hand = files(*(issue(key, title="new words") for key in moved), issue("new"))
    made = [json.loads(line) for line in after(SOURCE, by_hand, progress)["issues.jsonl"].splitlines()]
    assert [(one["id"], one["title"]) for one in made] == [
        *((key, "new words") for key in moved),
        ("new", "Title of new"),
    ]
    assert all(one == issue(one["id"], title="new words") for one in made if one["id"] in ("bd-10", "é-2"))


@pytest.fixture
def tracker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with a tracker, and put its program on the PATH."""
    program = fake_bd.install(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    place = tmp_path / "project" / ".beads"
    place.mkdir(parents=True)
    held = files(issue("bd-1"), issue("bd-2", dependencies=[needs("bd-1")]), issue("bd-3", status="closed"))
    (place / "issues.jsonl").write_bytes(held["issues.jsonl"])
    return place


def commands(tracker: Path) -> list[str]:
    return [
        line
        for line in (tracker / "commands.log").read_text().splitlines()
        if not line.startswith(("list", "export"))
    ]


@pytest.mark.capability("C012")
def test_the_trackers_own_program_is_told_when_it_is_there(tracker: Path) -> None:
    progress = Progress(
        plan_id="p",
        at=AT,
        agent="claude",
        items={
            "bd-1": ItemProgress(mark=Mark.DONE, commit="abc"),
            "bd-2": ItemProgress(mark=Mark.RUNNING),
            "bd-3": ItemProgress(mark=Mark.BLOCKED, reason="why"),
            "gone": ItemProgress(mark=Mark.DONE),
        },
    )
    assert SOURCE.write_to_program(tracker, progress)
    assert commands(tracker) == [
        "close bd-1 '--reason=Done in abc' --json",
        "update bd-2 --claim=true --json",
        "reopen bd-3 --json",
        "update bd-3 --status=blocked '--notes=Blocked: why' --json",
    ]
    assert marks(SOURCE.parse(SOURCE.files(tracker), "x")) == {
        "bd-1": Mark.DONE,
        "bd-2": Mark.RUNNING,
        "bd-3": Mark.BLOCKED,
    }
    assert SOURCE.write_to_program(tracker / "issues.jsonl", progress)
    assert len(commands(tracker)) == 4  # it knows that already


@pytest.mark.parametrize(
    ("behaviour", "asked"),
    [
        ("", ["update bd-1 --claim=true --json"]),
        (
            "old",
            [
                "update bd-1 --claim=true --json",
                "update bd-1 --status=in_progress --assignee=loopwright --json",
            ],
        ),
    ],
)
@pytest.mark.capability("C012")
def test_work_is_claimed_in_one_step_where_the_tracker_can(
    tracker: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str, asked: list[str]
) -> None:
    monkeypatch.setenv("FAKE_BD", behaviour)
    progress = told({"bd-1": ItemProgress(mark=Mark.RUNNING)})
    assert SOURCE.write_to_program(tracker, progress)
    assert commands(tracker) == asked
    assert marks(SOURCE.parse(SOURCE.files(tracker), "x"))["bd-1"] is Mark.RUNNING
    monkeypatch.setenv("FAKE_BD", "")
    with raises_code("tracker_refused"):
        Bd(tracker.parent).claim("bd-1")


@pytest.mark.capability("C012")
def test_the_tracker_is_told_nothing_of_an_issue_that_somebody_else_is_at_work_on(tracker: Path) -> None:
    theirs = files(issue("bd-1", status="in_progress", assignee="alice"), issue("bd-2", assignee="alice"))
    (tracker / "issues.jsonl").write_bytes(theirs["issues.jsonl"])
    reason = SOURCE.parse(SOURCE.files(tracker), "x").tasks[0].reason
    assert SOURCE.write_to_program(tracker, told({"bd-1": ItemProgress(mark=Mark.BLOCKED, reason=reason)}))
    assert SOURCE.write_to_program(tracker, told({"bd-1": ItemProgress(mark=Mark.SKIPPED)}))
    assert SOURCE.write_to_program(tracker, told({"bd-2": ItemProgress(mark=Mark.RUNNING)}))
    assert commands(tracker) == ["update bd-2 --status=in_progress --assignee=loopwright --json"]


FOUND = Discovered(title="Mend the clock", reason="It is late.", recommendation="new", by="bd-1")


def discovered(*found: Discovered) -> Progress:
    return Progress(plan_id="p", at=AT, items={}, discovered=found)


@pytest.mark.capability("C040")
def test_work_that_was_come_upon_is_an_issue_that_nobody_has_decided_about(
    tracker: Path, wording: Wording
) -> None:
    assert SOURCE.write_to_program(tracker, discovered(FOUND, replace(FOUND, title="-x", by="gone")))
    more = "'--description=It is late.' --type=task --labels=loopwright-discovered"
    made = [
        f"create '--title=Mend the clock' {more} --deps=discovered-from:bd-1 --json",
        f"create --title=-x {more} --json",
    ]
    assert commands(tracker) == made
    assert SOURCE.write_to_program(tracker, discovered(FOUND, replace(FOUND, title="-x", by="gone")))
    assert commands(tracker) == made, "it is told once"
    assert set(marks(SOURCE.parse(SOURCE.files(tracker), "x"))) == {"bd-1", "bd-2", "bd-3"}, "it is no task"
    assert SOURCE.write_to_program(tracker, discovered(replace(FOUND, mark=Mark.SKIPPED)))
    wording(commands(tracker)[2:])


@pytest.mark.capability("C040")
def test_without_the_program_it_is_a_line_of_the_file() -> None:
    before = files(issue("bd-1"), issue("bd-2"))
    made = after(SOURCE, before, discovered(FOUND))
    work = SOURCE.parse(made, "x")
    assert (set(marks(work)), work.sha256) == ({"bd-1", "bd-2"}, SOURCE.parse(before, "x").sha256)
    added = json.loads(made["issues.jsonl"].splitlines()[-1])
    assert made["issues.jsonl"].startswith(before["issues.jsonl"].rstrip(b"\n")), "all else is as it was"
    assert (added["title"], added["status"], added["labels"]) == (
        "Mend the clock",
        "open",
        ["loopwright-discovered"],
    )
    assert added["dependencies"] == [
        {"issue_id": added["id"], "depends_on_id": "bd-1", "type": "discovered-from"}
    ]
    closed = after(SOURCE, made, discovered(replace(FOUND, mark=Mark.DONE, task="mend-the-clock")))
    assert json.loads(closed["issues.jsonl"].splitlines()[-1])["status"] == "closed"
    taken = json.dumps({**added, "labels": []}).encode()
    mine = {"issues.jsonl": before["issues.jsonl"].rstrip(b"\n") + b"\n" + taken + b"\n"}
    assert marks(SOURCE.parse(mine, "x"))[added["id"]] is Mark.OPEN, "without the label it is a task"


@each_case("odd", [[], "words", 7, None, {"title": ["x"]}, {"id": ["bd-9"]}])
def test_a_line_that_is_no_issue_keeps_nothing_from_being_told(odd: Any) -> None:
    before = files(odd, issue("bd-1"))
    made = after(SOURCE, before, discovered(FOUND))["issues.jsonl"]
    assert made.startswith(before["issues.jsonl"]), "it is left as it is"
    added = json.loads(made.splitlines()[-1])
    assert added["title"] == FOUND.title
    assert added["id"].startswith("bd-")


@pytest.mark.parametrize(
    ("behaviour", "limit_s", "words"),
    [
        (
            "refuse=blocked",
            30,
            "`bd update bd-1 --status=blocked --notes=Blocked: why`: Error: invalid status",
        ),
        (
            "silent=blocked",
            30,
            "`bd update bd-1 --status=blocked --notes=Blocked: why`: Error: invalid status",
        ),
        ("keeps=blocked", 30, "`bd update bd-1`: the issue is open, not blocked"),
        ("error", 30, "database is locked"),
        ("garbage", 30, "its answer is not JSON"),
        ("hang", 0.2, "it did not end within 0.2 s"),
    ],
)
@pytest.mark.capability("C012")
def test_a_refusal_is_an_error_and_nothing_is_believed(
    tracker: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str, limit_s: float, words: str
) -> None:
    monkeypatch.setenv("FAKE_BD", behaviour)
    before = (tracker / "issues.jsonl").read_bytes()
    progress = told({"bd-1": ItemProgress(mark=Mark.BLOCKED, reason="why")})
    with pytest.raises(Refused) as caught:
        tell(tracker.parent, progress, limit_s=limit_s)
    assert words in str(caught.value)
    assert (tracker / "issues.jsonl").read_bytes() == before


@pytest.mark.capability("C012")
def test_what_is_refused_of_one_issue_keeps_nothing_from_the_others(
    tracker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_BD", "refuse=in_progress")
    progress = told({"bd-1": ItemProgress(mark=Mark.RUNNING), "bd-2": ItemProgress(mark=Mark.DONE)})
    with raises_code("not_told"):
        SOURCE.write_to_program(tracker, progress)
    assert commands(tracker)[1:] == ["close bd-2 --reason=Done --json"]


@pytest.mark.capability("C012")
def test_the_tracker_is_asked_through_its_own_program_and_may_keep_no_file(tracker: Path) -> None:
    note = b'{"_type":"memory","key":"k","value":"v"}\n'
    (tracker / "tracker.jsonl").write_bytes(note + (tracker / "issues.jsonl").read_bytes())
    (tracker / "issues.jsonl").unlink()
    assert recognise(tracker, registry.sources()).kind == "beads"
    assert marks(SOURCE.parse(SOURCE.files(tracker), "x")) == {
        "bd-1": Mark.OPEN,
        "bd-2": Mark.OPEN,
        "bd-3": Mark.DONE,
    }
    (tracker / "tracker.jsonl").write_bytes(note + b'{"id":"bd-1"}\n')
    with pytest.raises(BadPlan, match="bd export:2: "):
        SOURCE.parse(SOURCE.files(tracker), ".beads")
    stale = files(issue("bd-9"))
    (tracker / "issues.jsonl").write_bytes(stale["issues.jsonl"])
    named = tracker / "issues.jsonl"
    assert (SOURCE.files(named), SOURCE.has_program(named)) == (stale, False), "the file was named"


@pytest.mark.parametrize("behaviour", ["error", "garbage"])
@pytest.mark.capability("C012")
def test_a_tracker_that_does_not_answer_is_not_taken_for_an_empty_one(
    tracker: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str
) -> None:
    monkeypatch.setenv("FAKE_BD", behaviour)
    with raises_code("tracker_refused"):
        SOURCE.files(tracker)


def test_an_id_is_never_an_option(tracker: Path) -> None:
    with raises_code("tracker_refused"):
        Bd(tracker.parent).close("--db=elsewhere", "x")
    assert not (tracker / "commands.log").exists()


def test_without_the_program_the_file_is_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not SOURCE.write_to_program(tmp_path / ".beads", told({}))
    with raises_code("tracker_refused"):
        Bd(tmp_path).issues()


def test_the_sample_in_the_documentation_is_read() -> None:
    section = DOCS.read_text(encoding="utf-8")
    sample = section.split("```json\n")[1].split("```")[0]
    work = SOURCE.parse({"issues.jsonl": sample.encode()}, ".beads")
    assert marks(work) == {"bd-a1": Mark.DONE, "bd-a2": Mark.OPEN}


def test_a_status_in_other_words_is_understood_and_written_in_the_words_of_the_file() -> None:
    held = files(issue("a", status="done"), issue("b", status="wontfix"), issue("c", dependencies=["a", "b"]))
    work = SOURCE.parse(held, "x")
    assert marks(work) == {"a": Mark.DONE, "b": Mark.SKIPPED, "c": Mark.OPEN}
    assert work.tasks[2].depends_on == ("a", "b"), "a bare id is a dependency"
    assert work.notes == ()
    [made] = after(SOURCE, held, told({"c": ItemProgress(mark=Mark.DONE)})).values()
    assert json.loads(made.splitlines()[2])["status"] == "done"


def test_what_the_tracker_writes_down_for_itself_is_not_work() -> None:
    held = files(issue("a", issue_type="event"), issue("b", issue_type="gate"), issue("c"))
    assert marks(SOURCE.parse(held, "x")) == {"c": Mark.OPEN}


def test_a_tracker_without_work_has_nothing_to_do() -> None:
    for held in ({"issues.jsonl": b"\n"}, files(issue("e", issue_type="epic", status="closed"))):
        work = SOURCE.parse(held, "x")
        assert (work.tasks, len(work.notes)) == ((), 1)
