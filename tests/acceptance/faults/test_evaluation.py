"""Each task passes its own checks, and one breaks what another was asked for: mended before the verification."""

import pytest
from tests.acceptance.faults.record import Record
from tests.acceptance.sandbox import Sandbox, task


@pytest.mark.capability("C044", "C082")
def test_what_a_later_task_broke_is_mended_by_a_task_of_its_own_before_the_plan_is_verified(
    sandbox: Sandbox,
) -> None:
    sandbox.play(
        {
            "a": [[{"write": "a.txt", "text": "right\n"}]],
            "b": [[{"delete": "a.txt"}, {"write": "b.txt", "text": "right\n"}]],
            "fix-1": [
                [{"write": "c.txt", "text": "in vain\n"}],
                [{"expect_prompt": "a is right"}, {"write": "a.txt", "text": "right\n"}],
            ],
        }
    )
    tasks = [task("a", "grep -q right a.txt"), task("b", "grep -q right b.txt", depends_on=["a"])]
    said = sandbox.run(sandbox.plan("broken", tasks))
    assert said.code == 0, said.out + said.err
    assert "fix-1" in said.out
    record = Record(sandbox.repository, home=sandbox.home, said=said)
    fix = record.task("fix-1")
    assert (fix["origin"], fix["status"]) == ("fix", "COMPLETE")
    assert "a is right (failed)" in fix["description"]
    assert record.failures("fix-1") == ["gate", None]
    assert record.files() >= {"a.txt", "b.txt"}
    ran = [(run["role"], run["verdict"]["status"]) for run in record.runs() if run["attempt_id"] is None]
    assert ran == [("evaluation", "failed"), ("verify", "passed")]
    shown = sandbox("status", "--json").document["plan"]["tasks"]
    assert [(one["key"], one["origin"]) for one in shown] == [("a", ""), ("b", ""), ("fix-1", "fix")]
    receipt = record.call("receipt", "show", "--json").document
    assert receipt["plan"]["fix_cycles"] == 1
    assert [one["origin"] for one in receipt["tasks"]] == ["", "", "fix"]
    assert sandbox("receipt", "verify").code == 0
