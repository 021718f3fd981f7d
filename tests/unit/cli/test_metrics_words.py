"""`metrics` says of a plan what `status` says of it."""

from dataclasses import replace

import pytest
from tests.doubles import Home, planned

from loopwright.cli.metrics import _cost, _row
from loopwright.cli.table import standing, summary
from loopwright.core.model import Plan
from loopwright.engine.metrics import Figures, plan_figures
from loopwright.engine.overview import plan_summaries
from loopwright.engine.views import plan_view


async def test_a_plan_stands_as_in_the_list_of_plans() -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    home.hand.park(leg, None)
    await home.command("cancel", home.task("a").id)
    await home.turn()
    one = home.store.read_sync(lambda tx: plan_figures(tx, home.plan()))
    [listed] = home.store.read_sync(plan_summaries)
    assert standing(one) == standing(listed) == ("NEEDS YOU", "red")
    assert "NEEDS YOU" in _row(one)[-1]
    assert one.figures.begun == 1, "as `show` numbers them"
    gaps = replace(one, status="VERIFIED", outcome="verified_with_gaps")
    assert standing(gaps)[0] == "VERIFIED WITH GAPS"
    view = home.store.read_sync(lambda tx: plan_view(tx, home.get(Plan, one.plan_id).id, home.world.paths))
    assert _cost(one.figures) in summary(view)


@pytest.mark.parametrize(
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
