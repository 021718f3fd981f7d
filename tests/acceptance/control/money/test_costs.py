"""What agents may cost: estimated, warned of, stopped at, and gone on with, through the real program."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.control.workshop import Workshop, kill, refused
from tests.acceptance.sandbox import task
from tests.waiting import eventually

from loopwright.core.rows.model import Loop, Plan, Project, Role, Run
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.ids import short_id

long = partial(pytest.param, marks=pytest.mark.long)


def spent(dollars: float) -> dict[str, Any]:
    """Return a step that tells what the run has cost so far."""
    return {"usage": {"input_tokens": 10, "output_tokens": 1, "cost_micros": round(dollars * 1_000_000)}}


GO_ON = ({"run": "cp half whole"}, spent(0.1), {"claim": "carried on"})


def dear(shop: Workshop, *steps: Any, **settings: Any) -> Path:
    """Write a plan whose agent does half, takes these steps until it is stopped, and goes on cheaply from there."""
    half = [{"write": "half", "text": "half\n"}, *steps, {"hang": 90}]
    shop.play({"dear": [[{"expect_prompt": "You were interrupted", "otherwise": half}, *GO_ON]]})
    return shop.plan("dear", [task("dear", "test -s whole")], settings=settings)


def agents(shop: Workshop) -> list[Run]:
    return shop.rows(Run, role=Role.IMPLEMENTER)


@pytest.mark.capability("C075")
@pytest.mark.parametrize(
    ("cap", "near", "reason"),
    [
        ("max_cost", "four fifths of the budget are spent", "the budget is used up: $1.20 of $1.00"),
        long(
            "max_cost_per_project",
            "project are spent",
            "the budget of the project is used up: $1.20 of $1.00",
        ),
        # The others stop runs in tests of their own below.
        long("max_cost_per_task", "a task are spent", "the budget of a task is used up: $1.20 of $1.00"),
        long("max_cost_per_loop", "the loop are spent", "the budget of the loop is used up: $1.20 of $1.00"),
        long("max_cost_per_day", "the day are spent", "the budget of the day is used up: $1.20 of $1.00"),
        long("max_cost_per_run", "a run may cost are spent", "a run has cost what one may: $1.20 of $1.00"),
    ],
)
def test_an_agent_is_stopped_at_a_cap_its_work_is_kept_and_a_higher_one_finishes_it(
    shop: Workshop, cap: str, near: str, reason: str
) -> None:
    gate = shop.gate("warned")
    flag = "--" + cap.replace("_", "-")
    plan = dear(shop, spent(0.5), spent(0.85), gate.step, spent(0.9), spent(1.2))
    going = shop.start("run", str(plan), flag, "1", "--no-wait")
    shop.until_half()
    (warned,) = eventually(lambda: shop.events("budget_near"), timeout=60)
    assert warned.payload == {"cap": cap, "spent_micros": 850_000, "limit_micros": 1_000_000}
    assert f"{near}: $0.85 of $1.00" in shop("status").out
    going.until(f"{near}: $0.85 of $1.00")
    gate.let_go()
    assert going.end() == 3, going.out
    assert "warning" not in shop("status").out, "used up is more than nearly used up"
    plan_id = short_id(shop.row(Plan).id)
    raising = f"loopwright resume {plan_id} {flag} 2.20"
    assert reason in going.out
    assert f"`{raising}` raises it and continues" in " ".join(going.out.split())
    (run,) = agents(shop)
    assert (run.state, run.failure, run.cost_micros) == ("ERROR", "budget", 1_200_000)
    (attempt,) = shop.attempts("dear")
    assert attempt.state == "WAITING"
    assert shop.pinned(attempt, "half") == "half\n"
    loop = shop.row(Loop)
    assert (loop.state, loop.reason.startswith(reason)) == ("PAUSED", True)
    assert len(shop.events("budget_near")) == 1, "said once"
    assert not shop.processes()

    said = shop(*raising.split()[1:], timeout=90)
    assert said.code == 0, said.out + said.err
    assert shop.row(Plan).outcome == "verified"
    assert shop.row(Question).state == "WITHDRAWN"
    assert len(shop.attempts("dear")) == 1
    assert shop.row(Plan).spent_micros == shop.row(Project).spent_micros == 1_300_000


@pytest.mark.capability("C075", "C090")
def test_a_used_up_budget_is_a_question_and_its_answer_goes_on(shop: Workshop) -> None:
    assert shop.run(dear(shop, spent(1.2), max_cost=1, max_cost_per_run=5)).code == 3
    question = shop.row(Question)
    shown = shop("show", shop.row(Plan).id).out
    for told in (shop("status").out, shop("questions").out, shown):
        assert "the budget is used up: $1.20 of $1.00" in told
        assert f"loopwright answer {short_id(question.id)} 'raise it to $2.20'" in told
    for told in (shop("status").out, shown):
        assert "limits: $5.00 a run, $1.20 of $1.00 for the plan" in told
    document = shop("status", "--json").document["plan"]
    assert document["limits"] == [
        {"setting": "max_cost_per_run", "limit_micros": 5_000_000, "spent_micros": None, "warning": ""},
        {"setting": "max_cost", "limit_micros": 1_000_000, "spent_micros": 1_200_000, "warning": ""},
    ]
    assert [one["kind"] for one in document["questions"]] == ["budget"]
    refused(shop("answer", question.id, "yes"), 2, "is not an answer to this question", "raise it to $2.20")
    shop.start("worker").until("working in")
    said = shop("answer", question.id, "raise it to $2.20")
    assert said.code == 0, said.out + said.err
    eventually(lambda: shop.row(Plan).outcome == "verified", timeout=60)
    assert shop("questions").out == "nothing waits for an answer\n"


def test_a_used_up_budget_can_be_answered_with_stop(shop: Workshop) -> None:
    assert shop.run(dear(shop, spent(1.2), max_cost=1)).code == 3
    said = shop("answer", shop.row(Question).id, "stop")
    assert said.code == 0, said.out + said.err
    assert shop.row(Loop).state == "STOPPED"
    assert shop("resume", "--max-cost", "off", timeout=90).code == 0


def test_what_earlier_plans_of_the_loop_cost_counts_for_the_next_one(shop: Workshop) -> None:
    shop.play({"a": [[{"write": "a", "text": "x"}, spent(0.6)]]})
    plan = shop.plan("again", [task("a", "test -s a")])
    for number, code in ((1, 0), (2, 0), (3, 3)):
        said = shop.run(plan, "--new", "--max-cost-per-loop", "1")
        assert said.code == code, said.out + said.err
        assert len(shop.rows(Plan)) == number
    assert "the budget of the loop is used up: $1.20 of $1.00" in said.out
    assert len(shop.started()) == 2
    assert "$1.20 of $1.00 for the loop" in shop("status").out


def test_after_a_run_that_cost_what_one_may_a_plain_resume_goes_on(shop: Workshop) -> None:
    assert shop.run(dear(shop, spent(1.2), max_cost_per_run=1)).code == 3
    said = shop("resume", timeout=90)
    assert said.code == 0, said.out + said.err


def test_the_old_limit_holds_until_another_is_named(shop: Workshop) -> None:
    assert shop.run(dear(shop, spent(1.2), max_cost_per_task=1)).code == 3
    for arguments in ((), ("--max-cost-per-task", "1.20")):
        said = shop("resume", *arguments, timeout=90)
        assert said.code == 2, said.out + said.err
        assert "the budget of a task is used up" in said.err
        assert "resume" in said.err
        assert "--max-cost-per-task" in said.err
    assert len([run for run in agents(shop) if run.started_at]) == 1, "no agent was started"
    assert shop("resume", "--max-cost-per-task", "off", timeout=90).code == 0


def test_a_run_that_costs_too_much_is_stopped_by_whoever_finds_it_after_a_crash(shop: Workshop) -> None:
    gate = shop.gate("dear")
    plan = dear(shop, spent(0.5), gate.step, spent(1.2), max_cost=1)
    first = shop.start("run", str(plan))
    shop.until_half()
    kill(first)
    gate.let_go()
    said = shop.run(plan)
    assert said.code == 3, said.out + said.err
    (run,) = agents(shop)
    assert (run.failure, run.cost_micros) == ("budget", 1_200_000)
    assert shop("resume", "--max-cost", "2", timeout=90).code == 0


def test_agents_side_by_side_cannot_spend_more_together_than_there_is(shop: Workshop) -> None:
    """Two may cost 1 each and there is 1.50: the second waits until the first has left enough."""
    gate = shop.gate("first")
    steps = [gate.step, spent(0.2)]
    shop.play({key: [[{"write": key, "text": "x"}, *steps]] for key in "ab"})
    settings = {"max_cost": 1.5, "max_cost_per_run": 1, "parallel": 2}
    plan = shop.plan("two", [task("a", "test -s a"), task("b", "test -s b")], settings=settings)
    going = shop.start("run", str(plan))
    eventually(lambda: len(shop.started()) == 1, timeout=60)
    # The other one has its workspace, and would start as soon as it could.
    eventually(lambda: len(list((shop.home / "workspaces").glob("*/greet.txt"))) == 2, timeout=60)
    assert len(shop.started()) == 1
    gate.let_go()
    assert going.end() == 0, going.out
    first, second = sorted(agents(shop), key=lambda run: str(run.started_at))
    assert str(second.started_at) >= str(first.ended_at)
    assert (first.max_cost_micros, second.max_cost_micros) == (1_000_000, 1_000_000)


def test_an_agent_that_waits_for_budget_leaves_its_slot_to_another_plan(shop: Workshop) -> None:
    """Of two slots one is taken by an agent that works, and the other one would be by the one that waits for it."""
    hold = shop.gate("hold")
    steps = {key: [[{"write": key, "text": "x"}, hold.step, spent(0.2)]] for key in "ab"}
    shop.play({**steps, "other": [[{"write": "other", "text": "x"}]]})
    settings = {"max_cost": 0.75, "parallel": 2}
    tasks = [task("a", "test -s a"), task("b", "test -s b")]
    going = shop.start("run", str(shop.plan("two", tasks, settings=settings)))
    eventually(lambda: len(shop.started()) == 1, timeout=60)
    eventually(lambda: len(list((shop.home / "workspaces").glob("*/greet.txt"))) == 2, timeout=60)
    other = shop.start("run", str(shop.plan("other", [task("other", "test -s other")])))
    assert other.end() == 0, other.out
    assert [key for key, _ in shop.started()][1:] == ["other"], "the second of the first plan still waits"
    document = shop("status", shop.row(Plan, title="two").id, "--json").document
    assert "waits for agents that run to leave enough of the budget" in {
        one["doing"] for one in document["plan"]["tasks"]
    }
    hold.let_go()
    assert going.end() == 0, going.out
    assert len(shop.started()) == 3
    assert sorted(run.max_cost_micros or 0 for run in agents(shop)) == [0, 550_000, 750_000], (
        "what is kept free for an agent is no limit for it"
    )


def test_agents_side_by_side_are_stopped_at_what_they_cost_together(shop: Workshop) -> None:
    gate = shop.gate("both")
    steps = [spent(0.6), {"say": "so far"}, gate.step, spent(0.65), {"hang": 90}]
    shop.play({key: [[{"write": key, "text": "x"}, *steps]] for key in "ab"})
    plan = shop.plan(
        "two", [task("a", "test -s a"), task("b", "test -s b")], settings={"max_cost": 1.25, "parallel": 2}
    )
    going = shop.start("run", str(plan))
    eventually(lambda: len(shop.started()) == 2, timeout=60)
    gate.let_go()
    assert going.end() == 3, going.out
    assert {run.failure for run in agents(shop)} == {"budget"}
    assert {attempt.state for key in "ab" for attempt in shop.attempts(key)} == {"WAITING"}
    assert "the budget is used up: $1.30 of $1.25" in shop.row(Loop).reason


def test_a_cost_that_the_agent_does_not_tell_is_estimated_from_its_tokens_and_marked(shop: Workshop) -> None:
    used = {"input_tokens": 200_000, "output_tokens": 10_000, "cache_read_tokens": 400_000}
    shop.play({"a": [[{"write": "a", "text": "x"}, {"usage": used}]]})
    plan = shop.plan("tokens", [task("a", "test -s a")], settings={"model": "gpt-5", "max_cost": 2})
    said = shop.run(plan)
    assert said.code == 0, said.out + said.err
    assert "~$0.40" in said.out
    (run,) = agents(shop)
    assert (run.cost_micros, run.cost_estimated) == (400_000, True)
    assert "~$0.40" in shop("status").out
    assert "~$0.40" in shop("show", "a").out
    assert "~$0.40" in shop("show", run.id).out
    document = shop("status", "--json").document["plan"]
    assert (document["cost_micros"], document["cost_estimated"]) == (400_000, True)
    path = shop.repository / ".loopwright" / "receipts" / f"{shop.row(Plan).id}.json"
    receipt = json.loads(path.read_text())
    assert receipt["cost"]["estimated_runs"] == 1
    assert receipt["runs"][0]["cost_estimated"] is True
    assert "~$0.40" in shop("receipt", "show").out
    assert shop("receipt", "verify", str(path)).code == 0


def test_an_agent_that_keeps_its_budget_itself_pauses_the_loop_with_its_work_kept(shop: Workshop) -> None:
    shop.play_claude("budget", "done")
    said = shop.run(shop.plan("dear", [task("dear", "test -s made.txt")]), "--max-cost", "1", "--no-wait")
    assert said.code == 3, said.out + said.err
    assert (shop.row(Loop).state, shop.attempts("dear")[0].state) == ("PAUSED", "WAITING")
    assert "a run has cost what one may" in said.out
    assert shop("resume", "--max-cost", "2", timeout=90).code == 0


def test_a_budget_of_the_agents_own_is_not_told_as_ours(shop: Workshop) -> None:
    shop.play({"dear": [[spent(0.1), {"fail": "budget", "message": "my session has cost enough"}]]})
    path = shop.plan("dear", [task("dear", "test -s whole")], settings={"max_cost": 5})
    said = shop.run(path, "--no-wait")
    assert said.code == 1, said.out + said.err
    why = "dear failed and is not tried again: The budget is used up. my session has cost enough"
    assert why in " ".join(shop("questions").out.split())
    assert shop.row(Loop).state == "FAILED", "it is not paused, as a limit of ours would have it"
    assert "may" not in said.out


def test_tokens_stop_an_agent_that_tells_no_cost(shop: Workshop) -> None:
    used = {"usage": {"input_tokens": 0, "output_tokens": 120_000}}
    said = shop.run(dear(shop, used, max_cost=1, model="my-own", prices=["my-* 1 10"]))
    assert said.code == 3, said.out + said.err
    assert "the budget is used up: ~$1.20 of $1.00" in said.out, "an estimate, and marked as one"
    assert shop("resume", "--max-cost", "2", timeout=90).code == 0


def test_a_cap_is_refused_when_nobody_knows_what_a_run_has_cost(shop: Workshop) -> None:
    steps = {
        key: [[{"write": key, "text": "x"}, {"usage": {"input_tokens": 5, "output_tokens": 5}}]]
        for key in "ab"
    }
    path = shop.chain("a", "b", steps=steps, settings={"max_cost_per_day": 1, "model": "nobody-knows"})
    said = shop.run(path, "--no-wait")
    assert said.code == 3, said.out + said.err
    assert "the cost of a run is unknown" in said.out
    (run,) = [run for run in agents(shop) if run.started_at]
    assert (run.cost_micros, run.cost_estimated) == (None, False), "unknown is not nothing"
    assert shop("resume", "--max-cost-per-day", "off", timeout=90).code == 0


@pytest.mark.more
def test_what_one_plan_spent_today_counts_for_the_next_plan_of_the_project(shop: Workshop) -> None:
    shop.play({key: [[{"write": key, "text": "x"}, spent(0.6)]] for key in "abc"})
    settings = {"max_cost_per_day": 1}
    for key, code in (("a", 0), ("b", 0), ("c", 3)):
        path = shop.plan(f"plan-{key}", [task(key, f"test -s {key}")], settings=settings)
        said = shop.run(path, "--no-wait")
        assert said.code == code, said.out + said.err
    assert "the budget of the day is used up: $1.20 of $1.00" in said.out
    assert len(shop.started()) == 2
