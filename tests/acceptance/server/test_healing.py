"""The self-healing table: what a failure came to without `auto_heal`, and what it comes to with it."""

import json
from typing import Any

import pytest
from tests.acceptance.sandbox import task
from tests.acceptance.server.conftest import Served

from loopwright.core.rows.model import Plan

WRONG: list[dict[str, Any]] = [{"write": "sum.txt", "text": "wrong\n"}, {"claim": "done"}]
RIGHT: list[dict[str, Any]] = [{"write": "sum.txt", "text": "right\n"}, {"claim": "done"}]
CHECK = "grep -q right sum.txt"


def steps(served: Served, key: str) -> list[tuple[str, str]]:
    """Return what was tried for a task, as the interface shows it."""
    found = served.get(f"/api/plans/{served.rows(Plan)[-1].id}/tasks/{key}")["healing"]
    return [(one["step"], one["state"]) for one in found]


@pytest.mark.capability("C084", "C088", "C091")
def test_three_attempts_failed_before_the_task_was_blocked_and_after_it_is_told_what_they_missed(
    served: Served,
) -> None:
    told = [{"expect_prompt": "All attempts so far failed", "otherwise": WRONG}, *RIGHT]
    served.play({"sum": [told]})
    plan = served.plan("sums", [task("sum", CHECK)], settings={"max_attempts": 2})
    before = served.run(plan)
    assert before.code == 1, before.out + before.err
    assert served.task("sum").status == "ERROR"
    assert "loopwright retry sum --note" in served("status", "sum").out

    assert served("cancel", served.newest_plan()).code == 0
    after = served.run(plan, "--new", "--auto-heal")
    assert after.code == 0, after.out + after.err
    failed, again, healed = served.attempts("sum")
    assert (failed.state, again.state, healed.state) == ("REJECTED", "REJECTED", "LANDED")
    served.serve()
    assert steps(served, "sum") == [("restate", "HEALED")]


@pytest.mark.capability("C088")
def test_a_task_that_was_too_large_failed_before_and_is_split_after(served: Served) -> None:
    parts = [{"title": "The first half"}, {"title": "The second half"}]
    answer = {"cause": "too_large", "why": "It is two things.", "advice": "Halve it.", "parts": parts}
    said = f"It is two things.\n```loopwright-investigation\n{json.dumps(answer)}\n```"
    turns = [{"fail": "turns", "message": "no turns left"}]
    whole = [
        {"expect_prompt": "sums-part-1, sums-part-2", "otherwise": turns},
        {"claim": "nothing is missing"},
    ]
    halves = {f"sums-part-{n}": [[{"write": f"{n}.txt", "text": f"{n}\n"}]] for n in (1, 2)}
    served.play({"sums": [turns, [{"claim": said}], whole], **halves})
    plan = served.plan("sums", [task("sums", "test -f 1.txt -a -f 2.txt")], settings={"max_attempts": 1})
    assert served.run(plan).code == 1
    assert served.task("sums").failure == "turns"
    assert served("cancel", served.newest_plan()).code == 0

    after = served.run(plan, "--new", "--auto-heal")
    assert after.code == 0, after.out + after.err
    assert served.landed() == ["sums-part-1", "sums-part-2"]
    assert served.task("sums").outcome == "no_change_proven"
    served.serve()
    assert steps(served, "sums") == [("split", "HEALED")]
