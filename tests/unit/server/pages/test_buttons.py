"""Which of the four steps a project page offers."""

import pytest
from tests.cases import each_case

from loopwright.core.values.states import PlanState, TaskState
from loopwright.services.dashboard.project import PlanStep, visible

CREATED, DONE, OPEN, FAILED = TaskState.CREATED, TaskState.COMPLETE, TaskState.RUNNING, TaskState.ERROR
DRAFT = (PlanState.DRAFT, [CREATED])
UNDER_WAY = (PlanState.RUNNING, [DONE, OPEN])
ALL_DONE = (PlanState.RUNNING, [DONE, DONE])


@pytest.mark.capability("C024", "C111")
@each_case(
    "run, packet, plans, shown",
    [
        (False, False, [], ""),
        (True, False, [], "inspect"),
        (False, True, [], "plan"),
        (True, True, [DRAFT], "inspect plan dispatch"),
        (True, True, [(PlanState.DISPATCHING, [OPEN])], "inspect plan"),
        (True, True, [UNDER_WAY], "inspect plan"),
        (True, True, [(PlanState.RUNNING, [DONE, FAILED])], "inspect plan"),
        (True, True, [ALL_DONE], "inspect plan verify"),
        (True, True, [(PlanState.RUNNING, [])], "inspect plan"),
        (True, True, [(PlanState.VERIFYING, [DONE])], "inspect plan"),
        (True, True, [(PlanState.VERIFIED, [DONE])], "inspect plan"),
        (True, True, [(PlanState.FAILED, [DONE])], "inspect plan"),
        (True, True, [(PlanState.CANCELLED, [DONE])], "inspect plan"),
        # Another plan hides no step.
        (True, True, [UNDER_WAY, DRAFT], "inspect plan dispatch"),
        (True, True, [DRAFT, ALL_DONE], "inspect plan dispatch verify"),
    ],
)
def test_each_button_is_visible_when_its_step_can_be_taken(
    run: bool, packet: bool, plans: list[tuple[PlanState, list[TaskState]]], shown: str
) -> None:
    steps = [PlanStep(status=status, tasks=tasks) for status, tasks in plans]
    found = visible(has_run=run, has_packet=packet, plans=steps)
    names = ("inspect", "plan", "dispatch", "verify")
    assert [name for name in names if getattr(found, name)] == shown.split()
