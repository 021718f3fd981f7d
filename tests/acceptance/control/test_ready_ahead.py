"""Workspaces are made ready while agents work, and brought up to date before their own agent starts."""

from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task
from tests.waiting import eventually

from loopwright.core.model import Attempt, Plan, Role, Run, Task
from loopwright.core.states import AttemptState, RunState


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
