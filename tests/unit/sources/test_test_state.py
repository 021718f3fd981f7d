"""test-state.json with its config.json: schemas decide, every mistake has its place, status and health get back."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import each_case
from tests.unit.sources import laws
from tests.unit.sources.laws import AT, LATER, after, marks, refused, told
from tests.wording_plugin import Wording

from loopwright.adapters import registry
from loopwright.adapters.sources.test_state.test_state import LoopTestsSource
from loopwright.adapters.sources.test_state.test_state_schema import (
    CONFIG,
    HEALTH,
    NOT_AUTOMATABLE,
    TEST_STATE,
    loop_config,
)
from loopwright.adapters.sources.test_state.test_state_writing import Standing, health
from loopwright.adapters.sources.text.json_edits import JsonEdits
from loopwright.adapters.sources.text.problems import Problems
from loopwright.adapters.sources.text.reading import read, recognise
from loopwright.adapters.sources.text.schema_check import check_schema
from loopwright.core.values.errors import BadPlan
from loopwright.core.values.policy import GateCommand
from loopwright.ports import Files, ItemProgress, Mark, PlannedTask, Progress, Setback, Specs

SOURCE = LoopTestsSource()
DOCS = Path(__file__).parents[3] / "docs" / "reference" / "sources" / "test-state.md"
CONFIGURED = {"name": "critical path", "specs_dir": "specs", "test_state_file": "test-state.json"}
ONE = {"id": "CP-UFS-001", "category": "api", "status": "pending"}
FULL = {
    **ONE,
    "attempts": 1,
    "lastResult": "continue",
    "dependsOn": None,
    "automatable": True,
    "notes": "mind the gap",
    "passCriteria": ["`npm test` passes", "the gap is minded"],
    "lastAttemptAt": "2026-01-07T09:15:00Z",
    "passedAt": None,
}
STATE = {
    "loopName": "critical path",
    "lastUpdated": "2026-01-07T09:15:00Z",
    "summary": {"total": 1, "passed": 0, "failed": 0, "blocked": 0, "pending": 1},
    "tests": [FULL],
}


def files(*tests: Any, config: Any = None, **top: Any) -> Files:
    state = {"loopName": "loop", **top, "tests": list(tests)}
    found = {"test-state.json": json.dumps(state, indent=2).encode()}
    return found if config is None else {**found, "config.json": json.dumps(config, indent=1).encode()}


def test(id: str, **more: Any) -> dict[str, Any]:
    return {**ONE, "id": id, **more}


test.__test__ = False  # type: ignore[attr-defined]


@pytest.mark.capability("C015")
def test_a_test_is_read_with_everything_in_it() -> None:
    content = {"test-state.json": json.dumps(STATE, indent=2).encode()}
    work = SOURCE.parse(
        {**content, "config.json": json.dumps({**CONFIGURED, "max_attempts": 5}).encode()}, "loop"
    )
    assert (work.title, work.notes, dict(work.settings)) == ("critical path", (), {"max_attempts": 5})
    assert work.specs == Specs(folder="specs", named_in="config.json")
    assert work.tasks == (
        PlannedTask(
            key="CP-UFS-001",
            title="the gap is minded",
            description="mind the gap",
            criteria=("`npm test` passes", "the gap is minded"),
            acceptance=(GateCommand(name="npm test", command="npm test"),),
            type="api",
            attempts=1,
            line=13,
        ),
    )


def test_a_place_is_the_file_its_folder_or_the_configuration_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "test-state.json").write_text(json.dumps(STATE))
    (tmp_path / "config.json").write_text(
        json.dumps({**CONFIGURED, "test_state_file": "loops/a/test-state.json"})
    )
    for place in (tmp_path, tmp_path / "test-state.json", tmp_path / "config.json"):
        assert recognise(place, registry.sources()).kind == "test_state"
        assert read(SOURCE, place).title == "critical path"
    (tmp_path / "config.json").write_text('{"of": "somebody else"}')
    assert not SOURCE.recognises(tmp_path / "config.json")
    assert list(SOURCE.files(tmp_path)) == ["test-state.json"]


@each_case("specs", ["coding-loops/path/specs", "specs"])
@pytest.mark.capability("C003")
def test_tests_in_the_folder_of_their_specifications_are_found_with_their_configuration(
    tmp_path: Path, specs: str
) -> None:
    loop = tmp_path / "coding-loops" / "path"
    (loop / "specs").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    config = {**CONFIGURED, "specs_dir": specs, "model": "m", "health_check": {"enabled": True}}
    (loop / "config.json").write_text(json.dumps(config))
    (loop / "specs" / "test-state.json").write_text(json.dumps(STATE))
    (loop / "specs" / "health.json").write_text('{"loop_name": "critical path"}')
    for place in (loop, loop / "config.json", loop / "specs", loop / "specs" / "test-state.json"):
        assert recognise(place, registry.sources()).kind == "test_state", place
        found = SOURCE.files(place)
        folder = place if place.is_dir() else place.parent
        work = SOURCE.parse(found, place.name)
        assert (work.settings["model"], work.tasks[0].key) == ("m", "CP-UFS-001"), place
        sign = SOURCE.heartbeat_file(found)
        assert sign is not None
        assert (folder / sign).resolve() == loop / "specs" / "health.json", "it is beside the tests"
        assert sorted((folder / name).resolve() for name in found) == sorted(
            path for path in loop.rglob("*") if path.is_file()
        )
    (loop / "config.json").write_text(json.dumps({**config, "max_attempts": 99}))
    with pytest.raises(BadPlan, match=r"config.json:1: max_attempts: expected 1 to 10"):
        read(SOURCE, loop / "specs" / "test-state.json")
    (loop / "config.json").write_text(json.dumps({**config, "test_state_file": "others.json"}))
    assert list(SOURCE.files(loop / "specs")) == ["test-state.json"], "it is the configuration of other tests"
    with pytest.raises(BadPlan, match=rf"config.json: test_state_file: there is no {specs}/others.json"):
        SOURCE.files(loop)


def test_notes_say_what_a_test_is_where_nothing_else_does(wording: Wording) -> None:
    said = {"notes": "Create the prompt\nof the build agent"}
    work = SOURCE.parse(files(test("A-B-1", **said), test("A-B-2", status="blocked", **said)), "x")
    assert [task.title for task in work.tasks] == ["Create the prompt", "Create the prompt"]
    wording(work.tasks[1].reason)
    (bare,) = SOURCE.parse(files(test("A-B-1", passCriteria=["`grep -q 429 a.txt` passes"])), "x").tasks
    assert bare.title == "Make `grep -q 429 a.txt` pass"


@pytest.mark.capability("C003")
def test_a_configuration_gets_its_defaults() -> None:
    config = loop_config(CONFIGURED)
    assert (config.max_attempts, config.priority, config.auto_heal) == (3, 5, False)
    assert config.logging == {"transcript_tail_lines": 100, "max_transcript_chars": 50000}
    assert config.health_check == {"enabled": False, "interval_seconds": 30, "file": "health.json"}
    given = loop_config({**CONFIGURED, "logging": {"transcript_tail_lines": 20}})
    assert given.logging == {"transcript_tail_lines": 20, "max_transcript_chars": 50000}


@pytest.mark.capability("C003")
def test_a_configuration_is_used_with_its_defaults_and_what_is_not_used_is_said() -> None:
    work = SOURCE.parse(files(ONE, config=CONFIGURED), "loop")
    assert (dict(work.settings), work.priority, work.notes) == ({"max_attempts": 3}, 5, ())
    usual = {"auto_continue_delay": 0, "auto_heal": False, "logging": {"transcript_tail_lines": 100}}
    work = SOURCE.parse(files(ONE, config={**CONFIGURED, **usual, "priority": 1, "model": "m"}), "loop")
    assert (dict(work.settings), work.priority) == ({"max_attempts": 3, "model": "m"}, 1)
    assert work.notes == ()
    odd = {
        "project_dir": "..",
        "auto_continue_delay": 10,
        "logging": {"transcript_tail_lines": 20, "max_transcript_chars": 6000},
    }
    notes = SOURCE.parse(files(ONE, config={**CONFIGURED, **odd}), "loop").notes
    assert [note.partition(" is not used: ")[0] for note in notes] == [
        "loop/config.json:5: project_dir:",
        "loop/config.json:6: auto_continue_delay:",
        "loop/config.json:8: logging.transcript_tail_lines:",
        "loop/config.json:9: logging.max_transcript_chars:",
    ]


@pytest.mark.capability("C091")
def test_the_configuration_switches_healing_on_and_its_default_leaves_the_project_to_decide() -> None:
    healing = SOURCE.parse(files(ONE, config={**CONFIGURED, "auto_heal": True}), "loop")
    assert (dict(healing.settings), healing.notes) == ({"max_attempts": 3, "auto_heal": True}, ())
    assert "auto_heal" not in SOURCE.parse(files(ONE, config=CONFIGURED), "loop").settings


@each_case(
    ("change", "words"),
    [
        *(
            ({gone: ...}, f"loop/config.json:1: {gone}: missing")
            for gone in ("name", "specs_dir", "test_state_file")
        ),
        ({"max_attempts": 11}, "loop/config.json:5: max_attempts: expected 1 to 10, got 11"),
        ({"max_attempts": True}, "max_attempts: expected a whole number, got true"),
        ({"max_atempts": 3}, 'max_atempts: unknown key (did you mean "max_attempts"?)'),
        ({"priority": 0}, "priority: expected 1 to 10"),
        ({"auto_heal": "yes"}, "auto_heal: expected true or false"),
        ({"auto_continue_delay": 61}, "auto_continue_delay: expected 0 to 60"),
        (
            {"health_check": {"interval_seconds": 4}},
            "health_check.interval_seconds: expected 5 or more, got 4",
        ),
        ({"logging": {"transcript_tail_lines": 9}}, "logging.transcript_tail_lines: expected 10 or more"),
        ({"specs_dir": "../secret"}, "specs_dir: expected a path without .. in it"),
        ({"health_check": {"file": "/etc/health"}}, "health_check.file: expected a path without"),
        ({"health_check": {"file": "test-state.json"}}, "health_check.file: expected a separate file"),
        ({"metadata": {"tags": [1]}}, "metadata.tags[0]: expected a text, got 1"),
    ],
)
@pytest.mark.capability("C003")
def test_a_wrong_configuration_is_refused_with_its_place(change: dict[str, Any], words: str) -> None:
    config = {key: value for key, value in {**CONFIGURED, **change}.items() if value is not ...}
    problems = refused(SOURCE, files(ONE, config=config), "loop")
    assert any(words in problem for problem in problems), problems
    assert all(problem.startswith("loop/config.json:") for problem in problems)


def mutations() -> list[tuple[tuple[str | int, ...], Any]]:
    """Return fields of a state with a value that nobody could understand."""
    wrong: dict[str, Any] = {
        "id": 7, "category": 7, "status": [], "attempts": -1, "lastResult": 1, "dependsOn": "CP-NO-9",
        "automatable": "no", "notes": [], "passCriteria": {}, "lastAttemptAt": 3, "passedAt": 12,
    }  # fmt: skip
    found: list[tuple[tuple[str | int, ...], Any]] = [
        (("tests", 0, key), value) for key, value in wrong.items()
    ]
    found += [((key,), False) for key in STATE]
    found += [(("tests", 0), []), (("tests",), [])]
    return found


@each_case(("path", "value"), mutations(), ids=str)
@pytest.mark.capability("C004")
def test_any_field_that_is_wrong_is_refused_at_its_line(path: tuple[str | int, ...], value: Any) -> None:
    document = json.loads(json.dumps(STATE))
    target = document
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    content = json.dumps(document, indent=1)
    problems = refused(SOURCE, {"test-state.json": content.encode()}, "test-state.json")
    key = str(path[-1]) if isinstance(path[-1], str) else "tests[0]"
    assert any(f"{key}: " in problem for problem in problems), problems
    if isinstance(path[-1], str):
        line = next(number for number, text in enumerate(content.splitlines(), 1) if f'"{path[-1]}"' in text)
        assert any(problem.startswith(f"test-state.json:{line}: ") for problem in problems), problems


@pytest.mark.capability("C005")
def test_unknown_keys_stay_and_a_near_miss_is_noted() -> None:
    own = {**ONE, "id": "POLISH-E2E-001", "dependson": "CP-UFS-001", "owner": "ann"}
    document = {
        "loopName": "l",
        "runNumber": 3,
        "summary": {"total": 2, "manual": 0},
        "specFiles": {"POLISH": "docs/a.md", "POLISH-E2E": "docs/b.md"},
        "tests": [ONE, own, {"id": "bare"}],
    }
    before = {"test-state.json": json.dumps(document, indent=2).encode()}
    work = SOURCE.parse(before, "test-state.json")
    assert marks(work) == {"CP-UFS-001": Mark.OPEN, "POLISH-E2E-001": Mark.OPEN, "bare": Mark.OPEN}
    assert [task.section for task in work.tasks] == ["", "Specification: docs/b.md", ""]
    assert any("tests[1].dependson: unknown key" in note and "dependsOn" in note for note in work.notes)
    made = after(SOURCE, before, told({"POLISH-E2E-001": ItemProgress(mark=Mark.DONE)}))
    told_of = json.loads(made["test-state.json"])
    assert (told_of["runNumber"], told_of["tests"][1]["owner"]) == (3, "ann")
    assert marks(SOURCE.parse(made, "test-state.json"))["POLISH-E2E-001"] is Mark.DONE


@each_case(
    ("status", "mark"),
    [
        ("skipped", Mark.SKIPPED),
        ("in_progress", Mark.OPEN),
        ("PASSED", Mark.DONE),
        ("passd", Mark.BLOCKED),
        (None, Mark.OPEN),
    ],
)
def test_a_status_in_other_words_is_understood_or_waits(status: str | None, mark: Mark) -> None:
    held = files(test("A-B-1", status=status))
    (task,) = SOURCE.parse(held, "here").tasks
    assert task.mark is mark
    item = ItemProgress(mark=mark, reason=task.reason)
    assert json.loads(after(SOURCE, held, told({"A-B-1": item}))["test-state.json"])["tests"][0][
        "status"
    ] in (
        status,
        "pending",
    )


@pytest.mark.trap("unknown dependency")
@each_case(
    ("tests", "words"),
    [
        ([test("A-B-1"), test("A-B-1")], '"A-B-1" is here a second time'),
        ([test("A-B-1", dependsOn="A-B-2")], 'unknown test "A-B-2"'),
        ([test("A-B-1", dependsOn="A-B-1")], "cannot depend on itself"),
        ([test("A-B-1", dependsOn="A-B-2"), test("A-B-2", dependsOn=["A-B-1"])], "wait for each other"),
        ([test("A-B-1\n")], "id: expected a text like"),
    ],
)
def test_a_dependency_on_nobody_is_an_error_and_not_met(tests: list[Any], words: str) -> None:
    assert any(words in problem for problem in refused(SOURCE, files(*tests)))


@pytest.mark.capability("C005")
def test_the_older_shape_is_read_and_said_so(wording: Wording) -> None:
    old = {"version": "1.0", "name": "old loop", "tests": [ONE]}
    before = {"test-state.json": json.dumps(old, indent=2).encode()}
    work = SOURCE.parse(before, "test-state.json")
    assert work.title == "old loop"
    wording(work.notes)
    made = json.loads(
        after(SOURCE, before, told({"CP-UFS-001": ItemProgress(mark=Mark.DONE)}))["test-state.json"]
    )
    assert (made["version"], made["name"], made["tests"][0]["status"]) == ("1.0", "old loop", "passed")
    assert made["summary"] == {"total": 1, "passed": 1, "failed": 0, "blocked": 0, "pending": 0}


def test_a_summary_that_counts_wrongly_is_said(wording: Wording) -> None:
    work = SOURCE.parse(files(ONE, summary={"total": 4, "pending": 1}), "x")
    wording(work.notes)


def test_marks_and_reasons_are_read() -> None:
    work = SOURCE.parse(
        files(
            test("A-B-1", status="failed"),
            test("A-B-2", status="blocked", notes="no account", passCriteria=["it runs"]),
            test("A-B-3", status="blocked"),
            test("A-B-4", automatable=False),
            test("A-B-5", status="passed", dependsOn=["A-B-1", "A-B-2"]),
        ),
        "x",
    )
    assert [(task.mark, task.reason) for task in work.tasks] == [
        (Mark.OPEN, ""),
        (Mark.BLOCKED, "no account"),
        (Mark.BLOCKED, "blocked in the file, without a reason"),
        (Mark.BLOCKED, NOT_AUTOMATABLE),
        (Mark.DONE, ""),
    ]
    assert work.tasks[4].depends_on == ("A-B-1", "A-B-2")


def test_what_a_person_noted_is_never_written_over() -> None:
    before = files(test("A-B-1", notes="mine"), test("A-B-2"))
    item = ItemProgress(mark=Mark.BLOCKED, reason="why")
    made = after(SOURCE, before, told({"A-B-1": item, "A-B-2": item}))
    tests = json.loads(made["test-state.json"])["tests"]
    assert [one["notes"] for one in tests] == ["mine | Blocked: why", "Blocked: why"]
    assert [task.reason for task in SOURCE.parse(made, "x").tasks] == ["why", "why"]
    assert [task.title for task in SOURCE.parse(made, "x").tasks] == ["mine", "api"]
    assert SOURCE.parse(made, "x").sha256 == SOURCE.parse(before, "x").sha256
    blocked = files(test("A-B-1", status="blocked", lastResult="blocked", notes="mine", passCriteria=["x"]))
    reason = SOURCE.parse(blocked, "x").tasks[0].reason
    held = json.loads(
        after(SOURCE, blocked, told({"A-B-1": ItemProgress(mark=Mark.BLOCKED, reason=reason)}))[
            "test-state.json"
        ]
    )
    assert held["tests"][0]["notes"] == "mine", "a person's reason is not said again"
    again = ItemProgress(mark=Mark.RUNNING, attempts=2, started_at=AT)
    free = after(SOURCE, made, told({"A-B-1": again, "A-B-2": again}))
    mine, test_again = json.loads(free["test-state.json"])["tests"]
    assert (mine["notes"], "notes" in test_again) == ("mine", False)
    assert (test_again["status"], test_again["attempts"], test_again["lastResult"]) == (
        "pending",
        2,
        "continue",
    )
    assert test_again["lastAttemptAt"] == "2026-03-01T10:00:00Z"


@pytest.mark.trap("counted twice")
def test_counters_are_set_and_never_added_to() -> None:
    done = ItemProgress(mark=Mark.DONE, attempts=2, started_at=AT, ended_at=LATER)
    made = after(SOURCE, files(FULL), told({"CP-UFS-001": done}))
    one = json.loads(made["test-state.json"])["tests"][0]
    assert (one["attempts"], one["lastResult"], one["passedAt"]) == (2, "pass", "2026-03-02T10:00:00Z")
    fewer = ItemProgress(mark=Mark.DONE, attempts=1, started_at=AT, ended_at=LATER)
    assert SOURCE.written(made, told({"CP-UFS-001": fewer}, LATER)) == {}, "it only grows"
    # A later write about the same facts changes nothing, not even the time of the last change.
    assert SOURCE.written(made, told({"CP-UFS-001": done}, LATER)) == {}
    back = after(SOURCE, made, told({"CP-UFS-001": ItemProgress(mark=Mark.OPEN)}))
    one = json.loads(back["test-state.json"])["tests"][0]
    assert (one["status"], one["lastResult"], one["passedAt"]) == ("pending", None, None)


@each_case(("setback", "result"), [(Setback.REJECTED, "continue"), (Setback.BROKEN, "error")])
def test_a_test_that_is_tried_again_has_failed(setback: Setback, result: str) -> None:
    assert SOURCE.parse(files(test("A-B-1", attempts=2)), "x").tasks[0].attempts == 2
    item = ItemProgress(mark=Mark.OPEN, attempts=2, setback=setback)
    made = after(SOURCE, files(test("A-B-1", attempts=1, lastResult="blocked")), told({"A-B-1": item}))
    state = json.loads(made["test-state.json"])
    one = state["tests"][0]
    assert (one["status"], one["attempts"], one["lastResult"]) == ("failed", 2, result)
    assert (state["summary"]["failed"], marks(SOURCE.parse(made, "x"))) == (1, {"A-B-1": Mark.OPEN})
    running = ItemProgress(mark=Mark.RUNNING, attempts=3, started_at=AT)
    one = json.loads(after(SOURCE, made, told({"A-B-1": running}))["test-state.json"])["tests"][0]
    assert (one["status"], one["attempts"], one["lastResult"]) == ("failed", 3, result)


@each_case(
    ("more", "current", "pid", "status"),
    [
        ({}, None, 7, "starting"),
        ({"started_at": AT}, None, 7, "running"),
        ({}, "A-B-1", 7, "running"),
        ({"started_at": AT, "completed_at": AT}, None, 7, "running"),  # the complete gate is left
        ({"completed_at": AT}, None, None, "stopped"),
        ({"started_at": AT}, None, None, "stopped"),
        ({"completed_at": AT, "failed": True}, None, None, "error"),
    ],
)
def test_the_health_file_tells_who_is_at_work(
    more: dict[str, Any], current: str | None, pid: int | None, status: str
) -> None:
    progress = Progress(plan_id="p", at=LATER, items={}, **more)
    made = health("loop", Standing(passed=3, total=9, current=current), progress, pid)
    jsonschema.validate(made, HEALTH)
    assert made == {
        "loop_name": "loop",
        "status": status,
        "current_test": current,
        "progress": {"passed": 3, "total": 9},
        "last_heartbeat": "2026-03-02T10:00:00Z",
        "pid": pid,
    }


def test_the_health_file_is_there_only_where_it_is_asked_for_and_beats_by_its_interval(
    tmp_path: Path,
) -> None:
    config = {
        **CONFIGURED,
        "health_check": {"enabled": True, "file": "run/health.json", "interval_seconds": 20},
    }
    held = files(test("A-B-1"), test("A-B-2", status="passed"), config=config)
    progress = told({"A-B-1": ItemProgress(mark=Mark.RUNNING)})
    assert SOURCE.heartbeat_file(held) == "run/health.json"
    assert set(SOURCE.written(held, progress)) == {"test-state.json"}, "which had no summary"
    made = SOURCE.heartbeat(held, progress, 7)
    assert made is not None
    found = json.loads(made)
    assert (found["current_test"], found["progress"]) == ("A-B-1", {"passed": 1, "total": 2})
    for name, content in {**held, "run/health.json": made}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    held = SOURCE.files(tmp_path)

    def later(seconds: float, pid: int | None = 7, mark: Mark = Mark.RUNNING) -> bytes | None:
        at = progress.at + timedelta(seconds=seconds)
        return SOURCE.heartbeat(held, told({"A-B-1": ItemProgress(mark=mark)}, at), pid)

    assert later(19) is None, "it is fresh"
    assert later(20) is not None
    assert later(-1) is not None, "it is from a clock that went back"
    assert later(1, mark=Mark.DONE) is not None, "something else is to be told"
    stopped = later(1, None)
    assert stopped is not None
    held = {**held, "run/health.json": stopped}
    assert later(1000, None) is None, "who has stopped has no heart to beat"
    held = {**held, "run/health.json": b'{"loop_name": "x", "last_heartbeat": "yesterday"}'}
    assert later(1) is not None
    assert SOURCE.heartbeat_file(files(test("A-B-1"), config=CONFIGURED)) is None
    assert SOURCE.heartbeat_file(files(test("A-B-1"))) is None


def test_a_file_that_is_no_health_file_is_not_written_over() -> None:
    held = files(
        test("A-B-1"), config={**CONFIGURED, "health_check": {"enabled": True, "file": "package.json"}}
    )
    for theirs in (b'{"name": "app"}', b"not json"):
        with pytest.raises(BadPlan):
            SOURCE.heartbeat({**held, "package.json": theirs}, told({}), 7)
    assert SOURCE.heartbeat({**held, "package.json": b'{"loop_name": "x"}'}, told({}), 7)


@pytest.mark.parametrize("schema", [CONFIG, TEST_STATE], ids=["config", "state"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
@pytest.mark.capability("C006")
def test_the_published_schema_and_the_program_refuse_the_same(
    schema: dict[str, Any], data: st.DataObject
) -> None:
    document = json.loads(json.dumps(CONFIGURED if schema is CONFIG else STATE))
    target = document
    if schema is TEST_STATE and data.draw(st.booleans()):
        target = document["tests"][0]
    keys = [*target, "odd", *(schema["properties"] if target is document else ())]
    anything = st.one_of(
        st.none(), st.booleans(), st.integers(-2, 70), st.floats(-1, 20), st.text(laws.letters, max_size=3),
        st.just([1]), st.just({"a": 1}), st.sampled_from(["passed", "A-B-1", "2026-01-01", "error"]),
    )  # fmt: skip
    target[data.draw(st.sampled_from(sorted(keys)))] = data.draw(anything)
    valid = jsonschema.Draft202012Validator(schema).is_valid(document)
    problems = Problems("x")
    check_schema(JsonEdits(json.dumps(document).encode()).document, schema, problems)
    assert (problems.count == 0) == valid, problems.located


ids = ["A-B-1", "A-B-10", "Z-ZZ-0"]
entry = st.fixed_dictionaries(
    {"category": st.just("c"), "status": st.sampled_from(["pending", "passed", "failed", "blocked"])},
    optional={
        "attempts": st.integers(0, 3),
        "lastResult": st.sampled_from(["pass", "error", None]),
        "notes": st.sampled_from([None, "", "mine", "Blocked: old"]),
        "passedAt": st.sampled_from([None, "2026-01-01T00:00:00Z"]),
    },
)
TOLD = {Mark.RUNNING: Mark.OPEN, Mark.SKIPPED: Mark.BLOCKED}
OWNED = {"status", "attempts", "lastResult", "lastAttemptAt", "passedAt", "notes"}


@settings(max_examples=60, deadline=None)
@given(
    document=st.dictionaries(st.sampled_from(ids), entry, min_size=1),
    progress=st.dictionaries(st.sampled_from([*ids, "gone"]), laws.items),
    indent=st.sampled_from([None, 2, "\t"]),
)
def test_what_was_told_is_read_again_and_nothing_else_changed(
    document: dict[str, dict[str, Any]], progress: dict[str, ItemProgress], indent: Any
) -> None:
    state = {"loopName": "l", "tests": [{"id": key, **inner} for key, inner in document.items()]}
    before = {"test-state.json": json.dumps(state, indent=indent).encode()}
    made = after(SOURCE, before, told(progress))
    work, was = SOURCE.parse(made, "here"), SOURCE.parse(before, "here")
    assert (work.sha256, work.notes) == (was.sha256, ())
    for task in work.tasks:
        item = progress.get(task.key)
        assert task.mark is (TOLD.get(item.mark, item.mark) if item else marks(was)[task.key])
    for one in json.loads(made["test-state.json"])["tests"]:
        theirs = document[one["id"]]
        assert {key: value for key, value in one.items() if key not in {*OWNED, "id"}} == {"category": "c"}
        if theirs.get("notes") == "mine":
            assert one["notes"].partition(" | Blocked: ")[0] == "mine"
        if one["id"] not in progress:
            assert one == {"id": one["id"], **theirs}


@settings(max_examples=40, deadline=None)
@given(
    document=st.dictionaries(st.sampled_from(ids), entry, min_size=1),
    first=st.dictionaries(st.sampled_from(ids), laws.items),
    then=st.dictionaries(st.sampled_from(ids), laws.items),
    kept=st.permutations(ids),
    dropped=st.integers(0, 2),
)
def test_a_persons_edit_between_two_writes_survives(
    document: dict[str, dict[str, Any]],
    first: dict[str, ItemProgress],
    then: dict[str, ItemProgress],
    kept: list[str],
    dropped: int,
) -> None:
    """Between two writes somebody reorders the tests, drops some, adds one and writes a note."""
    state = {"loopName": "l", "tests": [{"id": key, **inner} for key, inner in document.items()]}
    made = after(SOURCE, {"test-state.json": json.dumps(state).encode()}, told(first))
    now = {one["id"]: one for one in json.loads(made["test-state.json"])["tests"]}
    mine = {"id": "N-EW-1", "category": "mine", "status": "pending", "notes": "by hand"}
    wanted = [now[key] for key in kept[dropped:] if key in now]
    edited = {**json.loads(made["test-state.json"]), "tests": [*wanted, mine]}
    before = {"test-state.json": json.dumps(edited, indent=1).encode()}
    was = SOURCE.parse(before, "here")
    last = after(SOURCE, before, told(then))
    work = SOURCE.parse(last, "here")
    assert [task.key for task in work.tasks] == [task.key for task in was.tasks]
    assert json.loads(last["test-state.json"])["tests"][-1] == mine
    for task in work.tasks:
        item = then.get(task.key)
        assert task.mark is (TOLD.get(item.mark, item.mark) if item else marks(was)[task.key])


@each_case(
    ("content", "words"),
    [
        (b"{", "test-state.json:1: this is not JSON"),
        (b"[" * 4_000_000, "nested too deeply"),
        (b'{"tests": [' + b'{"a":1},' * 20_000 + b"1]}", "and "),
        (b"", "a value is expected"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_a_hostile_file_is_refused_with_its_place(content: bytes, words: str) -> None:
    problems = refused(SOURCE, {"test-state.json": content}, "test-state.json")
    assert len(problems) <= 51
    assert any(words in problem for problem in problems)


def test_the_sample_in_the_documentation_is_read() -> None:
    section = DOCS.read_text(encoding="utf-8")
    config, state = (part.split("```")[0].encode() for part in section.split("```json\n")[1:3])
    work = SOURCE.parse({"config.json": config, "test-state.json": state}, "loop")
    assert [(task.key, task.mark) for task in work.tasks] == [
        ("CP-API-001", Mark.DONE),
        ("CP-API-002", Mark.OPEN),
    ]
    assert work.notes == ()
