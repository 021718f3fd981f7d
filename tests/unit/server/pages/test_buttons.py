"""Which of the four steps a project page offers."""

import pytest
from tests.cases import each_case

from loopwright.core.values.states import PlanState, TaskState
from loopwright.services.dashboard.project import visible

DONE, OPEN, FAILED = TaskState.COMPLETE, TaskState.RUNNING, TaskState.ERROR


@pytest.mark.capability("C024", "C111")
@each_case(
    "run, packet, status, tasks, shown",
    [
        (False, False, None, [], ""),
        (True, False, None, [], "inspect"),
        (False, True, None, [], "plan"),
        (True, True, PlanState.DRAFT, [TaskState.CREATED], "inspect plan dispatch"),
        (True, True, PlanState.DISPATCHING, [OPEN], "inspect plan"),
        (True, True, PlanState.RUNNING, [DONE, OPEN], "inspect plan"),
        (True, True, PlanState.RUNNING, [DONE, FAILED], "inspect plan"),
        (True, True, PlanState.RUNNING, [DONE, DONE], "inspect plan verify"),
        (True, True, PlanState.RUNNING, [], "inspect plan"),
        (True, True, PlanState.VERIFYING, [DONE], "inspect plan"),
        (True, True, PlanState.VERIFIED, [DONE], "inspect plan"),
        (True, True, PlanState.FAILED, [DONE], "inspect plan"),
        (True, True, PlanState.CANCELLED, [DONE], "inspect plan"),
    ],
)
def test_each_button_is_visible_when_its_step_can_be_taken(
    run: bool, packet: bool, status: PlanState | None, tasks: list[TaskState], shown: str
) -> None:
    found = visible(has_run=run, has_packet=packet, status=status, tasks=tasks)
    names = ("inspect", "plan", "dispatch", "verify")
    assert [name for name in names if getattr(found, name)] == shown.split()
