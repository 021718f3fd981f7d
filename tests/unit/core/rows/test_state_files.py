"""The files in a state folder: where they are, their names, and their schemas."""

from datetime import UTC, datetime

import jsonschema
import pytest
from tests.cases import each_case

from loopwright.core.rows.model import Role, Run
from loopwright.core.rows.state_files import session_document, session_file, state_schemas
from loopwright.core.values.state_folders import is_state_path
from loopwright.core.values.states import RunState

AT = datetime(2026, 1, 2, tzinfo=UTC)


def run(id: str, role: Role, state: RunState) -> Run:
    return Run(
        id=id,
        plan_id="plan_1",
        role=role,
        state=state,
        session_ref="s",
        started_at=AT,
        ended_at=AT,
        created_at=AT,
    )


@each_case(
    ("path", "ours"),
    [
        (".loopwright", True),
        ("a/.loopwright/plans/x.json", True),
        (".claude/state/plans/x.json", True),
        ("a/.claude/state", True),
        (".claude/settings.json", False),
        (".claude/states/x", False),
        ("x.claude/state/x", False),
        ("state/.claude", False),
    ],
)
def test_a_path_in_a_state_folder_is_known(path: str, *, ours: bool) -> None:
    assert is_state_path(path) is ours


@pytest.mark.capability("C118")
def test_the_name_of_a_session_file_never_leaves_its_folder() -> None:
    assert session_file("0f3a-x_1") == "0f3a-x_1"
    for odd in ("../x", "a/b", "", "x" * 101, ".x"):
        assert session_file(odd).startswith("session_")
        assert "/" not in session_file(odd)


@each_case(
    ("last", "ended"),
    [(RunState.RUNNING, None), (RunState.COMPLETE, "2026-01-02T00:00:00+00:00")],
)
def test_a_session_has_its_runs_in_order_and_ends_with_the_last(last: RunState, ended: str | None) -> None:
    runs = [run("run_1", Role.IMPLEMENTER, RunState.COMPLETE), run("run_2", Role.IMPLEMENTER, last)]
    made = session_document("proj_1", runs)
    jsonschema.Draft202012Validator(state_schemas()["state_session"]).validate(made)
    assert [one["run_id"] for one in made["runs"]] == ["run_1", "run_2"]
    assert (made["status"], made["ended_at"]) == (last.value, ended)
