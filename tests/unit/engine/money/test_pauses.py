"""A loop that has spent what it may: what it asks, how it goes on, and when it does so by itself."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.cases import each_case
from tests.doubles import Home, planned
from tests.unit.engine.money.test_spending import at_work, end, held_back
from tests.wording_plugin import Wording

from loopwright.core.receipts.events import in_words, overrides
from loopwright.core.rows.model import Attempt, CommandState, Plan, Run
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.ids import short_id
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import AttemptState, LoopState, PlanState, QuestionState
from loopwright.engine.rows.moves import MACHINE, move_attempt
from loopwright.engine.worker.advance import advance
from loopwright.ports import Tx


def question(home: Home) -> Question:
    [found] = home.all(Question)
    return found


async def paused(**policy: Any) -> tuple[Home, dict[str, Run]]:
    """Return a home in which one run has cost 50, and the next one may not start."""
    home, runs = await at_work("ab", running="a", **policy)
    end(home, runs["a"], 50)
    assert held_back(home, runs["b"])
    assert home.loop().state is LoopState.PAUSED
    return home, runs


def midnight(home: Home) -> datetime:
    return home.clock.now().replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)


@pytest.mark.capability("C075")
async def test_a_loop_pauses_and_asks_and_the_answer_raises_the_limit(wording: Wording) -> None:
    home, runs = await paused(max_cost=50)
    asked = question(home)
    assert (asked.kind, asked.state, asked.deadline) == ("budget", QuestionState.OPEN, None)
    wording(asked.text)
    assert asked.options == ("raise it to $0.0001", "stop")
    answered = await home.command("answer", asked.id, answer="1")
    assert (answered.state, answered.result) == (CommandState.APPLIED, "resumed")
    assert question(home).state is QuestionState.ANSWERED
    assert home.plan().policy.max_cost == 100
    assert home.loop().state is LoopState.RUNNING
    assert not held_back(home, runs["b"])


async def test_the_answer_can_name_another_amount_or_stop() -> None:
    home, _ = await paused(max_cost=50)
    refused = await home.command("answer", question(home).id, answer="much")
    assert refused.state is CommandState.REFUSED
    assert "raise it to $0.0001" in refused.result
    assert question(home).state is QuestionState.OPEN
    await home.command("answer", question(home).id, answer="raise it to $3")
    assert home.plan().policy.max_cost == 3_000_000

    home, _ = await paused(max_cost=50)
    await home.command("answer", question(home).id, answer="stop")
    assert home.loop().state is LoopState.STOPPED
    again = await home.command("answer", question(home).id, answer="stop")
    assert "answered already" in again.result


@each_case("limit", [None, 1, 50])
async def test_a_plan_that_would_pause_again_at_once_is_not_resumed(
    limit: int | None, wording: Wording
) -> None:
    home, _ = await paused(max_cost=50)
    refused = await home.command("resume", home.plan().id, **({"max_cost": limit} if limit else {}))
    assert refused.state is CommandState.REFUSED
    wording(refused.result)
    assert f"loopwright resume {short_id(home.plan().id)} --max-cost " in refused.result
    assert (home.plan().policy.max_cost, home.loop().state) == (50, LoopState.PAUSED)


@each_case("verb", ["resume", "stop", "cancel"])
async def test_what_a_person_says_otherwise_settles_the_question(verb: str) -> None:
    home, _ = await paused(max_cost=50)
    await home.command(verb, home.plan().id, **({"max_cost": 500} if verb == "resume" else {}))
    assert question(home).state is QuestionState.WITHDRAWN
    said = [in_words(one) for one in overrides(home.events("limits_set"), machine=MACHINE)]
    assert said == (["set other limits: max_cost $0.0005"] if verb == "resume" else [])


async def test_an_unknown_cost_can_be_lived_with() -> None:
    home, runs = await at_work("ab", running="a", max_cost=50)
    end(home, runs["a"], None)
    assert held_back(home, runs["b"])
    assert question(home).options == ("continue all the same", "stop")
    await home.command("answer", question(home).id, answer="continue all the same")
    assert (home.plan().unknown_costs, home.plan().policy.max_cost) == (0, 50)
    assert not held_back(home, runs["b"])


@pytest.mark.capability("C075")
@each_case("setting", ["max_cost_per_loop", "max_cost_per_project"])
@each_case(("cost", "why"), [(50, "$0.00005 of $0.00005"), (None, "is unknown")])
async def test_what_an_earlier_plan_cost_counts_for_the_loop_and_the_project(
    setting: str, cost: int | None, why: str
) -> None:
    home, runs = await at_work("a", running="a")
    end(home, runs["a"], cost)
    first = home.plan()
    await home.command("cancel", first.id)
    home.submit(planned("b"), policy=Policy(**{setting: 50}), sha256="b" * 64)
    (leg,) = await home.turn()
    run = home.get(Run, home.hand.until(leg, AttemptState.WORKING).run_id)
    assert held_back(home, run)
    assert why in question(home).text
    plan = home.get(Plan, run.plan_id)
    await home.command("resume", plan.id, **{setting: 60})
    assert not held_back(home, run)
    assert home.get(Plan, first.id).status is PlanState.CANCELLED


async def test_a_loop_does_not_pay_for_another_loop_of_its_project() -> None:
    home, runs = await at_work("a", running="a")
    end(home, runs["a"], 50)
    policies = {"other": Policy(max_cost_per_loop=50), "whole": Policy(max_cost_per_project=50)}
    found = {}
    for name, policy in policies.items():
        home.submit(planned(name), policy=policy, source_path=f"{name}.yaml")
        [leg] = await home.turn()
        found[name] = held_back(home, home.get(Run, home.hand.until(leg, AttemptState.WORKING).run_id))
    assert found == {"other": False, "whole": True}


@pytest.mark.capability("C075")
async def test_after_a_day_that_is_used_up_it_goes_on_by_itself(wording: Wording) -> None:
    home, runs = await paused(max_cost_per_day=50)
    at = midnight(home)
    assert home.loop().resume_at == question(home).deadline == at
    wording(home.loop().reason)
    looked = await advance(home.world)
    assert (looked.legs, looked.look_again_s) == ((), (at - home.clock.now()).total_seconds())
    home.clock.advance((at - home.clock.now()).total_seconds() - 1)
    assert await home.turn() == []
    assert home.loop().state is LoopState.PAUSED
    home.clock.advance(1)
    await home.turn()
    assert (home.loop().state, home.loop().resume_at) == (LoopState.RUNNING, None)
    assert question(home).state is QuestionState.EXPIRED
    assert not held_back(home, runs["b"])


async def test_what_was_parked_when_the_day_was_used_up_goes_on_with_the_next() -> None:
    home, runs = await at_work("ab", running="ab", max_cost_per_day=50)
    end(home, runs["a"], 50)

    def park(tx: Tx) -> None:
        attempt = tx.get(Attempt, runs["b"].attempt_id or "")
        assert attempt is not None
        move_attempt(tx, attempt, AttemptState.WAITING, wake_at=None, wait_reason="over")

    end(home, runs["b"], 5)
    home.store.transact_sync("park", park)
    assert held_back(home, runs["a"])
    home.clock.advance(86400)
    await home.turn()
    assert home.attempt("b").wake_at == home.clock.now()
    assert [leg.subject for leg in await home.turn()] == [home.attempt("b").id]


@each_case("policy", [{"wait_for_limits": False}, {"longest_wait": 60.0}])
async def test_who_does_not_wait_for_limits_does_not_wait_for_the_next_day(policy: dict[str, Any]) -> None:
    home, _ = await paused(max_cost_per_day=50, **policy)
    assert home.loop().resume_at is None
    assert "by itself" not in home.loop().reason
    home.clock.advance(2 * 86400)
    await home.turn()
    assert home.loop().state is LoopState.PAUSED


async def test_a_person_can_hold_a_loop_that_would_go_on_by_itself(wording: Wording) -> None:
    home, _ = await paused(max_cost_per_day=50)
    held = await home.command("pause", home.plan().id)
    assert held.result.startswith("paused; ")
    assert home.loop().resume_at is None
    wording(home.loop().reason)
    home.clock.advance(2 * 86400)
    await home.turn()
    assert home.loop().state is LoopState.PAUSED


async def test_what_is_only_judged_goes_on_although_the_budget_is_used_up() -> None:
    home = await Home().launch()
    plan = home.submit(planned("a"), policy=Policy(max_cost=50))
    [leg] = await home.turn()
    home.hand.until(leg, AttemptState.CHECKING)
    home.store.transact_sync("spent", lambda tx: tx.update(Plan, plan.id, spent_micros=50))
    await home.command("pause", plan.id)
    answer = await home.command("resume", plan.id)
    assert (answer.state, answer.result) == (CommandState.APPLIED, "resumed")


async def test_whoever_would_only_be_paused_again_is_told_what_to_name() -> None:
    home, _ = await paused(max_cost=50)
    answer = await home.command("resume", home.plan().id)
    assert answer.state is CommandState.REFUSED
    assert "--max-cost" in answer.result
