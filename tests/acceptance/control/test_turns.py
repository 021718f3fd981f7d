"""Two loops that change the same files take turns, and both results merge."""

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task
from tests.waiting import eventually

from loopwright.core.rows.model import Plan


@pytest.mark.capability("C076")
def test_two_loops_with_one_scope_take_turns_and_both_merge_without_a_conflict(shop: Workshop) -> None:
    agent = shop.gate("agent")
    shop.play(
        {
            "polite": [[agent.step, {"write": "greet.txt", "text": "hello you\n"}]],
            "louder": [[{"run": "sed -i.old s/you/YOU/ greet.txt && rm greet.txt.old"}]],
        }
    )
    files = {"scope": ["greet.txt"]}
    first = shop.start("run", str(shop.plan("first", [task("polite", "grep -q you greet.txt", **files)])))
    shop.until_started("polite")
    second = shop.start("run", str(shop.plan("second", [task("louder", "grep -q YOU greet.txt", **files)])))
    eventually(lambda: "loop_waits" in [one.type for one in shop.events("loop_waits")], timeout=60)
    said = shop("status", shop.rows(Plan)[1].id)
    assert "waits for greeter/first to end, which changes greet.txt too" in " ".join(said.out.split())
    agent.let_go()
    assert first.end() == 0, first.out
    assert second.end() == 0, second.out
    one, other = shop.rows(Plan)
    assert other.base_sha == one.result_sha
    assert [event.payload["plans"] for event in shop.events("plan_rebased")] == [[one.id]]
    for plan in (one, other):
        shop.git("merge", "-q", "--no-edit", plan.branch)
    assert (shop.repository / "greet.txt").read_text() == "hello YOU\n"
