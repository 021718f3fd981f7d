"""Work that was right alone and is wrong together: the later one is rejected, told why, and tried on the new base."""

import pytest
from tests.acceptance.faults.record import Record
from tests.acceptance.sandbox import Sandbox, task
from tests.unit.core.receipts.as_json import named

SECRET = "sk-ant-api03-" + "Ab1" * 12


@pytest.mark.capability("C028")
def test_the_later_of_two_that_collide_lands_on_the_new_base_and_the_branch_is_never_red(
    sandbox: Sandbox,
) -> None:
    landed = sandbox.place / "a-landed"
    wait = {"wait_for": str(landed), "timeout": 60}
    sandbox.play(
        {
            "a": [[{"append": "greet.txt", "text": "from a\n"}, {"write": "limit-a.txt", "text": "1\n"}]],
            "lines": [
                [
                    {"append": "greet.txt", "text": "from lines\n"},
                    {"write": "key.txt", "text": f"{SECRET}\n"},
                    wait,
                ],
                [{"expect_prompt": "from a"}, {"append": "greet.txt", "text": "from lines\n"}],
            ],
            "meaning": [
                [{"write": "limit-b.txt", "text": "2\n"}, wait],
                [
                    {"expect_prompt": "limit-a.txt limit-b.txt"},
                    {"write": "meaning.txt", "text": "without a limit\n"},
                ],
            ],
        }
    )
    gate = "ls limit-*.txt | tr '\\n' ' '; test $(ls limit-*.txt | wc -l) -le 1"
    plan = sandbox.plan(
        "collide",
        [
            task("a", "grep -q 'from a' greet.txt", scope=["greet.txt"]),
            task("lines", "grep -q 'from lines' greet.txt"),
            task("meaning", "test -f meaning.txt || test -f limit-b.txt"),
        ],
        gates=[{"name": "one limit", "run": gate}],
        settings={"parallel": 3},
    )
    worker = sandbox.start("run", str(plan))
    try:
        worker.until("✔  a")
        landed.touch()
        assert worker.end() == 0, worker.out
    finally:
        worker.kill()
    record = Record(sandbox.repository, home=sandbox.home)
    assert record.failures("lines") == ["conflict", None]
    assert record.failures("meaning") == ["together", None]
    told = record.prompt("lines", 2)
    assert "changes the same places as work that landed since it began: greet.txt" in told
    assert "- task a (Make a), commit" in told
    theirs, _, mine = told.partition("What the attempt itself changed")
    assert "+from a" in theirs
    assert "+from lines" in mine
    assert "limit-a.txt" not in theirs.partition("What landed there")[2], "only where they collide"
    assert SECRET not in told
    assert "+[redacted]" in mine
    told = record.prompt("meaning", 2)
    assert "Alone, on the commit that it began with, the attempt passes every check." in told
    assert "one limit (failed)" in told
    assert "- task a (Make a), commit" in told
    assert "greet.txt, limit-a.txt" in told
    assert "+++ b/limit-b.txt" in told
    assert record.task("lines")["touched"] == ["greet.txt", "key.txt"]
    receipt = record.call("receipt", "show", "--json").document
    assert "outside_scope a" in named(receipt)
    for key in ("lines", "meaning"):
        task_row = record.task(key)
        assert (task_row["attempts"], task_row["races"]) == (0, 1), "who lost a race used up no attempt"
        first = record.attempts(key)[0]
        pin = f"refs/loopwright/attempts/{first['plan_id']}/{first['task_id']}/1"
        assert record.git("rev-parse", pin).strip() == first["tip_sha"], "its work is kept"
    for key in ("lines", "meaning"):
        first, second = record.attempts(key)
        assert first["base_sha"] == record.plan["base_sha"]
        assert second["base_sha"] != first["base_sha"], "the retry starts from what landed meanwhile"
    assert record.on_branch("greet.txt") == "hello\nfrom a\nfrom lines\n"
    for commit in record.git("rev-list", "--first-parent", record.plan["branch"]).split():
        names = record.git("ls-tree", "-r", "--name-only", commit).split()
        assert sum(name.startswith("limit-") for name in names) <= 1, f"red at {commit}"
    assert set(record.landings().values()) == {1}
