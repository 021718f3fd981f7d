"""A budget of a day: the loop rests until the next one begins, by the wall clock, whoever is killed meanwhile."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.acceptance.control.money.test_costs import dear, spent
from tests.acceptance.control.workshop import Workshop, kill
from tests.chaos.wall_clock import HOUR, MISSING, WallClock
from tests.waiting import eventually

from loopwright.core.rows.model import Loop, Plan, Role, Run
from loopwright.core.rows.waiting_rows import Question

pytestmark = [pytest.mark.skipif(bool(MISSING), reason=MISSING), pytest.mark.capability("C075")]


def until_paused(shop: Workshop) -> Loop:
    return eventually(lambda: shop.rows(Loop, state="PAUSED"), timeout=60)[0]


def goes_on(shop: Workshop) -> None:
    assert shop.row(Plan).outcome == "verified"
    assert shop.row(Question).state == "EXPIRED", "nobody had to answer"
    assert [run.state for run in shop.rows(Run, role=Role.IMPLEMENTER)] == ["ERROR", "COMPLETE"]
    (resumed,) = [event for event in shop.events("loop_started") if event.actor == "loopwright"]
    assert resumed.loop == shop.row(Loop).id


@pytest.mark.more
@pytest.mark.timeout(300)
def test_a_loop_waits_for_the_next_day_in_the_foreground(shop: Workshop, clock: WallClock) -> None:
    going = shop.start("run", str(dear(shop, spent(1.2))), "--max-cost-per-day", "1")
    loop = until_paused(shop)
    tomorrow = loop.updated_at.date() + timedelta(days=1)
    assert loop.resume_at == datetime(tomorrow.year, tomorrow.month, tomorrow.day, tzinfo=UTC)
    named = f"it continues by itself at {tomorrow} 00:00 UTC"
    assert named in loop.reason
    assert named.removesuffix(" UTC") in shop("status").out
    assert f"it continues by itself at {tomorrow} 00:00" in shop("answer").out
    assert shop("status", "--json").document["plan"]["resume_at"] == loop.resume_at.isoformat()
    assert going.process.poll() is None, "it waits"
    clock.jump(24 * HOUR)
    assert going.end(60) == 0, going.out
    goes_on(shop)


@pytest.mark.timeout(300)
def test_whoever_works_when_the_day_begins_goes_on_after_a_kill(shop: Workshop, clock: WallClock) -> None:
    going = shop.start("run", str(dear(shop, spent(1.2))), "--max-cost-per-day", "1")
    until_paused(shop)
    kill(going)
    worker = shop.start("worker", "--until-idle")
    worker.until("working in")
    clock.jump(24 * HOUR)
    assert worker.end(60) == 0, worker.out
    goes_on(shop)
