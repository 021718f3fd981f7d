"""`metrics`: how well plans went, from what is recorded."""

import json

import pytest
from tests.acceptance.sandbox import COST, Sandbox, task


@pytest.mark.capability("C033")
def test_attempts_retries_cost_and_tasks_that_needed_many_are_told(sandbox: Sandbox) -> None:
    wrong, right = [{"write": "two", "text": "no\n"}, COST], [{"write": "two", "text": "yes\n"}, COST]
    sandbox.play({"one": [[{"write": "one", "text": "yes\n"}, COST]], "two": [wrong, wrong, right]})
    plan = sandbox.plan("sums", [task("one", "grep -q yes one"), task("two", "grep -q yes two")])
    assert sandbox("metrics").code == 2, "there is no home yet, and it says so"
    assert sandbox.run(plan).code == 0
    found = json.loads(sandbox("metrics", "--json").out)
    figures = found["together"]
    assert (figures["tasks"], figures["completed"], figures["failed"]) == (2, 2, 0)
    assert (figures["attempts"], figures["retries"], figures["first_pass"]) == (4, 2, 1)
    assert (figures["begun"], figures["broken_off"]) == (4, 0)
    assert figures["first_pass_rate"] == 0.5
    assert (figures["cost_micros"], figures["unknown_costs"], figures["agent_runs"]) == (36000, 0, 4)
    assert [(one["key"], one["attempts"]) for one in figures["flaky"]] == [("two", 3)]
    (one,) = found["plans"]
    assert one["wall_seconds"] > 0
    assert one["figures"] == figures
    (line,) = sandbox("metrics", one["plan_id"], "--jsonl").out.splitlines()
    assert json.loads(line) == one
    said = sandbox("metrics").out
    assert "VERIFIED " in said
    assert "; $0.04" in said
    assert "1 plan: 2 tasks of 2 done, 4 attempts with 2 retries, 50% of what ended landed" in said
    assert "more than two attempts: two (3)" in said
