"""`take-over` and `hand-back`: a person does a task by hand, under the same checks; `reviewed` lets work go on."""

import shlex
from functools import partial

import pytest
from tests.acceptance.control.workshop import HALF_DONE, Workshop, refused
from tests.acceptance.sandbox import task
from tests.waiting import eventually

from loopwright.core.rows.model import Plan
from loopwright.core.values.ids import short_id


@pytest.mark.timeout(300)
def test_a_person_s_work_goes_through_the_same_checks_as_an_agent_s(shop: Workshop) -> None:
    shop.play({"half": [HALF_DONE], "after": [[{"write": "after", "text": "after\n"}]]})
    tasks = [task("half", "grep -q whole half"), task("after", "test -s after", depends_on=["half"])]
    run = shop.start("run", str(shop.plan("two", tasks)))
    shop.until_half()
    mine = shop.place / "mine"
    said = shop("take-over", "half", str(mine), timeout=60)
    assert said.code == 0, said.out + said.err
    assert f"work here:  cd {mine}" in said.out.replace("\n", "")
    assert "The task's agent is interrupted, its work is kept." in said.out
    # What the agent had done is there; the machine leaves the task alone, and its plan needs a person.
    assert (mine / "half").read_text() == "half of it\n"
    assert run.end() == 1, run.out
    shop.until_quiet()
    shown = shop("status", "--json").document["plan"]
    assert shown["reason"] == "half is with a person: `loopwright take-over half --done` continues"
    assert shown["tasks"][0]["doing"].endswith(f"in {mine}")
    assert "taken over" in shop("status").out
    refused(shop("take-over", "half", str(shop.place / "other")), 2, "has it already")

    # Its checkout is a linked worktree: every command knows there which project it is in.
    there = partial(shop, cwd=mine, timeout=60)
    assert there("status", "--json").document["plan"]["id"] == shown["id"]
    assert there("show", "half").code == 0
    taken = there("run", str(shop.place / "two.yaml"))
    refused(taken, 2, "the checkout of a task that you took over", f"cd {shop.repository}")
    said = there("take-over", "half", "--done")
    assert said.code == 1, said.out + said.err
    assert "not accepted" in said.out
    assert "is due" not in said.out, "it is theirs"
    assert shop.task("half").taken_dir == str(mine)
    refused(
        shop("take-over", "half", "--done"), 2, "nothing changed since you took it over", "which did not pass"
    )
    shown = shop("show", "half").out
    assert "loopwright take-over half --done " in shown
    assert "loopwright take-over half --drop" in shown
    assert "took it over" in shown
    (mine / "half").write_text("the whole of it\n")
    refused(
        shop("take-over", "half", "--done"),
        2,
        "has changes that are in no commit: half",
        "--include-uncommitted",
    )

    said = shop("take-over", "half", "--done", "--include-uncommitted", timeout=90)
    assert said.code == 0, said.out + said.err
    plan = shop.row(Plan)
    assert f"merge it:  git merge --ff-only {plan.branch}" in said.out, "it ends like `run`"
    assert "VERIFIED" in said.out
    assert plan.status == "VERIFIED"
    assert shop.git("show", f"{plan.branch}:half") == "the whole of it\n"
    assert shop.landed() == ["half", "after"]
    assert shop.started() == [("half", 1), ("after", 1)]
    assert [(one.n, one.agent, one.state) for one in shop.attempts("half")] == [
        (1, "scripted", "CANCELLED"),
        (2, "human", "REJECTED"),
        (3, "human", "LANDED"),
    ]
    # The checkout is the person's: nothing of it was committed, changed or deleted.
    assert shop.git("-C", str(mine), "status", "--porcelain").strip() == "M half"
    remove = f"git worktree remove --force {shlex.quote(str(mine))}"
    assert f"`{remove}` deletes it, with 1 file that its branch does not have" in said.out
    shop.untouched()
    receipt = shop("receipt", "show", "--json").document
    decided = [one["type"] for one in receipt["overrides"]]
    assert decided.count("task_handed_back") == 2
    assert "task_taken_over" in decided
    assert shop("receipt", "verify").code == 0


def test_results_that_nobody_looked_at_hold_up_new_work(shop: Workshop) -> None:
    plan = shop.chain("a", "b", "c")
    shop.program.env["LOOPWRIGHT_MAX_UNREVIEWED"] = "2"
    run = shop.start("run", str(plan))
    shop.until_started("a", "b")

    def held() -> bool:
        return shop.landed() == ["a", "b"] and shop.task("c").unmet == 0

    eventually(held, timeout=60)
    [waiting] = [one for one in shop("status", "--json").document["plan"]["tasks"] if one["key"] == "c"]
    assert waiting["doing"].startswith("waits for you to look at what landed")
    command = f"loopwright reviewed {short_id(shop.row(Plan).id)}"
    assert run.until(command).count("nothing new starts until you have reviewed what landed") == 1
    narrow = shop.on_terminal("status", columns=40)
    assert command in narrow, "not cut on a narrow terminal"
    assert shop("reviewed", "a").out == "reviewed: a\n"
    assert run.end() == 0, run.out
    assert shop.landed() == ["a", "b", "c"]
    assert shop("reviewed", shop.row(Plan).id).out == "reviewed: b, c\n"
