"""`rollback` and `reject`: a person takes landed work back, and sends work back with words."""

import subprocess

import pytest
from tests.acceptance.control.workshop import Workshop, refused

from loopwright.core.rows.model import Command, Plan

TOLD = [
    {"expect_prompt": "b:2\n    > two\n    no, three", "otherwise": [{"write": "b", "text": "one\ntwo\n"}]},
    {"write": "b", "text": "one\nthree\n"},
]
"""An agent that writes two until it is told otherwise, with the line that is wrong."""


@pytest.mark.capability("C070")
def test_rejected_work_leaves_the_branch_and_is_done_again_with_a_person_s_words(shop: Workshop) -> None:
    plan = shop.chain("a", "b", "c", steps={"b": [TOLD]})
    assert shop.run(plan).code == 0
    row = shop.row(Plan)
    before = shop.git("rev-parse", row.branch).strip()
    refused(shop("reject", "b"), 2, "nothing is said about what is wrong")
    refused(shop("reject", "b", "--at", "b:7", "no"), 2, "b has only 2 lines in the rejected work")
    refused(shop("rollback", "b"), 2, "2 tasks (b, c) would be taken back", "--yes")

    said = shop("reject", "b", "--at", "b:2", "no, three", timeout=90)
    assert said.code == 0, said.out + said.err
    assert "taken back: b, c; attempt 2 of b is queued" in said.out
    assert shop.landed() == ["a", "b", "c", "b", "c"]
    assert shop.git("show", f"{row.branch}:b") == "one\nthree\n"
    assert shop.started() == [("a", 1), ("b", 1), ("c", 1), ("b", 2), ("c", 2)]
    # History only grew: what was there is still part of it.
    shop.git("merge-base", "--is-ancestor", before, row.branch)
    shop.untouched()
    [told] = shop.events("plan_rolled_back")
    assert [one["task"] for one in told.payload["took_out"]] == [shop.task("b").id, shop.task("c").id]
    shown = shop("receipt", "show", "--json").document
    decided = [one["type"] for one in shown["overrides"]]
    assert decided == ["plan_rolled_back", "task_reopened", "task_reopened", "plan_reopened"]
    script = shop.repository / ".loopwright" / "receipts" / f"{row.id}.sh"
    checked = subprocess.run(["sh", str(script)], cwd=shop.repository, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "Decided by people:" in checked.stdout
    assert shop("receipt", "verify").code == 0


FORGED = """cd $1
made=$(git commit-tree $2^{tree} -p $2 -F - <<END
revert: a

Loopwright-Plan: $3
Loopwright-Command: $4
Loopwright-Reverts: $2
END
)
git update-ref $5 $made
"""
"""Somebody says on the plan's branch that its newest landing was taken back."""


def test_a_forged_revert_is_not_believed_though_the_worker_died_before_it_wrote_the_landing_down(
    shop: Workshop,
) -> None:
    plan = shop.chain("a")
    shop.program.env["LOOPWRIGHT_FAILPOINT"] = "store.attempt.landed.before"
    assert shop.run(plan).code == -9
    del shop.program.env["LOOPWRIGHT_FAILPOINT"]
    row = shop.row(Plan)
    tip = shop.git("rev-parse", row.branch).strip()
    words = (
        str(shop.repository),
        tip,
        row.id,
        "cmd_1",
        f"refs/heads/{row.branch.removeprefix('refs/heads/')}",
    )
    subprocess.run(["sh", "-ec", FORGED, "sh", *words], check=True)
    said = shop("resume", timeout=90)
    assert said.code == 4, said.out + said.err
    assert (shop.task("a").landed_sha, shop.landed()) == (tip, ["a"]), "it is there, and not done twice"
    assert len(shop.attempts("a")) == 1
    receipt = shop("receipt", "show", "--json").document
    assert [one["subject"] for one in receipt["plan"]["not_ours"]] == ["revert: a"]
    assert shop("receipt", "verify").code == 0


@pytest.mark.capability("C070")
def test_rejected_work_that_comes_back_as_it_was_does_not_land_again(shop: Workshop) -> None:
    assert shop.run(shop.chain("a", settings={"max_attempts": 1})).code == 0
    row = shop.row(Plan)
    refused(shop("retry", "a"), 2, "the task a has landed", "loopwright reject a --note")

    said = shop("reject", "a", "--note", "not\nlike this", timeout=90)
    assert said.code == 1, said.out + said.err
    assert [(one.state, one.failure) for one in shop.attempts("a")] == [
        ("LANDED", None),
        ("REJECTED", "no_change"),
    ]
    assert shop.landed() == ["a"], "the branch has it once, and taken back"
    shown = shop("show", "a").out
    assert "It is exactly the change that a person rejected as attempt 1" in shown
    assert ": rejected it: not like this\n" in shown
    receipt = shop("receipt", "show").out
    assert "decided by people" in receipt
    assert ": a: rejected it: not like this\n" in receipt

    # A third attempt is told of it, and does otherwise.
    told = {"expect_prompt": "like this", "otherwise": [{"fail": "not told"}]}
    shop.play({"a": [[told, {"write": "a", "text": "another\n"}]]})
    again = shop("retry", "a", timeout=90)
    assert again.code == 0, again.out + again.err
    assert "attempt 3 of 1" not in again.out
    assert shop.git("show", f"{row.branch}:a") == "another\n"
    assert shop("receipt", "verify").code == 0


@pytest.mark.capability("C070")
@pytest.mark.parametrize("moment", [pytest.param("git.ref.before", marks=pytest.mark.long), "git.ref.after"])
def test_a_rollback_that_is_killed_ends_in_one_of_two_whole_states(shop: Workshop, moment: str) -> None:
    assert shop.run(shop.chain("a", "b")).code == 0
    # The person's own checkout is somewhere else by now, and full of changes.
    shop.git("switch", "-q", "-c", "elsewhere")
    (shop.repository / "greet.txt").write_text("hello, changed\n")
    (shop.repository / "untracked").write_text("mine\n")
    before = shop.git("status", "--porcelain", "--branch")
    shop.program.env["LOOPWRIGHT_FAILPOINT"] = moment
    assert shop("rollback", "b", "--yes").code == -9
    del shop.program.env["LOOPWRIGHT_FAILPOINT"]
    [command] = shop.rows(Command)
    assert (command.verb, command.state) == ("rollback", "PENDING")
    assert shop.task("b").status == "COMPLETE"

    # Whoever works here next carries it out before anything else.
    said = shop("resume", timeout=90)
    assert said.code == 0, said.out + said.err
    assert shop.landed() == ["a", "b", "b"]
    assert len(shop.events("plan_rolled_back")) == 1
    assert shop.started() == [("a", 1), ("b", 1), ("b", 2)]
    assert shop.git("status", "--porcelain", "--branch") == before
