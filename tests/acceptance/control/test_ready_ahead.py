"""Workspaces are made ready while agents work, and brought up to date before their own agent starts."""

from pathlib import Path

from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task
from tests.waiting import eventually

from loopwright.core.rows.model import Attempt, Plan, Role, Run, Task
from loopwright.core.values.states import AttemptState, RunState


def test_what_waited_sees_what_landed_meanwhile_and_is_set_up_for_it(shop: Workshop) -> None:
    gates = {key: shop.gate(key) for key in "abcd"}
    shop.play({key: [[gates[key].step, {"write": key, "text": f"{key}\n"}]] for key in "abcd"})
    shop.program.env |= {"LOOPWRIGHT_PARALLEL": "2", "LOOPWRIGHT_SETUP": "test -e greet.txt"}
    plan = shop.plan("ahead", [task(key, f"test -s {key}") for key in "abcd"])
    going = shop.start("run", str(plan))

    def made_ready() -> bool:
        setups = shop.rows(Run, role=Role.SETUP, state=RunState.COMPLETE)
        waiting = shop.rows(Attempt, state=AttemptState.PREPARING)
        return len(setups) == 4 and len(waiting) == 2

    def at_work() -> set[str]:
        working = shop.rows(Run, role=Role.IMPLEMENTER, state=RunState.RUNNING)
        return {shop.row(Task, id=run.task_id).key for run in working}

    eventually(made_ready, timeout=60)
    first = at_work()
    assert len(first) == 2, "no more agents than slots"
    # How long it has waited is forgotten with the process, so nothing made before it counts as fresh.
    going.kill()
    going = shop.start("resume")
    one, other = sorted(first)
    gates[one].let_go()
    eventually(lambda: shop.task(one).landed_sha, timeout=60)
    eventually(lambda: len(at_work()) == 2, timeout=60)
    (last,) = set("abcd") - first - at_work()
    for key in (other, *"abcd"):
        gates[key].let_go()
    assert going.end(60) == 0, going.out
    assert shop.row(Plan).outcome == "verified"
    (attempt,) = shop.attempts(last)
    setups = shop.rows(Run, role=Role.SETUP, attempt_id=attempt.id)
    assert [run.state for run in setups] == [RunState.COMPLETE] * 2, "it was set up again"
    assert {run.label for run in setups} == {
        f"setup_{sha}" for sha in (shop.row(Plan).base_sha, attempt.base_sha)
    }
    assert attempt.base_sha != shop.row(Plan).base_sha


def test_tasks_start_by_priority_and_position_even_if_a_later_one_is_ready_sooner(shop: Workshop) -> None:
    """The first one's setup ends only after the workspace of the second is ready; the loop has one slot."""
    go = f"{shop.place}/go-"
    Path(go).touch()  # for the gate of the whole plan
    shop.play({key: [[{"write": key, "text": f"{key}\n"}]] for key in "abcd"})
    slow = f'until [ -e "{go}$LOOPWRIGHT_TASK" ]; do sleep 0.05; done'
    shop.program.env |= {"LOOPWRIGHT_PARALLEL": "1", "LOOPWRIGHT_SETUP": slow}
    order = {"d": 50, "a": 10, "b": 20, "c": 20}
    plan = shop.plan("order", [task(key, f"test -s {key}", priority=n) for key, n in order.items()])
    going = shop.start("run", str(plan))

    def is_ready(key: str) -> bool:
        done = shop.rows(Run, role=Role.SETUP, state=RunState.COMPLETE)
        return any(shop.row(Task, id=run.task_id).key == key for run in done)

    eventually(lambda: len(shop.rows(Task)) == len(order), timeout=60)
    for key in "bcda":
        if key == "a":
            eventually(lambda: is_ready("b"), timeout=60)
        Path(f"{go}{shop.task(key).id}").touch()
    assert going.end(60) == 0, going.out
    assert shop.started_keys() == list("abcd")
