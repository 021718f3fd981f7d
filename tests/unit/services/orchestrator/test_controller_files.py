"""What the controller writes itself: its own files alone, and only what changes."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.orchestrator import bundle
from tests.cases import each_case

from loopwright.core.orchestrator.manifest import ROUND_FILES, STATE, round_file, update_file
from loopwright.core.orchestrator.records import LiveRound, read_state
from loopwright.core.values.errors import BadPlan, IllegalTransition
from loopwright.core.values.round_states import ControllerStage, RoundRole, RoundStage
from loopwright.services import orchestrator
from loopwright.services.orchestrator import state_edits as edits
from loopwright.services.orchestrator.control_plane import ControlPlane
from loopwright.services.orchestrator.controller_files import ControllerFiles, RoleOwned
from loopwright.services.orchestrator.record_check import main

ROUND = LiveRound(
    round_id="round-001",
    stage=RoundStage.PLAN,
    branch="orchestrator/round-001-milestone-1",
    worktree_path="orchestrator/worktrees/round-001",
)


def folder(root: Path, **state: Any) -> ControllerFiles:
    for path, text in bundle.files(1, **state).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return ControllerFiles(root=root)


@pytest.mark.clause("X29")
@pytest.mark.capability("C062")
@each_case("key", [key for key, (_, owner) in ROUND_FILES.items() if owner is not RoundRole.CONTROLLER])
def test_the_controller_cannot_write_what_a_role_owns(tmp_path: Path, key: str) -> None:
    with pytest.raises(RoleOwned):
        folder(tmp_path).write(tmp_path, round_file(key, "round-001"), "x")
    assert not (tmp_path / round_file(key, "round-001")).exists()
    with pytest.raises(RoleOwned):
        folder(tmp_path).write(tmp_path, update_file("round-001", review=True), "x")


@pytest.mark.capability("C062")
def test_no_other_module_of_the_controller_opens_a_file_to_write() -> None:
    writers = {"write_text", "write_bytes", "unlink", "rename", "replace_file", "mkdir", "touch"}
    package = Path(orchestrator.__file__).parent
    for path in package.glob("*.py"):
        if path.name in ("controller_files.py", "scaffolding.py"):
            continue
        names = {one.attr for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.Attribute)}
        calls = {one.id for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.Name)}
        assert not names & writers, path
        assert "open" not in calls, path


def test_a_change_of_the_state_leaves_every_other_byte(tmp_path: Path) -> None:
    foreign = {"round_id": "round-000", "stage": "review", "branch": "b", "worktree_path": "w", "theirs": 1}
    files = folder(tmp_path, active_rounds=[foreign], round_artifacts={"old": True})
    before = (tmp_path / STATE).read_text()
    files.edit_state(edits.add_round(ROUND))
    files.edit_state(edits.round_to("round-001", RoundStage.IMPLEMENT))
    files.edit_state(edits.round_error("round-001", "lost"))
    found = json.loads((tmp_path / STATE).read_text())
    assert found["active_rounds"][0] == foreign
    assert (found["active_rounds"][1]["stage"], found["active_rounds"][1]["resume_error"]) == (
        "implement",
        "lost",
    )
    files.edit_state(edits.drop_round("round-001"))
    assert json.loads((tmp_path / STATE).read_text()) == json.loads(before)
    files.edit_state(edits.drop_round("round-009"))
    assert '"round_artifacts"' in (tmp_path / STATE).read_text()


@pytest.mark.capability("C046")
def test_an_illegal_transition_writes_nothing(tmp_path: Path) -> None:
    files = folder(tmp_path, active_rounds=[])
    files.edit_state(edits.add_round(ROUND))
    before = (tmp_path / STATE).read_bytes()
    for change in (
        edits.round_to("round-001", RoundStage.REVIEW),
        edits.round_to("round-002", RoundStage.REVIEW),
        edits.controller_to(ControllerStage.BLOCKED),
    ):
        with pytest.raises(IllegalTransition):
            files.edit_state(change)
    assert (tmp_path / STATE).read_bytes() == before


def test_errors_are_cleared_and_recorded_beside_those_of_others(tmp_path: Path) -> None:
    files = folder(tmp_path, resume_errors={"theirs": "kept"})
    files.edit_state(edits.controller_error("lost"))
    assert read_state(json.loads((tmp_path / STATE).read_text())).errors == {
        "theirs": "kept",
        "controller": "lost",
    }
    files.edit_state(edits.controller_error(None))
    assert ControlPlane(root=tmp_path).state().errors == {"theirs": "kept"}
    files.edit_state(edits.all_errors_cleared)
    assert ControlPlane(root=tmp_path).state().errors == {}


def test_a_state_without_rounds_gets_its_first(tmp_path: Path) -> None:
    files = folder(tmp_path)
    document = json.loads((tmp_path / STATE).read_text())
    del document["active_rounds"]
    (tmp_path / STATE).write_text(json.dumps(document))
    files.edit_state(edits.add_round(ROUND))
    assert ControlPlane(root=tmp_path).state().active_rounds == (ROUND,)
    (tmp_path / STATE).unlink()
    with pytest.raises(BadPlan):
        ControlPlane(root=tmp_path).state()


@pytest.mark.capability("C023")
def test_a_closeout_that_does_not_fit_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    from loopwright.core.orchestrator.records import Entry, MilestoneChange, RoadmapCloseout

    files, plane = folder(tmp_path), ControlPlane(root=tmp_path)
    before = plane.files()
    change = MilestoneChange(
        milestone_id="milestone-1",
        expected_current_status="in-progress",
        target_status="done",
        roadmap_view_anchor="milestone-1-status",
    )
    wrong = Entry(anchor_id="milestone-1-status", text="x")
    for closeout in (
        RoadmapCloseout(mode="status-only", status_changes=(change,)),
        RoadmapCloseout(mode="status-only", history_entries=(wrong,)),
        RoadmapCloseout(mode="status-only", completion_pointers=(wrong,)),
    ):
        with pytest.raises(BadPlan):
            files.close_milestones(tmp_path, before, closeout)
    history = tmp_path / "orchestrator/roadmaps/2026-03-01-00-greet/roadmap-history.md"
    history.write_text(history.read_text() + "## Completed Rounds\n")
    twice = RoadmapCloseout(mode="status-only", history_entries=(Entry(anchor_id="history", text="x"),))
    with pytest.raises(BadPlan, match="not exactly one line"):
        files.close_milestones(tmp_path, plane.files(), twice)
    history.write_text(history.read_text().removesuffix("## Completed Rounds\n"))
    assert plane.files() == before


def test_the_check_of_a_stage_names_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    ids = ("round-001", bundle.ROADMAP, "rev-001", f"orchestrator/roadmaps/{bundle.ROADMAP}/rev-001")
    assert main(["plan", *ids]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "selection-record.json: missing",
        "round-plan-record.json: missing",
        "plan.md: missing",
    ]
    request = tmp_path / round_file("roadmap_update_request", "round-001")
    request.parent.mkdir(parents=True)
    request.write_text("split it\n")
    assert main(["plan", *ids]) == 0
    (tmp_path / round_file("plan", "round-001")).write_text("a plan\n")
    assert main(["plan", *ids]) == 1
    assert main(["file", *ids, "README.md"]) == 1
    assert main(["update", "round-001", bundle.ROADMAP, "rev-002", ids[-1], "none.md"]) == 1
    (tmp_path / "update.md").write_text("### Rationale\nx\n")
    capsys.readouterr()
    assert main(["update", "round-001", bundle.ROADMAP, "rev-002", ids[-1], "update.md"]) == 1
    said = capsys.readouterr().out
    assert "the section Source Round is missing" in said
    assert "expected a path that ends with" in said
    (tmp_path / STATE).write_text("{")
    assert main(["review", *ids]) == 1


@pytest.mark.capability("C067")
def test_the_files_of_a_round_are_in_its_worktree_while_it_is_live_and_then_in_the_checkout(
    tmp_path: Path,
) -> None:
    plane, path = ControlPlane(root=tmp_path), round_file("plan", "round-001")
    for root in (tmp_path / ROUND.worktree_path, tmp_path):
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(f"in {root.name}\n")
    assert plane.at(ROUND.worktree_path).text(path) == "in round-001\n"
    assert plane.at(None).text(path) == f"in {tmp_path.name}\n"


@pytest.mark.capability("C067")
def test_no_module_but_the_resolver_joins_the_path_of_a_worktree() -> None:
    package = Path(orchestrator.__file__).parent
    for path in (*package.glob("*.py"), package.parent / "dashboard/rounds.py"):
        joined = [
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.BinOp) and "worktree_path" in ast.unparse(node.right)
        ]
        assert not joined or path.name == "control_plane.py", path


@pytest.mark.capability("C057")
@pytest.mark.capability("C059")
@each_case(
    ("text", "errors"),
    [
        ("{}", {"controller": "no base_branch"}),
        ('{"resume_errors": {"theirs": 1}}', {"theirs": 1, "controller": "no base_branch"}),
        ('{"resume_errors": "planner failed"}', {"controller": "no base_branch"}),
        ("[]", None),
        ("{", None),
    ],
)
def test_an_error_is_recorded_in_a_state_that_is_not_valid_if_it_is_an_object(
    tmp_path: Path, text: str, errors: dict[str, Any] | None
) -> None:
    files = folder(tmp_path)
    place = tmp_path / STATE
    place.write_text(text)
    assert files.record_error("no base_branch") is (errors is not None)
    if errors is None:
        assert place.read_text() == text
    else:
        assert json.loads(place.read_text())["resume_errors"] == errors


def test_the_state_of_another_tool_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    writer, state = folder(tmp_path), tmp_path / STATE
    state.write_text('{"version": 1}')
    with pytest.raises(BadPlan, match="does not look like the state of an orchestrator folder"):
        ControlPlane(root=tmp_path).state()
    assert not writer.record_error("why")
    assert state.read_text() == '{"version": 1}'
