"""Who may start and go on under the caps of a plan, with rows as a worker leaves them."""

from dataclasses import replace
from typing import Any

import pytest
from tests.cases import each_case
from tests.doubles import Home, planned
from tests.wording_plugin import Wording

from loopwright.core.policy import budget
from loopwright.core.rows.model import Leg, Plan, Run
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import AttemptState, LoopState, RunState
from loopwright.engine.attempt import agent_ends, agent_runs
from loopwright.engine.money import spending
from loopwright.engine.processes.runs import Ended
from loopwright.engine.rows.moves import move_run, need
from loopwright.engine.rows.reservations import Reservations
from loopwright.engine.views.limit_views import cap_views
from loopwright.ports import AgentEvent, AgentResult, Exit, Tx


async def at_work(keys: str, *, running: str = "", **policy: Any) -> tuple[Home, dict[str, Run]]:
    """Return a home whose attempts have their workspaces, with the runs of some of them going on."""
    home = await Home().launch()
    home.submit(*(planned(key) for key in keys), policy=Policy(parallel=4, **policy))
    legs: dict[str, Leg] = {leg.subject: leg for leg in await home.turn()}
    runs = {}
    for key in keys:
        attempt = home.hand.until(legs[home.attempt(key).id], AttemptState.WORKING)
        runs[key] = home.get(Run, attempt.run_id)
        if key in running:
            runs[key] = start(home, runs[key])
    return home, runs


def start(home: Home, run: Run) -> Run:
    """Start a run with what it may cost, as a leg does."""

    def begin(tx: Tx) -> Run:
        most = allowed(tx, home, run)
        return move_run(tx, run, RunState.RUNNING, max_cost_micros=most)

    return home.store.transact_sync("start", begin)


def end(home: Home, run: Run, cost: int | None) -> None:
    home.store.transact_sync("end", lambda tx: move_run(tx, run, RunState.COMPLETE, cost_micros=cost))


def allowed(tx: Tx, home: Home, run: Run) -> int | None:
    return spending.allowance(tx, home.world, need(tx.get(Plan, run.plan_id), "the plan"), run)


def allowance(home: Home, run: Run) -> int | None:
    return home.store.read_sync(lambda tx: allowed(tx, home, run))


def held_back(home: Home, run: Run) -> bool:
    def look(tx: Tx) -> bool:
        plan = need(tx.get(Plan, run.plan_id), "the plan")
        return agent_runs._is_held_back(tx, home.world, plan, run)

    return home.store.transact_sync("look", look)


def usage(cost: int) -> AgentEvent:
    return AgentEvent(kind="Usage", data={"run": {"cost_micros": cost}})


async def test_without_caps_nothing_limits_a_run() -> None:
    home, runs = await at_work("a")
    assert allowance(home, runs["a"]) is None


@pytest.mark.capability("C075")
async def test_what_a_running_agent_may_cost_is_kept_free_for_it() -> None:
    home, runs = await at_work("abc", running="a", max_cost=250, max_cost_per_run=100)
    assert runs["a"].max_cost_micros == 100
    b = start(home, runs["b"])
    assert b.max_cost_micros == 100
    assert allowance(home, runs["c"]) == 0, "50 are left, which is no whole run: it waits"
    assert not held_back(home, runs["c"]), "but nothing is used up"
    end(home, runs["a"], 20)
    assert allowance(home, runs["c"]) == 100
    end(home, b, 200)
    assert allowance(home, runs["c"]) == 30, "with nobody to wait for, it gets what there is"


async def test_without_a_cap_on_runs_what_others_have_told_counts() -> None:
    home, runs = await at_work("ab", running="a", max_cost=250, reserve_per_run=None)
    home.world.ledger.note(runs["a"].id, 240)
    assert allowance(home, runs["b"]) == 10
    home.world.ledger.note(runs["a"].id, 250)
    assert allowance(home, runs["b"]) == 0


@pytest.mark.capability("C075")
async def test_without_a_cap_on_runs_what_one_will_probably_cost_is_kept_free_for_each() -> None:
    home, runs = await at_work("abc", running="a", max_cost=250, reserve_per_run=100)
    assert runs["a"].max_cost_micros == 250, "alone it may use all there is"
    assert allowance(home, runs["b"]) == 250, "and so may the next one, for which there is enough"
    b = start(home, runs["b"])
    assert allowance(home, runs["c"]) == 0, "50 are left beyond those two: it waits"
    assert not held_back(home, runs["c"]), "but nothing is used up"
    home.world.ledger.note(b.id, 120)
    end(home, runs["a"], 10)
    assert allowance(home, runs["c"]) == 120, "what the other has told is more than what was kept for it"
    home.world.ledger.note(b.id, 141)
    assert allowance(home, runs["c"]) == 0, "99 are less than a run probably costs"
    end(home, b, 145)
    assert allowance(home, runs["c"]) == 95, "with nobody to wait for, it gets what there is"


async def test_a_run_probably_costs_what_those_before_it_did() -> None:
    home, runs = await at_work("abcd", running="ab", max_cost=1000, reserve_per_run=100)
    end(home, runs["a"], 250)
    assert allowance(home, runs["c"]) == 750, "250 are kept free for the other one"
    start(home, runs["c"])
    assert allowance(home, runs["d"]) == 750, "250 are spent, twice 250 kept free, and 250 are needed"
    end(home, runs["b"], 251)
    assert allowance(home, runs["d"]) == 0, "499 are left, and an average of 250.5 is needed twice"


async def test_what_failed_at_once_says_nothing_of_what_a_run_costs() -> None:
    home, runs = await at_work("abc", running="abc", max_cost=1000, reserve_per_run=None)
    end(home, runs["a"], 0)
    end(home, runs["b"], 300)
    kept = home.store.read_sync(lambda tx: Reservations(tx).of(home.plan(), runs["c"]))
    assert kept == 300


async def test_an_agent_of_a_plan_without_limits_counts_in_the_project_too() -> None:
    home, runs = await at_work("a", running="a", reserve_per_run=60)
    capped = replace(home.plan(), policy=Policy(max_cost_per_day=100, reserve_per_run=50))
    other = replace(runs["a"], id="run_other", state=RunState.QUEUED)
    found = home.store.read_sync(lambda tx: spending.caps(tx, home.world, capped, other, reserve=True))
    assert [(one.setting, one.reserved, one.expected) for one in found] == [("max_cost_per_day", 0, 60)]
    assert budget.allowance(found, expected=50) == 0
    assert budget.allowance(found, expected=40) == 100


async def test_the_runs_of_a_task_count_together(wording: Wording) -> None:
    home, runs = await at_work("ab", running="a", max_cost_per_task=50)
    end(home, runs["a"], 50)
    again = home.store.transact_sync(
        "again", lambda tx: budget.used_up(spending.caps(tx, home.world, home.plan(), runs["a"]))
    )
    assert again is not None
    wording(again.why)
    assert allowance(home, runs["b"]) == 50, "another task has a budget of its own"


async def test_a_day_is_that_of_the_project_and_ends(wording: Wording) -> None:
    home, runs = await at_work("ab", running="a", max_cost_per_day=50)
    end(home, runs["a"], 50)
    assert (home.project().spent_on, home.project().spent_micros) == (home.clock.now().date().isoformat(), 50)
    assert held_back(home, runs["b"])
    assert home.loop().state is LoopState.PAUSED
    wording(home.loop().reason)
    home.clock.advance(86400)
    await home.command("resume", home.plan().id)
    assert not held_back(home, runs["b"])
    assert allowance(home, runs["b"]) == 50


async def test_an_unknown_cost_of_the_day_holds_back_until_someone_names_a_limit(wording: Wording) -> None:
    home, runs = await at_work("ab", running="a", max_cost_per_day=50)
    end(home, runs["a"], None)
    assert home.project().unknown_costs == home.plan().unknown_costs == 1
    assert held_back(home, runs["b"])
    wording(home.loop().reason)
    await home.command("resume", home.plan().id, max_cost_per_day=60)
    assert home.project().unknown_costs == home.plan().unknown_costs == 0
    assert home.plan().policy.max_cost_per_day == 60
    assert not held_back(home, runs["b"])


async def test_a_run_is_over_at_what_all_of_them_have_cost(wording: Wording) -> None:
    home, runs = await at_work("ab", running="ab", max_cost=100)
    first, second = (spending.SpendingWatch(home.world, runs[key], ()) for key in "ab")
    assert not await first.is_over(), "nobody has told anything"
    first.hear(usage(50))
    second.hear(usage(29))
    assert not await first.is_over()
    assert home.events("budget_near") == []
    second.hear(usage(30))
    assert not await second.is_over()
    assert not await second.is_over()
    assert [event.run for event in home.events("budget_near")] == [runs["b"].id]
    second.hear(usage(50))
    assert await first.is_over()
    assert first.over is not None
    wording(first.over.why)
    end(home, runs["b"], 20)
    assert not await first.is_over(), "what it cost in the end is what counts"
    second.forget()
    assert not await first.is_over()


async def test_what_a_run_tells_only_in_its_end_is_warned_of_once_and_shown_until_there_is_more(
    wording: Wording,
) -> None:
    home, runs = await at_work("abc", running="abc", max_cost=100, max_cost_per_task=90)

    def shown() -> list[str]:
        return [
            one.warning for one in home.store.read_sync(lambda tx: cap_views(tx, home.plan())) if one.warning
        ]

    def ends(key: str, cost: int) -> None:
        now = home.clock.now()
        left = Exit(code=0, ended_by="itself", started_at=now, ended_at=now, output_bytes=0, output_sha256="")
        ended = Ended(exit=left, interrupted=False, result=AgentResult(claimed=True, cost_micros=cost))
        home.store.transact_sync(
            "end", lambda tx: agent_ends.end_run(tx, home.world, runs[key], RunState.COMPLETE, ended)
        )

    assert shown() == []
    ends("a", 80)
    assert [event.payload["cap"] for event in home.events("budget_near")] == ["max_cost_per_task", "max_cost"]
    wording(shown())
    ends("b", 5)
    assert len(home.events("budget_near")) == 2, "said once"
    wording(shown())
    await home.command("resume", home.plan().id, max_cost=200, max_cost_per_task=None)
    assert shown() == [], "there is another limit"
    ends("c", 80)
    assert [event.payload["limit_micros"] for event in home.events("budget_near")] == [90, 100, 200]


async def test_what_was_stopped_over_an_estimate_was_over_although_it_cost_less_in_the_end(
    wording: Wording,
) -> None:
    home, runs = await at_work("a", running="a", max_cost=100)
    watch = spending.SpendingWatch(home.world, runs["a"], ())
    assert not await watch.was_over()
    watch.hear(usage(100))
    assert await watch.is_over()
    watch.hear(usage(90))
    assert not await watch.is_over()
    assert await watch.was_over()
    assert watch.over is not None
    wording(watch.over.why)


@each_case(
    ("data", "cost"),
    [
        ({}, None),
        ({"run": {"cost_micros": 7}}, 7),
        ({"run": {"cost_micros": 0, "input_tokens": 5, "output_tokens": 5}}, 0),
        ({"run": {"input_tokens": 4, "output_tokens": 1}}, 15),
        ({"run": {"input_tokens": 4}}, None),
        ({"run": {}, "models": {"o3": {"input_tokens": 4, "output_tokens": 1}, "gpt-5": {}}}, 16),
        ({"run": {}, "models": {"nobody-knows": {"input_tokens": 4, "output_tokens": 1}}}, None),
    ],
)
def test_a_cost_so_far_is_the_agents_own_word_or_an_estimate(data: dict[str, Any], cost: int | None) -> None:
    assert spending.cost_so_far(data, "gpt-5", ()) == cost
