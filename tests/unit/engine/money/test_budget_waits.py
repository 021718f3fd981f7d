"""An attempt whose agent waits for others to leave enough of the budget: parked, and woken by what frees some."""

from datetime import timedelta
from typing import Any

import pytest
from tests.doubles import Home, planned
from tests.unit.engine.money.test_spending import end, start

from loopwright.core.policy import budget
from loopwright.core.rows.model import Attempt, Leg, Run
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import AttemptState
from loopwright.engine.money import spending
from loopwright.engine.rows.moves import move_attempt
from loopwright.ports import Tx


async def crowded(keys: str = "abc", **policy: Any) -> tuple[Home, Run, Leg]:
    """Return a home in which `a` works and leaves nothing for `b`, which is parked; others have not begun."""
    caps = {"max_cost": 150, "max_cost_per_run": 100, **policy}
    home = await Home(slots=2).launch()
    home.submit(*(planned(key) for key in keys), policy=Policy(parallel=1, **caps))
    legs = {leg.subject: leg for leg in await home.turn()}
    a = home.hand.until(legs[home.attempt("a").id], AttemptState.WORKING)
    running = start(home, home.get(Run, a.run_id))
    leg = legs[home.attempt("b").id]
    park(home, leg)
    return home, running, leg


def park(home: Home, leg: Leg) -> None:
    """Park an attempt as a leg does that finds nothing left for its agent."""

    def waits(tx: Tx) -> None:
        attempt = tx.get(Attempt, leg.subject)
        assert attempt is not None
        move_attempt(tx, attempt, AttemptState.WAITING, fence=leg.fence, **spending.waiting(tx, home.plan()))

    home.hand.until(leg, AttemptState.PREPARING)
    home.store.transact_sync("park", waits)


@pytest.mark.capability("C075")
async def test_it_waits_without_a_leg_and_nobody_joins_it() -> None:
    home, _, _ = await crowded()
    assert (home.attempt("b").wait_reason, home.attempt("b").wake_at) == (budget.WAITS, None)
    assert await home.turn() == [], "c could only wait as well"
    assert home.attempt("c").state is AttemptState.QUEUED


@pytest.mark.capability("C075")
async def test_the_end_of_an_agent_wakes_it_and_its_workspace_is_brought_up_to_date() -> None:
    home, running, parked = await crowded()
    end(home, running, 20)
    woken = next(leg for leg in await home.turn() if leg.subject == parked.subject)
    assert woken.n == parked.n + 1
    b = home.attempt("b")
    assert (b.state, b.wait_reason, b.wake_at) == (AttemptState.PREPARING, "", None)


async def test_what_is_still_too_little_leaves_it_parked_and_nothing_has_happened() -> None:
    home, running, parked = await crowded()
    events = len(home.events())
    # As whoever resumes the loop lets it.
    home.store.transact_sync("look", lambda tx: tx.update(Attempt, parked.subject, wake_at=tx.now()))
    assert await home.turn() == []
    assert (home.attempt("b").state, home.attempt("b").wake_at) == (AttemptState.WAITING, None)
    assert len(home.events()) == events
    end(home, running, 10)
    assert parked.subject in [leg.subject for leg in await home.turn()]


async def test_whoever_sets_another_limit_wakes_it() -> None:
    home, _, parked = await crowded()
    await home.command("resume", home.plan().id, max_cost=300)
    assert parked.subject in [leg.subject for leg in await home.turn()]


async def test_a_new_day_wakes_it_without_anybody() -> None:
    home, _, _ = await crowded(max_cost=None, max_cost_per_day=150)
    tomorrow = budget.next_day(home.clock.now())
    assert home.attempt("b").wake_at == tomorrow
    home.clock.advance((tomorrow - home.clock.now() + timedelta(seconds=1)).total_seconds())
    await home.turn()
    assert home.attempt("b").wake_at == budget.next_day(home.clock.now()), (
        "the agent of today still needs it all"
    )
