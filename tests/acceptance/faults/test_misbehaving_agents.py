"""Agents with bad habits: whatever they print and do to their own repository, their work counts and nothing else."""

import pytest
from tests.acceptance.faults.record import Document, Record

OURS = {".gitignore", "README.md", "greet.txt"}
"""What was on the branch before."""


@pytest.mark.capability("C027")
@pytest.mark.parametrize("key", ["garbage", "raw", "flood"])
def test_what_an_agent_prints_never_spoils_what_it_did(misbehaved: Record, key: str) -> None:
    assert misbehaved.failures(key) == [None]
    assert misbehaved.on_branch(f"{key}.txt") == "right\n"


def test_fifty_megabytes_of_output_are_counted_whole_and_the_cost_behind_them_is_read(
    misbehaved: Record,
) -> None:
    (run,) = misbehaved.runs("flood", "implementer")
    assert run["output_bytes"] > 50 * 1024 * 1024
    assert run["cost_micros"] == 9000
    assert run["summary"] == "after fifty megabytes"


@pytest.mark.parametrize("key", ["commits", "stages", "resets", "unmakes", "branches"])
def test_work_lands_whatever_the_agent_did_to_its_own_repository(misbehaved: Record, key: str) -> None:
    assert misbehaved.failures(key) == [None]
    assert misbehaved.landings()[key] == 1
    assert misbehaved.on_branch(f"{key}.txt") == "right\n"


def test_a_commit_of_the_agent_is_kept_and_what_it_left_uncommitted_lands_too(misbehaved: Record) -> None:
    (attempt,) = misbehaved.attempts("commits")
    assert "my own message" in misbehaved.git("log", "--format=%s", attempt["agent_sha"])
    assert misbehaved.on_branch("later.txt") == "later\n"


def test_what_the_agent_dropped_itself_does_not_land(misbehaved: Record) -> None:
    assert "dropped.txt" not in misbehaved.files()


def test_nothing_but_the_work_is_committed(misbehaved: Record) -> None:
    made = {f"{task['key']}.txt" for task in misbehaved.plan["tasks"] if task["status"] == "COMPLETE"}
    assert misbehaved.files() == OURS | made | {"later.txt"}
    misbehaved.check_nothing_was_touched()


@pytest.mark.capability("C028")
@pytest.mark.trap("empty diff")
def test_a_claim_without_a_change_is_caught_and_the_next_attempt_is_told(misbehaved: Record) -> None:
    assert misbehaved.failures("liar") == ["no_change", None]
    told = misbehaved.prompt("liar", 2)
    assert "changed nothing" in told
    assert "liar.txt: No such file" in told, "the evidence is what the check printed"
    assert "changed nothing" not in misbehaved.prompt("liar", 1)


@pytest.mark.capability("C028")
@pytest.mark.trap("error with exit 0")
def test_a_gate_that_exits_with_0_and_prints_a_failed_check_has_failed(misbehaved: Record) -> None:
    assert misbehaved.failures("fails") == ["gate", None]
    gates = _judged(misbehaved, "fails")
    assert [one["exit_code"] for one in gates[0]["verdict"]["commands"]] == [0, 0]
    assert gates[0]["verdict"]["status"] == "failed"
    assert gates[-1]["verdict"]["status"] == "passed"
    assert "[FAIL] the sum is 3, not 4" in misbehaved.prompt("fails", 2)


def test_a_gate_that_takes_too_long_has_failed_and_the_next_attempt_is_told(misbehaved: Record) -> None:
    assert misbehaved.failures("slow") == ["gate", None]
    first = _judged(misbehaved, "slow")[0]
    assert [one["timed_out"] for one in first["verdict"]["commands"]] == [True, False]
    assert "ended at its time limit of 1 s" in misbehaved.prompt("slow", 2)


@pytest.mark.capability("C029")
@pytest.mark.trap("same failure for ever")
def test_an_agent_that_fails_at_once_in_the_same_way_is_not_tried_for_ever(misbehaved: Record) -> None:
    assert misbehaved.failures("exits") == ["agent_error", "agent_error"]
    task = misbehaved.task("exits")
    assert task["status"] == "ERROR"
    assert "twice in exactly the same way" in task["reason"]
    assert "exited with code 3: no licence" in task["reason"]
    assert [run["exit_code"] for run in misbehaved.runs("exits", "implementer")] == [3, 3]


@pytest.mark.capability("C029")
def test_a_missing_program_fails_its_task_at_once_and_is_named(misbehaved: Record) -> None:
    assert misbehaved.failures("unbuilt") == ["cannot_start"], (
        "one attempt: the program will not appear by itself"
    )
    assert "no-such-claude" in misbehaved.task("unbuilt")["reason"]


@pytest.mark.capability("C041", "C072")
@pytest.mark.trap("blocked head")
def test_a_task_whose_agent_does_not_exist_fails_alone_and_the_others_go_on(misbehaved: Record) -> None:
    task = misbehaved.task("nobody")
    assert (task["status"], task["failure"]) == ("ERROR", "cannot_start")
    assert "'nobody'" in task["reason"]
    assert misbehaved.task("after-nobody")["status"] == "QUEUED"
    landed = [one for one in misbehaved.plan["tasks"] if one["status"] == "COMPLETE"]
    assert len(landed) == len(misbehaved.plan["tasks"]) - 4, (
        "all but nobody, what waits for it, unbuilt, and exits"
    )
    assert misbehaved.plan["status"] == "RUNNING", "partial, not failed: a person can mend it"
    assert misbehaved.said.code == 1
    assert misbehaved.said.document["plan"]["reason"] == "3 tasks need you; 1 more waits for them"


def _judged(misbehaved: Record, key: str) -> list[Document]:
    """Return the gate runs of a task without those that were broken off, because what was ahead did not land."""
    runs = misbehaved.runs(key, "gate")
    return [one for one in runs if one["verdict"]["status"] != "inconclusive"]
