"""`metrics` says of a plan what `status` says of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.cases import each_case
from tests.doubles import Home, planned

from loopwright.cli.commands.watch.stats import _cost, _row, _told
from loopwright.cli.screens.plan_table import standing, summary
from loopwright.core.policy.price_table import AS_OF
from loopwright.core.rows.model import Plan
from loopwright.core.values.states import PlanState
from loopwright.core.values.wording import money
from loopwright.engine.views.metrics import Figures, PlanFigures, RunFigures, loop_figures, plan_figures
from loopwright.engine.views.overview import plan_summaries
from loopwright.engine.views.views import plan_view

EPOCH = datetime(2026, 1, 2, tzinfo=UTC)


async def test_a_plan_stands_as_in_the_list_of_plans() -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    ahead = home.store.read_sync(lambda tx: plan_figures(tx, home.plan()))
    assert ahead.figures.begun == 0, "its workspace is made ready, and no agent is at work yet"
    home.hand.park(leg, None)
    await home.command("cancel", home.task("a").id)
    await home.turn()
    one = home.store.read_sync(lambda tx: plan_figures(tx, home.plan()))
    [listed] = home.store.read_sync(plan_summaries)
    assert standing(one) == standing(listed) == ("NEEDS YOU", "red")
    assert "NEEDS YOU" in _row(one)[-1]
    assert one.figures.begun == 1
    view = home.store.read_sync(lambda tx: plan_view(tx, home.get(Plan, one.plan_id).id, home.world.paths))
    assert _cost(one.figures) in summary(view)


@each_case(
    ("figures", "said"),
    [
        (Figures(), "$0.00"),
        (Figures(unknown_costs=8), "cost unknown"),
        (Figures(unknown_costs=1, cost_micros=2_000_000), "at least $2.00"),
        (Figures(cost_micros=2_000_000, cost_estimated=True), "~$2.00"),
    ],
)
def test_an_unknown_cost_is_said_in_the_words_of_status(figures: Figures, said: str) -> None:
    assert _cost(figures) == said


def test_the_date_of_the_prices_is_said_with_an_estimate() -> None:
    assert any(str(AS_OF) in one for one in _told([], Figures(cost_micros=1, cost_estimated=True)))
    assert not any(str(AS_OF) in one for one in _told([], Figures(cost_micros=1)))


@each_case(
    ("agent", "micros", "ended", "said"),
    [
        (None, None, True, "-"),
        ("claude", None, True, "cost unknown"),
        ("claude", None, False, "$0.00"),
        ("claude", 2_000_000, True, "$2.00"),
    ],
)
def test_the_cost_of_a_run_is_never_made_up(
    agent: str | None, micros: int | None, *, ended: bool, said: str
) -> None:
    run = RunFigures(
        run_id="run_1",
        plan_id="plan_1",
        loop_id="loop_1",
        task="",
        attempt=None,
        role="gate",
        agent=agent,
        model=None,
        state="COMPLETE",
        failure=None,
        started_at=EPOCH,
        ended_at=EPOCH if ended else None,
        wall_seconds=3.0 if ended else None,
        cost_micros=micros,
        cost_estimated=False,
        usage=None,
    )
    row = _row(run)
    assert row[:2] + row[2:6] == ("run_1", "-", "-", "gate", "3 s" if ended else "-", said)


def test_a_loop_is_all_of_its_plans() -> None:
    """The newest first: it still goes on, so the loop has not ended."""
    first = Figures(tasks=2, completed=2, attempts=3, retries=1, first_pass=1, cost_micros=5)
    plan = PlanFigures(
        plan_id="plan_1",
        loop_id="loop_1",
        loop="shop/plan",
        title="t",
        status=PlanState.VERIFIED,
        state="VERIFIED",
        outcome="verified",
        loop_state="",
        started_at=EPOCH,
        ended_at=EPOCH + timedelta(seconds=9),
        wall_seconds=9.0,
        figures=first,
    )
    going = replace(
        plan,
        plan_id="plan_2",
        status=PlanState.RUNNING,
        started_at=EPOCH + timedelta(seconds=20),
        ended_at=None,
        wall_seconds=None,
        figures=Figures(tasks=4, completed=1, attempts=1, first_pass=1),
    )
    other = replace(plan, plan_id="plan_3", loop_id="loop_2")
    one, two = loop_figures([going, other, plan])
    assert (one.loop_id, one.plans, one.verified, one.wall_seconds) == ("loop_1", 2, 1, 9.0)
    assert (one.started_at, one.ended_at) == (EPOCH, None)
    assert (one.figures.tasks, one.figures.retries, one.figures.first_pass_rate) == (6, 1, 2 / 3)
    assert (two.loop_id, two.ended_at) == ("loop_2", plan.ended_at)
    assert _row(one)[:3] == ("loop_1", "1/2", "3/6")


@each_case(
    ("micros", "said"),
    [
        (None, "unknown"),
        (0, "$0.00"),
        (1, "$0.000001"),
        (1_640, "$0.002"),
        (4_999, "$0.005"),
        (5_000, "$0.01"),
        (12_345, "$0.01"),
    ],
)
def test_what_rounds_to_nothing_is_not_said_to_be_nothing(micros: int | None, said: str) -> None:
    assert money(micros) == said
    assert money(micros, estimated=True).removeprefix("~") == said
