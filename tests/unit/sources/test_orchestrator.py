"""An orchestrator's roadmap: found, checked in both of its forms, never finished by mistake, closed by status alone."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import each_case
from tests.unit.sources import golden, laws
from tests.unit.sources.laws import AT, after, marks, refused, told
from tests.wording_plugin import Wording

from loopwright.adapters import registry
from loopwright.adapters.sources.orchestrator.orchestrator import OrchestratorSource
from loopwright.adapters.sources.orchestrator.roadmap_bundle import read_bundle
from loopwright.adapters.sources.orchestrator.roadmap_closeout import (
    Pointer,
    StatusChange,
    close_out,
    refuse_other_meaning,
)
from loopwright.adapters.sources.text.reading import read, recognise
from loopwright.core.values.errors import BadPlan
from loopwright.core.values.policy import GateCommand
from loopwright.ports import Files, ItemProgress, Judged, Mark, Progress

SOURCE = OrchestratorSource()
DOCS = Path(__file__).parents[3] / "docs" / "reference" / "sources" / "orchestrator.md"
PLACE = golden.DATA / "orchestrator" / "mixed" / "given"
FOLDER = "roadmaps/2026-03-01-00-limits/rev-001"
VIEW, PROSE = f"{FOLDER}/roadmap-view.json", f"{FOLDER}/roadmap.md"
HISTORY = "roadmaps/2026-03-01-00-limits/roadmap-history.md"
KEYS = ("milestone-1", "milestone-2", "milestone-10")
BUNDLE = SOURCE.files(PLACE)


def changed(file: str, before: str, new: str, count: int = 1) -> Files:
    """Return the sample with some words of one file replaced."""
    text = BUNDLE[file].decode()
    assert before in text
    return {**BUNDLE, file: text.replace(before, new, count).encode()}


def state(**more: Any) -> Files:
    return {
        **BUNDLE,
        "state.json": json.dumps({**json.loads(BUNDLE["state.json"]), **more}, indent=2).encode(),
    }


def told_state(made: Files) -> Any:
    return json.loads(made["state.json"])


def all_done(**more: Any) -> Progress:
    """Return that every milestone is done, by default in the tree that the complete gate is about to judge."""
    done = told({key: ItemProgress(mark=Mark.DONE) for key in KEYS})
    return replace(done, **{"final": True, **more})


@pytest.mark.capability("C022")
def test_milestones_become_tasks_with_their_directions() -> None:
    work = SOURCE.parse(BUNDLE, "orchestrator")
    assert (work.title, dict(work.settings)) == ("Rate limits", {"parallel": 1})
    assert marks(work) == {"milestone-1": Mark.DONE, "milestone-2": Mark.RUNNING, "milestone-10": Mark.OPEN}
    last = work.tasks[-1]
    assert (last.depends_on, last.phase) == (("milestone-1", "milestone-2"), "lane-docs")
    assert last.acceptance == (GateCommand(name="make test", command="make test"),)
    assert "Direction id: `direction-milestone-10-a`" in last.description
    assert "milestone-2" not in last.description.replace("`milestone-1`, `milestone-2`", "")
    assert "Completion Pointers" not in last.description
    assert "Nobody calls more often" in work.context
    assert "## Baseline Checks" in work.context


@each_case(
    ("written", "commands"),
    [
        ("- `make test` passes", ["make test"]),
        ("- Tests: `make test`\n- Lint: `make lint`.\n- look at `README.md` too", ["make test", "make lint"]),
        ("1. Run `cargo build` and `cargo test`", ["cargo build", "cargo test"]),
        ("- none", []),
        ("- none\n\n### Later\n\nwords\n## Other\n\n- `make other`", []),
    ],
)
def test_commands_among_the_baseline_checks_are_gates_where_nobody_has_named_any(
    written: str, commands: list[str]
) -> None:
    work = SOURCE.parse(changed(f"{FOLDER}/verification.md", "- `make test` passes", written), "orchestrator")
    assert ([one.command for one in work.baseline], work.gates) == (commands, None)


def test_the_place_is_the_folder_or_its_state(tmp_path: Path) -> None:
    for place in (PLACE, PLACE / "state.json"):
        assert recognise(place, registry.sources()).kind == "orchestrator"
        assert read(SOURCE, place).title == "Rate limits"
    (tmp_path / "orchestrator").mkdir()
    assert recognise(tmp_path / "orchestrator", registry.sources()).kind == "orchestrator"
    assert not SOURCE.recognises(tmp_path)


@pytest.mark.capability("C022", "C057")
def test_a_start_is_told_from_a_resume_and_an_end_from_both(wording: Wording) -> None:
    assert read_bundle(BUNDLE, "x").resumes
    fresh = BUNDLE
    for before, status in (("done", "pending"), ("in-progress", "pending")):
        fresh = {
            name: content.replace(f"[{before}]".encode(), f"[{status}]".encode()).replace(
                f'"status": "{before}"'.encode(), f'"status": "{status}"'.encode()
            )
            for name, content in fresh.items()
        }
    assert not read_bundle(fresh, "x").resumes
    assert read_bundle({**fresh, "state.json": state(controller_stage="blocked")["state.json"]}, "x").resumes
    done = after(SOURCE, BUNDLE, all_done())
    bundle = read_bundle(done, "x")
    assert bundle.is_terminal
    assert told_state(done)["controller_stage"] == "done"
    wording(SOURCE.parse(done, "x").notes[-1])
    live = {
        **done,
        "state.json": state(active_rounds=[{"round_id": "round-3", "stage": "review"}])["state.json"],
    }
    assert not read_bundle(live, "x").is_terminal
    assert "x: not finished: round round-3 is live" in SOURCE.parse(live, "x").notes


@pytest.mark.capability("C059")
def test_what_older_contracts_left_behind_is_said_and_kept(wording: Wording) -> None:
    notes = SOURCE.parse(BUNDLE, "orchestrator").notes
    wording(notes[:2])
    made = after(SOURCE, BUNDLE, told({"milestone-10": ItemProgress(mark=Mark.BLOCKED, reason="why")}))
    assert told_state(made) == {
        **told_state(BUNDLE),
        "resume_errors": {"controller": "Loopwright: milestone-10 is blocked: why"},
    }


def pointed(selector: str, instead_of: str = "#### Completion Pointers: milestone-2") -> Files:
    return changed(VIEW, f'"selector": "{instead_of}"', f'"selector": "{selector}"')


WRONG: list[tuple[str, Files, str]] = [
    ("no state", {}, "x/state.json:1: there is no such file: restore it"),
    ("corrupt state", {"state.json": b'{"contract_version": "orch'}, "x/state.json:1: this is not JSON"),
    ("empty state", {"state.json": b""}, "x/state.json:1: this is not JSON"),
    ("contract", state(contract_version=3), "contract_version: expected one of: orchestrator-v2, 2; got 3"),
    ("stage", state(controller_stage="dispatch"), "controller_stage: expected one of"),
    ("traversal", state(roadmap_id="../../etc"), "roadmap_id: expected a text like"),
    ("revision", state(roadmap_revision="rev-1"), "roadmap_revision: expected a text like"),
    ("other folder", state(roadmap_dir="elsewhere"), "roadmap_dir: expected a path that ends with"),
    (
        "round",
        state(active_rounds=[{"round_id": "r", "stage": 3}]),
        "active_rounds[0].stage: expected a text",
    ),
    (
        "no view",
        {name: content for name, content in BUNDLE.items() if name != VIEW},
        f"x/state.json:7: roadmap_dir: {VIEW} is missing",
    ),
    ("view version", changed(VIEW, "roadmap-view-v1", "roadmap-view-v9"), "schema_version: expected one of"),
    ("status", changed(VIEW, '"pending"', '"later"'), "milestones[2].status: expected one of"),
    (
        "other id",
        changed(VIEW, '"rev-001"', '"rev-002"'),
        'roadmap_revision: expected "rev-001" as in state.json',
    ),
    (
        "twice",
        changed(VIEW, '"milestone_id": "milestone-2"', '"milestone_id": "milestone-1"'),
        "a second time",
    ),
    ("anchor", changed(VIEW, '"milestone-2-status",', '"gone",'), 'there is no anchor "gone"'),
    (
        "ambiguous",
        pointed("- Coordination notes: none"),
        "it is ambiguous: lines 36, 60, 82",
    ),
    (
        "nowhere",
        pointed("Completion signal:"),
        "it is none of them",
    ),
    (
        "wrong milestone",
        pointed("#### Completion Pointers: milestone-1"),
        "which is in another milestone",
    ),
    (
        "not the heading",
        pointed("### [done] 1. Counting calls", "### [in-progress] 2. Refusing calls"),
        "not the milestone's heading",
    ),
    (
        "unknown need",
        changed(VIEW, '"milestone-2"\n      ],', '"milestone-3"\n      ],'),
        'unknown milestone "milestone-3"',
    ),
    (
        "direction",
        changed(
            VIEW, '"milestone_id": "milestone-2",\n      "summary"', '"milestone_id": "m",\n      "summary"'
        ),
        'unknown milestone "m"',
    ),
    (
        "status differs",
        changed(PROSE, "### [in-progress] 2.", "### [pending] 2."),
        'status is "pending" here and "in-progress"',
    ),
    ("title differs", changed(PROSE, "2. Refusing calls", "2. Refusing all"), 'title is "Refusing all" here'),
    ("no status", changed(PROSE, "### [done] 1.", "### 1."), "a milestone's heading begins with [pending]"),
    ("no goal", changed(PROSE, "## Goal", "## Aim"), "the section ## Goal is missing"),
    ("no intent", changed(PROSE, "- Intent:", "- Meaning:"), "`Intent:` is missing here"),
    ("no summary", changed(PROSE, "- Summary:", "- Gist:"), "`Summary:` is missing here"),
    (
        "depends",
        changed(PROSE, "- Depends on: `milestone-1`\n", "- Depends on: none\n"),
        "depends on none here and on milestone-1",
    ),
    ("lane", changed(PROSE, "lane: `lane-docs`", "lane: `lane-core`"), 'parallel_lane is "lane-core" here'),
    ("gone", changed(PROSE, "`milestone-10`", "`milestone-11`"), 'has no milestone "milestone-11"'),
    (
        "checks",
        changed(f"{FOLDER}/verification.md", "## Manual Checks", "## Checks"),
        "## Manual Checks is missing",
    ),
    ("not text", {**BUNDLE, PROSE: b"\xff"}, "roadmap.md:1: this is not UTF-8"),
]


@each_case(("files", "words"), [one[1:] for one in WRONG], ids=[one[0] for one in WRONG])
@pytest.mark.capability("C022", "C057", "C006")
def test_an_invalid_bundle_is_an_error_and_never_finished(files: Files, words: str) -> None:
    problems = refused(SOURCE, files, "x")
    assert any(words in problem for problem in problems), problems
    with pytest.raises(BadPlan):
        read_bundle(files, "x")
    with pytest.raises(BadPlan):  # and nothing is written into what cannot be believed
        SOURCE.written(files, told({"milestone-2": ItemProgress(mark=Mark.DONE)}))


def test_a_missing_state_is_not_made_up(tmp_path: Path) -> None:
    (tmp_path / "orchestrator" / "roadmaps").mkdir(parents=True)
    with pytest.raises(BadPlan, match=r"orchestrator/state\.json:1: there is no such file"):
        SOURCE.parse(SOURCE.files(tmp_path / "orchestrator"), "orchestrator")
    assert list((tmp_path / "orchestrator").iterdir()) == [tmp_path / "orchestrator" / "roadmaps"]


def test_the_folder_of_another_tool_is_one_problem() -> None:
    (problem,) = refused(SOURCE, {"state.json": b'{"version": 1, "agents": []}'}, "x")
    assert problem.startswith("x/state.json:1: this does not look like the state of an orchestrator folder")
    assert "`loopwright scaffold orchestrator GOAL`" in problem


@each_case(("file", "is_added"), [(VIEW, True), (HISTORY, True), (PROSE, False)])
def test_what_a_migration_adds_is_said_where_it_is_missing(file: str, *, is_added: bool) -> None:
    (problem,) = refused(SOURCE, {name: content for name, content in BUNDLE.items() if name != file}, "x")
    assert f"{file} is missing in this folder: restore it" in problem
    assert ("`loopwright scaffold orchestrator --migrate`" in problem) is is_added


def change(
    key: str = "milestone-2", now: str = "in-progress", then: str = "done", anchor: str = ""
) -> StatusChange:
    return StatusChange(
        milestone_id=key,
        expected_current_status=now,
        target_status=then,
        roadmap_view_anchor=anchor or f"{key}-status",
    )


@pytest.mark.capability("C023")
def test_a_closeout_changes_status_in_both_forms_and_adds_a_pointer() -> None:
    pointer = Pointer(
        anchor_id="milestone-2-completion", text="Completed by round-7; evidence: tests passed."
    )
    made = close_out(BUNDLE, read_bundle(BUNDLE, "x"), [change()], [pointer])
    assert set(made) == {VIEW, PROSE}
    before, now = (BUNDLE[PROSE].decode().splitlines(), made[PROSE].decode().splitlines())
    assert [line for line in now if line not in before] == [
        "### [done] 2. Refusing calls",
        "- Completed by round-7; evidence: tests passed.",
    ]
    view = json.loads(made[VIEW])
    assert view["milestones"][1]["status"] == "done"
    assert view["anchors"]["milestone-2-status"]["selector"] == "### [done] 2. Refusing calls"
    closed = {**BUNDLE, **made}
    assert close_out(closed, read_bundle(closed, "x"), [], [pointer]) == {}


@each_case(
    ("asked", "words"),
    [
        ([change("milestone-3")], "there is no such milestone"),
        ([change(now="pending")], "expected to be pending, but it is in-progress"),
        ([change(then="finished")], '"finished" is not a status'),
        ([change(anchor="milestone-1-status")], "is not the anchor of its status"),
        ([Pointer(anchor_id="milestone-2-status", text="x")], "not the anchor of a milestone's completion"),
        ([Pointer(anchor_id="milestone-2-completion", text="a\n### [done] 9. New")], "expected one line"),
        (
            [Pointer(anchor_id="milestone-2-completion", text="## Goal")],
            "expected one line that is not a heading",
        ),
    ],
)
@pytest.mark.capability("C023")
def test_a_closeout_that_does_not_fit_is_refused_as_a_whole(asked: list[Any], words: str) -> None:
    changes = [one for one in asked if isinstance(one, StatusChange)]
    pointers = [one for one in asked if isinstance(one, Pointer)]
    with pytest.raises(BadPlan, match=words):
        close_out(BUNDLE, read_bundle(BUNDLE, "x"), [change("milestone-10", "pending"), *changes], pointers)


@each_case(
    ("file", "before", "new", "words"),
    [
        (PROSE, "- One after the other.", "- All at once.", "roadmap.md:19: "),
        (PROSE, "- Summary: refusing calls", "- Summary: allowing calls", "was "),
        (
            VIEW,
            '"summary": "Refusing calls',
            '"summary": "Allowing calls',
            "roadmap-view.json says something else",
        ),
        (
            f"{FOLDER}/verification.md",
            "- `make test` passes",
            "- none",
            "verification.md says something else",
        ),
    ],
)
@pytest.mark.capability("C023")
def test_a_closeout_that_touches_meaning_is_refused(file: str, before: str, new: str, words: str) -> None:
    was = read_bundle(BUNDLE, "x")
    closed = after(SOURCE, BUNDLE, told({"milestone-2": ItemProgress(mark=Mark.DONE, commit="abc")}))
    refuse_other_meaning(was, read_bundle(closed, "x"))
    touched = {**closed, file: closed[file].decode().replace(before, new, 1).encode()}
    assert touched[file] != closed[file]
    with pytest.raises(BadPlan, match=words):
        refuse_other_meaning(was, read_bundle(touched, "x"))


@each_case(
    ("file", "before", "new"),
    [
        (PROSE, "- One after the other.", "- All at once."),
        (f"{FOLDER}/verification.md", "- `make test` passes", "- none"),
    ],
)
@pytest.mark.capability("C023")
def test_a_closeout_of_a_bundle_that_means_something_else_by_now_writes_nothing(
    file: str, before: str, new: str
) -> None:
    touched = {**BUNDLE, file: BUNDLE[file].decode().replace(before, new, 1).encode()}
    with pytest.raises(BadPlan, match="changes in a new revision, not in a closeout"):
        close_out(touched, read_bundle(BUNDLE, "x"), [change()], [])


@settings(deadline=None, max_examples=50)
@given(
    words=st.text(max_size=60),
    checks=st.lists(st.text(max_size=30), max_size=3),
    ends=st.lists(st.sampled_from(Mark), min_size=2, max_size=2),
)
@pytest.mark.capability("C023")
def test_whatever_a_plan_has_to_tell_a_roadmap_means_the_same(
    words: str, checks: list[str], ends: list[Mark]
) -> None:
    items = {
        key: ItemProgress(mark=mark, commit="abc", summary=words, reason=words, checks=tuple(checks))
        for key, mark in zip(("milestone-2", "milestone-10"), ends, strict=True)
    }
    closed = after(SOURCE, BUNDLE, told(items))
    assert SOURCE.parse(closed, "x").sha256 == SOURCE.parse(BUNDLE, "x").sha256
    refuse_other_meaning(read_bundle(BUNDLE, "x"), read_bundle(closed, "x"))


@pytest.mark.capability("C059")
def test_what_somebody_else_wrote_about_a_resume_stays() -> None:
    held = state(resume_errors={"controller": "disk full", "round-1": "x"})
    blocked = after(SOURCE, held, told({"milestone-2": ItemProgress(mark=Mark.BLOCKED, reason="why")}))
    errors = told_state(blocked)["resume_errors"]
    assert errors == {"controller": "disk full Loopwright: milestone-2 is blocked: why", "round-1": "x"}
    free = after(SOURCE, blocked, told({"milestone-2": ItemProgress(mark=Mark.RUNNING)}))
    assert told_state(free)["resume_errors"] == {"controller": "disk full", "round-1": "x"}


@pytest.mark.capability("C061")
@each_case(
    ("errors", "stage"),
    [
        ({"controller": "planner failed"}, "dispatch-rounds"),
        ({"controller": "planner failed Loopwright: milestone-2 is blocked: why"}, "dispatch-rounds"),
        ({"round-1": "no record"}, "dispatch-rounds"),
        ({"controller": {"code": 3}}, "dispatch-rounds"),
        ({"controller": "Loopwright: milestone-2 is blocked: why"}, "done"),
        ({"controller": None, "round-1": ""}, "done"),
        (None, "done"),
    ],
)
def test_no_controller_is_done_over_an_error_that_somebody_else_has_not_resolved(
    errors: Any, stage: str
) -> None:
    held = state(controller_stage="blocked", resume_errors=errors)
    done = after(SOURCE, held, all_done())
    assert told_state(done)["controller_stage"] == stage
    assert read_bundle(done, "x").is_terminal == (stage == "done")


@pytest.mark.capability("C059", "C061")
def test_a_controller_is_done_only_when_the_whole_is_verified_and_else_says_why_not() -> None:
    """Whatever the milestones say, and also where the state said `done` before."""
    passed, refused = Judged(passed=True, at=AT), Judged(passed=False, at=AT, failed=("greeting", "lint"))
    blocked = {**all_done().items, "fix-1": ItemProgress(mark=Mark.BLOCKED, reason="3 of 3 attempts failed")}
    unread = "the plan is not verified: gate:all could not run: no disk"
    cases: list[tuple[Progress, str, str]] = [
        (all_done(final=False, judged=passed), "done", ""),
        (all_done(), "done", ""),
        (all_done(final=False), "dispatch-rounds", ""),
        (
            all_done(final=False, failed=True, judged=refused, stopped="gate:all failed"),
            "dispatch-rounds",
            "the checks of the whole failed: greeting, lint",
        ),
        (
            all_done(final=False, failed=True, stopped="gate:all could not run: no disk"),
            "dispatch-rounds",
            unread,
        ),
        (all_done(final=False, stopped="gate:all could not run: no disk"), "dispatch-rounds", unread),
        (
            all_done(final=False, items=blocked, rests=True, stopped="1 task needs you"),
            "dispatch-rounds",
            "fix-1 is blocked: 3 of 3 attempts failed",
        ),
    ]
    for before in (state(), state(controller_stage="done")):
        for progress, stage, error in cases:
            now = told_state(after(SOURCE, before, progress))
            said = (now.get("resume_errors") or {}).get("controller", "")
            assert (now["controller_stage"], said) == (stage, f"Loopwright: {error}" if error else "")
            assert (
                told_state(after(SOURCE, after(SOURCE, before, progress), all_done()))["controller_stage"]
                == "done"
            )


@pytest.mark.capability("C061")
def test_what_another_controller_has_to_end_keeps_a_roadmap_open() -> None:
    live = {"active_rounds": [{"round_id": "round-3", "stage": "review"}]}
    ours = {"controller": "Loopwright: milestone-2 is blocked: why"}
    for found, ends in (
        (live, ("round round-3 is live",)),
        ({"roadmap_update": {"reason": "split"}}, ("a roadmap update is under way",)),
        ({"resume_errors": {"controller": "planner failed"}}, ("controller: planner failed",)),
        ({"resume_errors": ours}, ()),
        ({}, ()),
    ):
        assert SOURCE.parse(state(**found), "x").open_ends == ends
    done = after(SOURCE, BUNDLE, all_done(final=False, failed=True, stopped="why"))
    assert SOURCE.parse(done, "x").open_ends == ("controller: Loopwright: the plan is not verified: why",), (
        "no milestone is left that would clear it"
    )


@each_case("mark", [Mark.OPEN, Mark.RUNNING])
def test_a_controller_that_was_done_goes_on_when_a_milestone_is_opened_again(mark: Mark) -> None:
    done = after(SOURCE, BUNDLE, all_done())
    again = after(SOURCE, done, told({"milestone-2": ItemProgress(mark=mark)}))
    assert told_state(again)["controller_stage"] == "dispatch-rounds"
    assert read_bundle(again, "x").unfinished == ("milestone-2",)


def test_the_pointer_of_one_plan_is_not_taken_for_anothers(wording: Wording) -> None:
    both = BUNDLE
    for plan, commit in (("plan_10", "abc1234"), ("plan_1", "abc5678")):
        progress = golden.progress({"plan_id": plan})
        done = {"milestone-2": ItemProgress(mark=Mark.DONE, commit=commit)}
        both = golden.told(SOURCE, both, replace(progress, items=done))
    lines = both[PROSE].decode().splitlines()
    wording([line for line in lines if "Loopwright" in line])
    assert [task.commit for task in SOURCE.parse(both, "x").tasks] == [None, "abc5678", None]


@settings(max_examples=40, deadline=None)
@given(
    progress=st.dictionaries(st.sampled_from([*KEYS, "gone"]), laws.items),
    crlf=st.booleans(),
    mark=st.booleans(),
)
def test_what_was_told_is_read_again_and_nothing_else_changed(
    progress: dict[str, ItemProgress], crlf: bool, mark: bool
) -> None:
    before = {
        name: (b"\xef\xbb\xbf" if mark else b"") + (content.replace(b"\n", b"\r\n") if crlf else content)
        for name, content in BUNDLE.items()
    }
    made = after(SOURCE, before, told(progress))
    work, was = SOURCE.parse(made, "x"), SOURCE.parse(before, "x")
    assert work.sha256 == was.sha256
    for task in work.tasks:
        item = progress.get(task.key)
        stays = item is None or item.mark in (Mark.BLOCKED, Mark.SKIPPED)
        assert task.mark is (marks(was)[task.key] if stays or item is None else item.mark)
    assert all(content.startswith(b"\xef\xbb\xbf") == mark for content in made.values())
    if crlf:
        assert all(b"\n" not in content.replace(b"\r\n", b"") for content in made.values())
    # Everything taken back leaves the roadmap as it was.
    again = {key: ItemProgress(mark=marks(was)[key]) for key in progress if key in KEYS}
    back = after(SOURCE, made, told(again))
    assert back[VIEW] == before[VIEW]
    if all(marks(was)[key] is not Mark.DONE for key in progress if key in KEYS):
        assert back[PROSE] == before[PROSE]


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_persons_edit_between_two_writes_survives(data: st.DataObject) -> None:
    progress = told({"milestone-2": data.draw(laws.items)})
    made = after(SOURCE, BUNDLE, progress)
    line = data.draw(
        st.sampled_from(
            ["- Intent: counting", "- No new service.", "- Coordination notes: none", "  calls come in"]
        )
    )
    new = f"{line} and {data.draw(st.sampled_from(['more', 'Ünï', '`code`']))}"
    edited = {**made, PROSE: made[PROSE].decode().replace(line, new, 1).encode()}
    assert edited[PROSE] != made[PROSE]
    assert SOURCE.written(edited, progress) == {}
    assert new in after(SOURCE, edited, told({"milestone-10": ItemProgress(mark=Mark.DONE)}))[PROSE].decode()


@each_case(
    ("file", "content"),
    [
        ("state.json", b"[" * 4_000_000),
        (VIEW, b'{"milestones": [' + b"{},\n" * 20_000 + b"{}]}"),
        (PROSE, b"### [done] 1. x\n" * 300_000),
        (PROSE, b"## Milestones\n" + b"### [done] 1. x\n- Milestone id: `a`\n" * 100_000),
        (PROSE, b"## Milestones\n### [done] 1. x\n- Intent: a\n" + b"  b\n" * 1_000_000),
        (PROSE, b"```" * 1_500_000),
        (PROSE, b"#" * 5_000_000),
    ],
)  # fmt: skip
def test_a_hostile_file_is_refused_with_its_place(file: str, content: bytes) -> None:
    problems = refused(SOURCE, {**BUNDLE, file: content}, "x")
    assert len(problems) <= 51
    assert problems[0].startswith(f"x/{file}:")


def test_the_sample_in_the_documentation_is_read() -> None:
    section = DOCS.read_text(encoding="utf-8")
    blocks = [part.split("\n```", 1)[0] for part in section.split("\n```json\n")[1:3]]
    prose = section.split("\n````markdown\n")[1].split("\n````")[0]
    files = {
        **BUNDLE,
        "state.json": blocks[0].encode(),
        VIEW: blocks[1].encode(),
        PROSE: prose.encode(),
    }
    work = SOURCE.parse(files, "orchestrator")
    assert [(task.key, task.mark) for task in work.tasks] == [("milestone-1", Mark.OPEN)]
    assert not read_bundle(files, "x").resumes


def test_the_template_of_the_scaffold_has_nothing_to_do() -> None:
    work = SOURCE.parse(state(roadmap_id="TEMPLATE_ROADMAP_ID"), "x")
    assert work.tasks == ()
    assert "this is the template of the scaffold" in work.notes[0]
