"""What pages show follows from their addresses."""

import re
from functools import partial

from tests.contracts.store import rows
from tests.integration.server.api import Api

from loopwright.core.rows.events import Importance
from loopwright.core.rows.model import Loop, Plan, Task
from loopwright.core.values.states import LoopState, PlanState, TaskState
from loopwright.ports import Tx
from loopwright.services.dashboard.trail import IMPORTANT, MOST


def _events(api: Api, path: str) -> list[int]:
    return [int(one) for one in re.findall(r'id="event-([0-9]+)"', api.page(path))]


def test_the_events_of_a_plan_are_limited_by_task_and_importance_and_read_page_by_page(api: Api) -> None:
    _, _, plan, task = api.family()
    other = rows.task(plan, key="other")
    api.write(lambda tx: tx.insert(other))
    api.append(MOST, plan=plan.id, task=task.id)
    api.append(3, plan=plan.id, task=other.id)
    api.append(2, plan=plan.id, type=IMPORTANT[0], importance=Importance.HIGH)
    path = f"/plans/{plan.id}?tab=events"
    newest = _events(api, path)
    assert len(newest) == MOST
    assert newest == sorted(newest, reverse=True)
    older = _events(api, f"{path}&before={newest[-1]}")
    assert len(older) == 5
    assert max(older) == newest[-1] - 1
    assert len(_events(api, f"{path}&task=other")) == 3
    assert len(_events(api, f"{path}&task={task.key}")) == MOST
    assert _events(api, f"{path}&only=important") == newest[:2]
    assert _events(api, f"{path}&only=important&task=other") == []
    assert _events(api, f"{path}&task=nothing") == []


def test_a_plan_that_only_waits_for_its_verification_needs_you(api: Api) -> None:
    _, loop, plan, task = api.family()

    def pause(tx: Tx, done: TaskState) -> None:
        tx.update(Loop, loop.id, state=LoopState.PAUSED)
        tx.update(Plan, plan.id, status=PlanState.RUNNING)
        tx.update(Task, task.id, status=done)

    for state, heading in ((TaskState.QUEUED, "h-waiting"), (TaskState.COMPLETE, "h-needs")):
        api.write(partial(pause, done=state))
        page = api.page("/")
        assert [one for one in ("h-waiting", "h-needs") if f'id="{one}"' in page] == [heading]
    assert f"/plans/{plan.id}/verify" in api.page(f"/plans/{plan.id}")


def test_the_board_leaves_out_plans_that_only_ask_an_agent(api: Api) -> None:
    _, loop, _, task = api.family()
    asked = rows.plan(loop, made_for="")
    inner = rows.task(asked, key="plan")
    api.write(lambda tx: [tx.insert(one) for one in (asked, inner)])
    assert re.findall(r'id="task-([^"]+)"', api.page("/board")) == [task.id]
