"""Fifty loops on four slots: none starves, nothing stands still, budgets are kept."""

import pytest
from tests.simulation.promises.invariants import Violation
from tests.simulation.week import LOOPS, SLOTS, longest_wait_s, played

from loopwright.core.rows.hold_rows import Hold
from loopwright.core.rows.model import Loop, Plan
from loopwright.core.values.states import ENDED_PLAN


@pytest.mark.capability("C075")
def test_fifty_loops_share_four_slots_and_each_gets_its_agents() -> None:
    week = played(1, seconds=900.0, stretch=1.0)
    seen = week.seen
    assert len(week.database.all(Loop)) == LOOPS
    turns = {one.loop_id for one in week.database.all(Hold).values() if one.after}
    assert len(turns) < LOOPS / 2, "only loops with a scope of another loop wait for their turn"
    assert min(seen.served[one] for one in week.database.all(Loop).keys() - turns) >= 1
    assert seen.longest_wait_s < longest_wait_s(1.0)
    assert seen.busy > seen.looks * SLOTS / 2
    assert any(one.status in ENDED_PLAN for one in week.database.all(Plan).values())


def test_loops_that_wait_for_slow_agents_do_not_pile_up_work_in_progress() -> None:
    try:
        played(1, seconds=400.0, stretch=60.0)
    except Violation as broken:
        pytest.fail(str(broken))


@pytest.mark.long
def test_a_whole_week() -> None:
    week = played(2, seconds=7 * 86_400.0)
    assert min(week.seen.served[one] for one in week.database.all(Loop)) >= 10
