"""One word for how a plan stands, wherever it is said."""

from dataclasses import replace

from tests.doubles import Home, planned
from tests.wording_plugin import Wording

from loopwright.cli.screens.plan_table import standing
from loopwright.core.rows.model import Finish
from loopwright.core.values.states import FinishState
from loopwright.engine.people.commands import refusal
from loopwright.engine.rows.finishes import move_finish
from loopwright.engine.rows.plan_states_text import attended, plan_word
from loopwright.engine.views.overview import plan_summaries
from loopwright.engine.views.views import plan_view


async def test_a_message_has_the_word_of_the_screens_and_nothing_runs_without_a_worker(
    wording: Wording,
) -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    [listed] = home.store.read_sync(plan_summaries)
    view = home.store.read_sync(lambda tx: plan_view(tx, home.plan().id, home.world.paths))
    assert standing(view) == standing(listed) == ("RUNNING", "cyan")
    alone = replace(view, state=attended(view.state, worked=False))
    assert standing(alone) == ("NO WORKER", "yellow")
    home.hand.park(leg, None)
    await home.command("stop", home.plan().id)
    [listed] = home.store.read_sync(plan_summaries)
    assert standing(listed)[0] == attended(listed.state, worked=False) == "STOPPED"
    assert home.store.read_sync(lambda tx: plan_word(tx, home.plan())) == "STOPPED"
    refused = await home.command("accept", home.plan().id, finish="squash")
    wording(str(refusal(refused)))


async def test_a_plan_whose_work_was_accepted_says_so(wording: Wording) -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    home.hand.land(leg)
    [verify] = await home.turn()
    await home.verify(verify)
    [before] = home.store.read_sync(plan_summaries)
    wording(standing(before)[0])
    await home.command("accept", home.plan().id, finish="squash")
    [finish] = home.all(Finish)
    for state in (FinishState.LANDING, FinishState.FINISHED):
        home.store.transact_sync(
            "t", lambda tx, to=state: move_finish(tx, home.all(Finish)[0], to, fence=None)
        )
    [after] = home.store.read_sync(plan_summaries)
    view = home.store.read_sync(lambda tx: plan_view(tx, home.plan().id, home.world.paths))
    assert standing(after) == standing(view) == ("VERIFIED WITH GAPS, accepted", "yellow")
    home.store.transact_sync("t", lambda tx: tx.update(Finish, finish.id, how="pull-request"))
    [after] = home.store.read_sync(plan_summaries)
    wording(standing(after)[0])
