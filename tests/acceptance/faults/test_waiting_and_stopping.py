"""A used-up window and a used-up budget: the first is waited for, the second stops everything with its reason."""

import json
from itertools import pairwise
from typing import Any

import pytest
from tests.acceptance.faults.record import Record
from tests.acceptance.sandbox import COST, Sandbox, task
from tests.waiting import eventually

from loopwright.testing.scripted import write_script

WINDOW_S = 2


@pytest.mark.capability("C089")
def test_a_used_up_window_parks_the_attempt_which_goes_on_by_itself_when_it_opens(sandbox: Sandbox) -> None:
    sandbox.play({"a": [[{"write": "half.txt", "text": "half"}, {"usage_limit": WINDOW_S}]]})
    plan = sandbox.plan("window", [task("a", "grep -q half whole.txt")], settings={"max_attempts": 1})
    worker = sandbox.start("run", str(plan))
    try:
        worker.until("parked until")
        seen = eventually(lambda: _while_it_waits(sandbox), timeout=60)
        assert "usage limit reached" in seen["plan"]["tasks"][0]["doing"]
        assert [one["pid"] for one in seen["workers"]] == [worker.process.pid]
        (health,) = (sandbox.repository / ".loopwright" / "health").glob("loop_*.json")
        assert json.loads(health.read_text())["pid"] == worker.process.pid
        steps = [{"expect_prompt": "You were interrupted"}, {"run": "mv half.txt whole.txt"}]
        # In one go: an agent may be reading the script this very moment.
        write_script(sandbox.place / "next.json", {"tasks": {"a": [steps]}}).replace(sandbox.script)
        assert worker.end() == 0, worker.out
    finally:
        worker.kill()
    record = Record(sandbox.repository, home=sandbox.home)
    (attempt,) = record.attempts("a")
    assert (attempt["n"], attempt["state"]) == (1, "LANDED")
    assert (record.task("a")["attempts"], record.task("a")["call_failures"]) == (0, 0), (
        "waiting is no failure"
    )
    *parked, last = record.runs("a", "implementer")
    assert {run["failure"] for run in parked} == {"usage_limit"}
    assert last["state"] == "COMPLETE"
    for before, after in pairwise([*parked, last]):
        assert after["started_at"] >= before["retry_at"], "asked again before the window opened"
    assert record.plan["outcome"] == "verified"


def _while_it_waits(sandbox: Sandbox) -> dict[str, Any] | None:
    seen = sandbox("status", "--json").document
    return seen if seen["plan"]["tasks"][0]["stage"] == "WAITING" else None


def test_a_used_up_budget_pauses_the_loop_and_says_so(sandbox: Sandbox) -> None:
    sandbox.play(
        {"a": [[{"write": "a.txt", "text": "a"}, COST]], "b": [[{"write": "b.txt", "text": "b"}, COST]]}
    )
    plan = sandbox.plan("dear", [task("a", "test -f a.txt"), task("b", "test -f b.txt", depends_on=["a"])])
    said = sandbox.run(plan, "--max-cost", "0.009")
    assert said.code == 3, said.out
    assert "why: the budget is used up" in said.out
    assert "loopwright resume" in said.out
    record = Record(sandbox.repository, home=sandbox.home)
    assert record.plan["loop"]["state"] == "PAUSED"
    assert record.task("a")["status"] == "COMPLETE", "what was done stays done"
    assert record.attempts("b")[0]["state"] == "QUEUED", "nothing more was started"


@pytest.mark.trap("no check")
def test_unverified_work_lands_when_that_is_allowed_but_the_exit_code_is_not_0(sandbox: Sandbox) -> None:
    sandbox.play({"a": [[{"write": "a.txt", "text": "a"}]]})
    said = sandbox.run(sandbox.plan("unchecked", [task("a")], gates=[]), "--allow-unverified")
    assert said.code == 4
    record = Record(sandbox.repository, home=sandbox.home)
    assert "nothing has checked it" in said.out
    assert f"merge it:  git merge --ff-only {record.plan['branch']}" in said.out
    assert (record.task("a")["status"], record.task("a")["outcome"]) == ("COMPLETE", "unverified")
    assert record.plan["outcome"] == "unverified"
    assert record.on_branch("a.txt") == "a"
