"""Events: their catalogue, and the ids that each takes from the rows it is about."""

import ast
from pathlib import Path

import pytest
from tests.cases import each_case
from tests.contracts.store import rows

import loopwright
from loopwright.core.rows.events import CATALOGUE, Importance, happened
from loopwright.core.rows.model import Leg, Role, Run
from loopwright.core.values.states import AttemptState, LessonState, QuestionState, RunState

PROJECT = rows.project()
LOOP = rows.loop(PROJECT)
PLAN = rows.plan(LOOP)
TASK = rows.task(PLAN)
ATTEMPT = rows.attempt(TASK)
RUN = Run(
    id="run_1",
    plan_id=PLAN.id,
    task_id=TASK.id,
    attempt_id=ATTEMPT.id,
    role=Role.GATE,
    state=RunState.QUEUED,
    created_at=rows.AT,
)


def test_an_event_about_a_run_names_everything_that_it_belongs_to() -> None:
    event = happened("run_started", "loopwright", plan=PLAN, run=RUN, role="gate")
    assert (event.project, event.loop, event.plan) == (PROJECT.id, LOOP.id, PLAN.id)
    assert (event.task, event.attempt, event.run) == (TASK.id, ATTEMPT.id, RUN.id)
    assert event.payload == {"role": "gate"}
    assert event.actor == "loopwright"


def test_an_event_about_an_attempt_names_its_task_and_no_run() -> None:
    event = happened("attempt_working", "loopwright", plan=PLAN, attempt=ATTEMPT)
    assert (event.task, event.attempt, event.run) == (TASK.id, ATTEMPT.id, None)


def test_the_plan_is_known_from_any_row_of_it() -> None:
    for row in ({"task": TASK}, {"attempt": ATTEMPT}, {"run": RUN}):
        assert happened("task_queued", "me", **row).plan == PLAN.id  # type: ignore[arg-type]
    assert happened("task_queued", "me", task=TASK).task == TASK.id


def test_an_event_about_a_loop_names_its_project_and_no_plan() -> None:
    event = happened("loop_paused", "me", loop=LOOP)
    assert (event.project, event.loop, event.plan) == (PROJECT.id, LOOP.id, None)


def test_an_event_about_nothing_but_the_home_names_nothing() -> None:
    event = happened("worker_joined", "loopwright", worker="worker_1")
    assert {event.project, event.loop, event.plan, event.task, event.attempt, event.run} == {None}


def test_a_project_can_be_named_by_its_id_alone() -> None:
    assert happened("project_registered", "me", project_id="proj_1").project == "proj_1"


@each_case("type", sorted(CATALOGUE))
def test_an_event_is_as_important_as_its_type(type: str) -> None:
    assert happened(type, "me").importance is CATALOGUE[type].importance


def test_an_unknown_type_is_a_defect() -> None:
    with pytest.raises(KeyError):
        happened("task_exploded", "me")


def test_what_needs_a_person_is_important() -> None:
    """A feed that shows only what matters must not miss the end of anything."""
    wanted = {"plan_failed", "plan_verified", "plan_held", "plan_cancelled", "task_failed", "loop_failed"}
    assert {CATALOGUE[one].importance for one in wanted} == {Importance.HIGH}


@each_case("state", sorted(set(AttemptState) - {AttemptState.QUEUED}))
def test_every_state_that_an_attempt_moves_to_has_its_event(state: AttemptState) -> None:
    assert f"attempt_{state.value.lower()}" in CATALOGUE


def test_every_event_of_the_catalogue_is_written_somewhere() -> None:
    """Read from the code: an event that nobody writes would be documented for nothing."""
    package = Path(loopwright.__file__).parent
    texts = {
        node.value
        for folder in ("core/orchestrator", "engine", "services")
        for path in (package / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    texts |= {f"attempt_{state.value.lower()}" for state in AttemptState}
    texts |= {f"question_{state.value.lower()}" for state in QuestionState}
    texts |= {f"lesson_{state.value.lower()}" for state in LessonState}
    assert set(CATALOGUE) - texts == set()


def test_a_leg_is_started_under_its_subject_and_number() -> None:
    assert Leg(subject="att_1", n=3, fence=9).id == "att_1/3"
